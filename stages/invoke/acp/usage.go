package acp

import (
	"encoding/json"

	"witan/kernel"
)

// UsageRule says how the agent counts.
type UsageRule struct {
	SessionTotal       bool // counts are totals of the session
	InputExcludesCache bool // input contains neither what was read from the cache nor what was written to it
}

// counter turns what an agent reports into the usage of a turn. Of a session
// that another process began the total so far is not known.
type counter struct {
	known bool
	total report // of the session, as last reported
}

// report is what an agent counts; nil is unknown.
type report struct {
	Input      *int64 `json:"inputTokens"`
	Output     *int64 `json:"outputTokens"`
	Cached     *int64 `json:"cachedReadTokens"`
	CacheWrite *int64 `json:"cachedWriteTokens"`
	Thought    *int64 `json:"thoughtTokens"`
}

// add reads the answer to a prompt. ok is false when it counts nothing.
func (c *counter) add(rule UsageRule, res json.RawMessage) (u kernel.Usage, ok bool) {
	n, ok := parseUsage(res)
	if !ok {
		return u, false
	}
	if rule.SessionTotal {
		before, known := c.total, c.known
		c.total, c.known = n, true
		if !known {
			return u, true // unknown is unknown, not all of it
		}
		n = n.since(before)
	}
	u = kernel.Usage{Input: n.Input, Output: n.Output, Cached: n.Cached, CacheWrite: n.CacheWrite, Reasoning: n.Thought}
	if rule.InputExcludesCache {
		u.Input = plus(plus(u.Input, n.Cached), n.CacheWrite)
	}
	u.Complete = u.Input != nil && u.Output != nil
	return u, true
}

func parseUsage(res json.RawMessage) (report, bool) {
	var r struct {
		Usage *report `json:"usage"`
		Meta  struct {
			Quota struct {
				Count *struct { // of gemini, which has no usage
					Input  *int64 `json:"input_tokens"`
					Output *int64 `json:"output_tokens"`
				} `json:"token_count"`
			} `json:"quota"`
		} `json:"_meta"`
	}
	if json.Unmarshal(res, &r) != nil {
		return report{}, false
	}
	if r.Usage != nil {
		return *r.Usage, true
	}
	if n := r.Meta.Quota.Count; n != nil && (n.Input != nil || n.Output != nil) {
		return report{Input: n.Input, Output: n.Output}, true
	}
	return report{}, false
}

// since is what n counts beyond before. A total that falls has begun anew.
func (n report) since(before report) report {
	if below(n.Input, before.Input) || below(n.Output, before.Output) {
		return n
	}
	return report{minus(n.Input, before.Input), minus(n.Output, before.Output), minus(n.Cached, before.Cached),
		minus(n.CacheWrite, before.CacheWrite), minus(n.Thought, before.Thought)}
}

func below(a, b *int64) bool { return a != nil && b != nil && *a < *b }

// minus takes an unknown total before for none: it was not counted then.
func minus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return a
	}
	n := max(*a-*b, 0)
	return &n
}

func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return a
	}
	n := *a + *b
	return &n
}
