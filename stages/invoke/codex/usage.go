package codex

import (
	"sync"

	"witan/kernel"
)

// counts are those of a thread so far. Its input contains what was read from the
// cache and what was written to it, its output the reasoning.
type counts struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Cached     *int64 `json:"cached_input_tokens"`
	CacheWrite *int64 `json:"cache_write_input_tokens"`
	Reasoning  *int64 `json:"reasoning_output_tokens"`
}

// since is the usage of a turn before which the thread had used before; nil is
// not known.
func (c counts) since(before *counts) kernel.Usage {
	if before == nil {
		return kernel.Usage{}
	}
	u := kernel.Usage{Input: minus(c.Input, before.Input), Output: minus(c.Output, before.Output), Cached: minus(c.Cached, before.Cached),
		CacheWrite: minus(c.CacheWrite, before.CacheWrite), Reasoning: minus(c.Reasoning, before.Reasoning)}
	u.Complete = u.Input != nil && u.Output != nil
	return u
}

// minus is unknown when a side is, and when the count began anew.
func minus(a, b *int64) *int64 {
	if a == nil || b == nil || *a < *b {
		return nil
	}
	n := *a - *b
	return &n
}

func none() *counts {
	n := int64(0)
	return &counts{&n, &n, &n, &n, &n}
}

// totals are what threads had used when their last turn ended. A turn that did
// not end leaves its thread unknown: what it used is told by nobody.
type totals struct {
	mu sync.Mutex
	of map[string]counts // guarded by mu
}

// maxTotals bounds them; a thread that is dropped is merely unknown for one turn.
const maxTotals = 4096

// take is what a thread has used before a turn; nil when that is not known.
func (t *totals) take(thread string) *counts {
	if thread == "" {
		return none()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.of[thread]
	delete(t.of, thread)
	if !ok {
		return nil
	}
	return &c
}

func (t *totals) put(thread string, c counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.of) >= maxTotals {
		clear(t.of)
	}
	t.of[thread] = c
}
