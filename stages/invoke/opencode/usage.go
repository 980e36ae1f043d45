package opencode

import "witan/kernel"

// counts are those of one step, which is one call of a model. Its input contains
// nothing of the cache, its output no reasoning.
type counts struct {
	Input     *int64 `json:"input"`
	Output    *int64 `json:"output"`
	Reasoning *int64 `json:"reasoning"`
	Cache     struct {
		Read  *int64 `json:"read"`
		Write *int64 `json:"write"`
	} `json:"cache"`
}

// usage is what a step used.
func (c counts) usage() kernel.Usage {
	u := kernel.Usage{Input: sum(c.Input, c.Cache.Read, c.Cache.Write), Output: sum(c.Output, c.Reasoning),
		Cached: c.Cache.Read, CacheWrite: c.Cache.Write, Reasoning: c.Reasoning}
	u.Complete = u.Input != nil && u.Output != nil
	return u
}

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
