package verify

import (
	"sync"

	"witan/kernel"
)

// memo keeps what commands did in the last run, so that all members of a batch,
// who start from one snapshot, cost one execution. It ends with the host.
type memo struct {
	mu   sync.Mutex
	run  kernel.RunID     // guarded by mu
	done map[string][]ran // guarded by mu
}

func (m *memo) load(run kernel.RunID, key string) ([]ran, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if run == "" || m.run != run {
		return nil, false
	}
	out, ok := m.done[key]
	return out, ok
}

func (m *memo) save(run kernel.RunID, key string, out []ran) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != run {
		m.run, m.done = run, map[string][]ran{}
	}
	m.done[key] = out
}
