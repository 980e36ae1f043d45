package acp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"witan/kernel"
	"witan/stages/invoke/turn"
)

// What hosts need of package turn to build an Agent.
type (
	Place     = turn.Place
	Transport = turn.Transport
	Connect   = turn.Connect
	Watchdog  = turn.Watchdog
	Hide      = turn.Hide
	Decide    = turn.Decide
)

// Ways to connect.
var (
	Process   = turn.Process
	InProcess = turn.InProcess
)

// Sessions remembers native sessions; kernel.Conversations has it.
type Sessions interface {
	Session(ctx context.Context, id kernel.ConversationID, agent kernel.AgentID) (kernel.Session, error)
	PutSession(ctx context.Context, id kernel.ConversationID, agent kernel.AgentID, s kernel.Session) error
	ForgetSession(ctx context.Context, id kernel.ConversationID, agent kernel.AgentID) error
}

// Config of New.
type Config struct {
	ID        kernel.AgentID
	Connect   Connect
	Sessions  Sessions
	Decide    Decide // nil = by policy, at once
	Watchdog  Watchdog
	LineBytes int           // of one message; 0 = 16 MiB
	Idle      time.Duration // how long an idle agent is kept; 0 = until Close
	Instance  string        // of the host
	Usage     UsageRule
	Hide      Hide // texts that must not get out of the host
}

// Agent implements kernel.Invoker.
type Agent struct {
	cfg Config

	mu    sync.Mutex
	idle  map[poolKey]*conn // guarded by mu
	over  bool              // guarded by mu
	evict sync.WaitGroup
}

var _ kernel.Invoker = (*Agent)(nil)

// poolKey: a process serves turns with the same confinement only.
type poolKey struct {
	conv      kernel.ConversationID
	workspace string
	write     bool
}

// New returns the adapter of one agent.
func New(c Config) *Agent {
	c.Watchdog = c.Watchdog.WithDefaults()
	return &Agent{cfg: c, idle: map[poolKey]*conn{}}
}

// Invoke implements kernel.Invoker.
func (a *Agent) Invoke(ctx context.Context, env kernel.Env, req kernel.InvokeRequest) (kernel.Reply, error) {
	j := newJob(a, env, req)
	defer j.end()
	if err := j.r.Folders(); err != nil {
		return kernel.Reply{}, err
	}
	c, err := a.acquire(ctx, j)
	if err != nil {
		return kernel.Reply{}, err
	}
	j.r.Held(c.t.Confined())
	c.begin(j)
	keep, err := j.prompt(ctx, c)
	c.begin(nil)
	if keep { // it has seen the prompt and knows what it said
		j.remember(ctx, c)
	}
	if err != nil {
		err = j.fail(ctx, c, err)
		a.release(c, keep)
		return kernel.Reply{}, err
	}
	a.release(c, keep)
	return j.r.Reply()
}

// acquire takes the idle agent of the place, or starts one, with a session for
// the turn. Its errors are those of Invoke.
func (a *Agent) acquire(ctx context.Context, j *job) (*conn, error) {
	req := j.req
	want := ""
	if req.Turn.Continue {
		s, err := a.cfg.Sessions.Session(ctx, req.Conversation, req.Owner)
		if err != nil {
			return nil, j.fail(ctx, nil, &kernel.Failure{Class: kernel.ClassSession, Reason: "session_gone", Text: "earlier context is not available any more", Err: err})
		}
		want = s.Native
	}
	sctx, started := a.cfg.Watchdog.Starting(ctx, j.r)
	defer started()
	key := poolKey{req.Conversation, req.Workspace, req.Turn.Write}
	c := a.take(key)
	kept := c != nil
	for {
		var err error
		if c == nil {
			c, err = a.connect(sctx, j, key)
		}
		if err == nil {
			err = j.openSession(sctx, c, want)
		}
		if err == nil {
			return c, nil
		}
		died := kept && c.dead()
		if !died {
			err = j.fail(ctx, c, err)
		}
		if c != nil {
			a.release(c, false)
		}
		if !died {
			return nil, err
		}
		c, kept = nil, false // it had died while idle: once more with a new one
	}
}

// take returns the idle agent of a place, if there is one that lives.
func (a *Agent) take(key poolKey) *conn {
	a.mu.Lock()
	c := a.idle[key]
	delete(a.idle, key)
	a.mu.Unlock()
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

// release keeps a healthy agent for the next turn and ends any other.
func (a *Agent) release(c *conn, keep bool) {
	if keep && !c.dead() && a.keep(c) {
		return
	}
	c.end()
}

func (a *Agent) keep(c *conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.idle[c.key] != nil {
		return false
	}
	a.idle[c.key] = c
	if a.cfg.Idle > 0 {
		c.evict = time.AfterFunc(a.cfg.Idle, func() { a.evictIdle(c) })
	}
	return true
}

func (a *Agent) evictIdle(c *conn) {
	a.mu.Lock()
	mine := a.idle[c.key] == c
	if mine {
		delete(a.idle, c.key)
		a.evict.Add(1) // before Close can see that it is gone
	}
	a.mu.Unlock()
	if mine {
		defer a.evict.Done()
		c.end()
	}
}

// Release ends the idle agents of a folder that goes away, and waits for them.
func (a *Agent) Release(workspace string) {
	a.mu.Lock()
	var gone []*conn
	for k, c := range a.idle {
		if k.workspace == workspace {
			delete(a.idle, k)
			gone = append(gone, c)
		}
	}
	a.mu.Unlock()
	endAll(gone)
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

// Close ends all idle agents; running ones end with their turns.
func (a *Agent) Close() error {
	a.mu.Lock()
	a.over = true
	idle := a.idle
	a.idle = map[poolKey]*conn{}
	a.mu.Unlock()
	endAll(slices.Collect(maps.Values(idle)))
	a.evict.Wait()
	return nil
}
