package claude

import (
	"maps"
	"slices"
	"sync"
	"time"

	"witan/kernel"
)

// place: a process serves turns with the same confinement only.
type place struct {
	conv      kernel.ConversationID
	workspace string
	write     bool
}

// pool holds the agents that wait for their next turn, one for a place.
type pool struct {
	keep time.Duration // 0 = until close

	mu    sync.Mutex
	conns map[place]*conn // guarded by mu
	over  bool            // guarded by mu
	evict sync.WaitGroup
}

// take returns the agent of a place, if there is one that lives.
func (p *pool) take(at place) *conn {
	p.mu.Lock()
	c := p.conns[at]
	delete(p.conns, at)
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	if c.evict != nil {
		c.evict.Stop()
	}
	if c.dead() {
		c.end()
		return nil
	}
	return c
}

// put keeps a healthy agent for the next turn and ends any other.
func (p *pool) put(c *conn, healthy bool) {
	if healthy && !c.dead() && p.hold(c) {
		return
	}
	c.end()
}

func (p *pool) hold(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.conns[c.at] != nil {
		return false
	}
	p.conns[c.at] = c
	if p.keep > 0 {
		c.evict = time.AfterFunc(p.keep, func() { p.expire(c) })
	}
	return true
}

func (p *pool) expire(c *conn) {
	p.mu.Lock()
	mine := p.conns[c.at] == c
	if mine {
		delete(p.conns, c.at)
		p.evict.Add(1) // before close can see that it is gone
	}
	p.mu.Unlock()
	if mine {
		defer p.evict.Done()
		c.end()
	}
}

func (p *pool) release(workspace string) {
	p.mu.Lock()
	var gone []*conn
	for at, c := range p.conns {
		if at.workspace == workspace {
			delete(p.conns, at)
			gone = append(gone, c)
		}
	}
	p.mu.Unlock()
	endAll(gone)
}

func (p *pool) close() {
	p.mu.Lock()
	p.over = true
	gone := slices.Collect(maps.Values(p.conns))
	clear(p.conns)
	p.mu.Unlock()
	endAll(gone)
	p.evict.Wait()
}

func endAll(conns []*conn) {
	var wg sync.WaitGroup
	for _, c := range conns {
		if c.evict != nil {
			c.evict.Stop()
		}
		wg.Go(c.end)
	}
	wg.Wait()
}
