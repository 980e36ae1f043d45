package gemini

import (
	"sync"

	"witan/kernel"
)

// counts are those of a result. Both programs count in their input what was read
// from the cache.
type counts struct {
	Input     *int64 `json:"input_tokens"`
	Output    *int64 `json:"output_tokens"`
	Cached    *int64 `json:"cached"`
	CacheRead *int64 `json:"cache_read_input_tokens"`
}

// counter turns counts into the usage of a turn. Gemini CLI counts the turn, Qwen
// Code the session over all its processes: of one that was resumed, what it had
// counted before is known only if it was seen here.
type counter struct {
	mu   sync.Mutex
	seen map[string]counts // guarded by mu; by native session
}

// maxSeen bounds the sessions whose totals are kept.
const maxSeen = 1024

// usage is what the turn used, in a session that was resumed or else begun; not
// ok when the program does not say.
func (c *counter) usage(resumed, begun string, r result) (u kernel.Usage, ok bool) {
	if n := r.Stats; n != nil {
		u = kernel.Usage{Input: n.Input, Output: n.Output, Cached: n.Cached}
		u.Complete = u.Input != nil && u.Output != nil
		return u, true
	}
	if r.Usage == nil {
		return u, false
	}
	n := *r.Usage
	c.mu.Lock()
	before, known := c.seen[resumed+begun] // one of both is empty
	if len(c.seen) >= maxSeen {
		clear(c.seen)
	}
	c.seen[resumed+begun] = n
	c.mu.Unlock()
	switch {
	case resumed == "":
	case !known:
		return u, true // unknown is unknown, not all of it
	default:
		n = counts{Input: less(n.Input, before.Input), Output: less(n.Output, before.Output), CacheRead: less(n.CacheRead, before.CacheRead)}
	}
	u = kernel.Usage{Input: n.Input, Output: n.Output, Cached: n.CacheRead}
	u.Complete = u.Input != nil && u.Output != nil
	return u, true
}

// less is a total minus the one before; one that fell has begun anew.
func less(a, b *int64) *int64 {
	if a == nil || b == nil || *a < *b {
		return a
	}
	n := *a - *b
	return &n
}
