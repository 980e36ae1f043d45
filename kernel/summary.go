package kernel

import "time"

// RunStatus is where a run stands. Only "running" and "queued" mean that
// somebody works on it; no such state survives the host.
type RunStatus string

const (
	RunRunning         RunStatus = "running"
	RunCompleted       RunStatus = "completed"
	RunPartial         RunStatus = "partial"
	RunFailed          RunStatus = "failed"
	RunStopped         RunStatus = "stopped"
	RunInterruptedSt   RunStatus = "interrupted"
	RunBlocked         RunStatus = "blocked"
	RunRoundLimit      RunStatus = "round-limit"
	RunBudgetExhausted RunStatus = "budget-exhausted"
	RunWaiting         RunStatus = "waiting"
)

// RunSummary is a run's row in `witan runs`.
type RunSummary struct {
	Run          RunID          `json:"run"`
	Conversation ConversationID `json:"conversation"`
	Status       RunStatus      `json:"status"`
	Plan         string         `json:"plan"`
	Agents       []AgentID      `json:"agents"`
	Created      time.Time      `json:"created"`
	Finished     *time.Time     `json:"finished"`
	Reason       string         `json:"reason"`
	Title        string         `json:"title"`
	Usage        Usage          `json:"usage"`
	Gates        int            `json:"gates,omitempty"` // that wait
}

// Usage counts what an attempt or a run consumed. A nil field is unknown, not
// zero. Input includes what was cached, Output what was reasoned. Cost is in
// millionths of a US dollar.
type Usage struct {
	Input      *int64 `json:"input"`
	Output     *int64 `json:"output"`
	Cached     *int64 `json:"cached"`
	CacheWrite *int64 `json:"cache_write"`
	Reasoning  *int64 `json:"reasoning"`
	Cost       *int64 `json:"cost_usd_micros"`
	Complete   bool   `json:"complete"`
}

// Add returns u + v; a part known on one side only is kept and the sum is
// marked incomplete.
func (u Usage) Add(v Usage) Usage {
	complete := u.Complete && v.Complete
	sum := func(a, b *int64) *int64 {
		if a == nil && b == nil {
			return nil
		}
		if a == nil || b == nil {
			complete = false
		}
		var n int64
		for _, p := range []*int64{a, b} {
			if p != nil {
				n += *p
			}
		}
		return &n
	}
	out := Usage{
		Input: sum(u.Input, v.Input), Output: sum(u.Output, v.Output), Cached: sum(u.Cached, v.Cached),
		CacheWrite: sum(u.CacheWrite, v.CacheWrite), Reasoning: sum(u.Reasoning, v.Reasoning), Cost: sum(u.Cost, v.Cost),
	}
	out.Complete = complete
	return out
}
