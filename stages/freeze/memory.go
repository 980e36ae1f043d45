package freeze

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// While a folder is frozen, the garbage collector works harder from target on:
// a tree of any size keeps less than that alive. Where the process needs much for
// other things, from headroom above that on.
const (
	target   = 64 << 20
	headroom = 32 << 20
)

// The limit is the process's, so is what guards it.
var limit struct {
	mu     sync.Mutex
	users  int   // guarded by mu
	before int64 // guarded by mu
}

// bound limits the memory of the process until the returned function is called. A
// limit that is lower already stays.
func bound() (release func()) {
	limit.mu.Lock()
	defer limit.mu.Unlock()
	if limit.users++; limit.users == 1 {
		limit.before = debug.SetMemoryLimit(-1)
		debug.SetMemoryLimit(min(limit.before, max(target, live()+headroom)))
	}
	return func() {
		limit.mu.Lock()
		defer limit.mu.Unlock()
		if limit.users--; limit.users == 0 {
			debug.SetMemoryLimit(limit.before)
		}
	}
}

// live is what the last collection left.
func live() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
