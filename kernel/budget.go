package kernel

import (
	"fmt"
	"slices"
	"time"
)

// Limit is one budget of a run. A hard one ends the run before the next
// dispatch; a soft one asks. Elapsed is in milliseconds.
type Limit struct {
	Limit int64 `json:"limit"`
	Soft  bool  `json:"soft,omitempty"`
}

// BudgetNames are the budgets there are, in the order in which they are looked at.
var BudgetNames = []string{"attempts", "elapsed", "input_tokens", "output_tokens", "tokens", "cost_usd_micros", "tool_calls", "outbound_bytes"}

// TrippedBody says which budget ended the run.
type TrippedBody struct {
	Limit string `json:"limit"`
	Value int64  `json:"value"`
}

// spent is what a budget has used so far; known is false when a part of it is not.
func (s *State) spent(name string, now time.Time) (v int64, known bool) {
	of := func(p *int64) (int64, bool) {
		if p == nil {
			return 0, !s.used
		}
		return *p, s.Usage.Complete || !s.used
	}
	switch name {
	case "attempts":
		return int64(s.started), true
	case "elapsed":
		return s.elapsed(now).Milliseconds(), true
	case "input_tokens":
		return of(s.Usage.Input)
	case "output_tokens":
		return of(s.Usage.Output)
	case "tokens":
		in, k1 := of(s.Usage.Input)
		out, k2 := of(s.Usage.Output)
		return in + out, k1 && k2
	case "cost_usd_micros":
		return of(s.Usage.Cost)
	case "tool_calls":
		return int64(s.Tools), true
	}
	return s.Bytes, true
}

// Over finds the first budget that allows no further dispatch, with inflight
// added to what ended attempts have used; soft ones that were continued do not
// count.
func (s *State) Over(now time.Time, inflight Usage) (name string, value int64, ok bool) {
	for _, name := range BudgetNames {
		l, is := s.Created.Budget[name]
		if !is || l.Soft {
			continue
		}
		v, _ := s.spent(name, now)
		if v += inflightOf(name, inflight); v >= l.Limit {
			return name, v, true
		}
	}
	return "", 0, false
}

func inflightOf(name string, u Usage) int64 {
	of := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	switch name {
	case "input_tokens":
		return of(u.Input)
	case "output_tokens":
		return of(u.Output)
	case "tokens":
		return of(u.Input) + of(u.Output)
	case "cost_usd_micros":
		return of(u.Cost)
	}
	return 0
}

// nextBudget is what stands between an attempt and its dispatch.
func (s *State) nextBudget(at *Attempt, now time.Time) (Action, bool) {
	if len(s.Created.Budget) == 0 {
		return Action{}, false
	}
	if name, v, ok := s.Over(now, Usage{}); ok {
		return Action{Kind: BudgetTripped, Body: TrippedBody{name, v}}, true
	}
	for _, name := range BudgetNames {
		l, is := s.Created.Budget[name]
		if !is {
			continue
		}
		v, known := s.spent(name, now)
		why := fmt.Sprintf("%s has reached %d of %d", name, v, l.Limit)
		switch {
		case l.Soft && v >= l.Limit:
		case !l.Soft && !known: // unknown is not zero
			name, why = "unknown/"+name, fmt.Sprintf("%s of an agent is not known; the limit is %d", name, l.Limit)
		default:
			continue
		}
		d, a, ok := s.gate(GateBody{Gate: NewGateID(s.Run, GateBudget, name), Kind: GateBudget, Summary: why, Options: ContinueOrStop}, at.ID)
		if !ok {
			return a, true
		}
		if d.Option == "stop" {
			return Action{Kind: BudgetTripped, Body: TrippedBody{name, v}}, true
		}
	}
	return Action{}, false
}

// deadline is when a hard budget of time runs out; zero without one.
func (s *State) deadline() time.Time {
	if l, ok := s.Created.Budget["elapsed"]; ok && !l.Soft {
		return s.CreatedAt.Add(s.idle + time.Duration(l.Limit)*time.Millisecond)
	}
	return time.Time{}
}

// elapsed is how long the run has been at work. Time in which it was parked,
// stopped or interrupted is nobody's budget: being away costs nothing.
func (s *State) elapsed(now time.Time) time.Duration { return now.Sub(s.CreatedAt) - s.idle }

// CheckBudget refuses limits that are no budget.
func CheckBudget(b map[string]Limit) error {
	for name, l := range b {
		if !slices.Contains(BudgetNames, name) {
			return E("kernel.CheckBudget", Invalid, nil, "budget %q is unknown", name).WithNext("use one of %v", BudgetNames)
		}
		if l.Limit < 0 {
			return E("kernel.CheckBudget", Invalid, nil, "budget %s of %d is negative", name, l.Limit).WithNext("use 0 or more")
		}
	}
	return nil
}
