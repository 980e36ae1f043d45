package claude

import "witan/kernel"

// counts are those of a turn; its input contains neither what was read from the
// cache nor what was written to it.
type counts struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Details    struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// modelCounts are those of one model since the result before, sub-agents
// included.
type modelCounts struct {
	Input      *int64 `json:"inputTokens"`
	Output     *int64 `json:"outputTokens"`
	CacheRead  *int64 `json:"cacheReadInputTokens"`
	CacheWrite *int64 `json:"cacheCreationInputTokens"`
	Thinking   *int64 `json:"thinkingTokens"`
}

// usage is what the turn used; not ok when the agent does not say. An older
// agent counts nothing in a turn that failed, which is not to say it used nothing.
func (r result) usage() (u kernel.Usage, ok bool) {
	switch {
	case r.Models != nil:
		var zero int64
		u = kernel.Usage{Input: &zero, Output: &zero, Cached: &zero, CacheWrite: &zero, Reasoning: &zero}
		for _, m := range r.Models {
			u.Input, u.Output = sum(u.Input, m.Input, m.CacheRead, m.CacheWrite), sum(u.Output, m.Output)
			u.Cached, u.CacheWrite, u.Reasoning = sum(u.Cached, m.CacheRead), sum(u.CacheWrite, m.CacheWrite), sum(u.Reasoning, m.Thinking)
		}
	case r.Usage == nil || r.IsError && zero(r.Usage.Input) && zero(r.Usage.Output):
		return u, false
	default:
		n := r.Usage
		u = kernel.Usage{Input: sum(n.Input, n.CacheRead, n.CacheWrite), Output: n.Output, Cached: n.CacheRead, CacheWrite: n.CacheWrite, Reasoning: n.Details.Thinking}
	}
	u.Complete = u.Input != nil && u.Output != nil
	return u, true
}

func zero(n *int64) bool { return n == nil || *n == 0 }

// sum is unknown when a part is.
func sum(parts ...*int64) *int64 {
	var total int64
	for _, p := range parts {
		if p == nil {
			return nil
		}
		total += *p
	}
	return &total
}
