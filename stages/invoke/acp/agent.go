package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"witan/kernel"
	"witan/stages/invoke/jsonrpc"
)

// Watchdog bounds silence; see SPEC G5. Zero values take the defaults.
type Watchdog struct{ Startup, Notice, NoOutput, Tool, CancelGrace time.Duration }

// Config of New.
type Config struct {
	ID        kernel.AgentID
	Connect   Connect
	Sessions  kernel.Conversations
	Watchdog  Watchdog
	LineBytes int
	Idle      time.Duration // how long an idle agent is kept; 0 = until Close
	Instance  string        // of the host
	Usage     UsageRule
	// Hide are texts that must not get out of the host, with what stands in
	// their place: values of the agent's environment, paths of its program.
	Hide map[string]string
}

// hide takes out of s what must not get out.
func (a *Agent) hide(s string) string {
	for secret, name := range a.cfg.Hide {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, name)
		}
	}
	return s
}

// UsageRule says how the agent counts.
type UsageRule struct {
	SessionTotal       bool // counts are totals of the session
	InputExcludesCache bool // input does not contain what was cached
}

// Agent implements kernel.Invoker.
type Agent struct {
	cfg Config

	mu    sync.Mutex
	idle  map[poolKey]*conn       // guarded by mu
	over  bool                    // guarded by mu
	usage map[string]kernel.Usage // by native session; guarded by mu
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
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.Watchdog.Startup, 90*time.Second)
	def(&c.Watchdog.Notice, 20*time.Second)
	def(&c.Watchdog.NoOutput, 10*time.Minute)
	def(&c.Watchdog.Tool, 30*time.Minute)
	def(&c.Watchdog.CancelGrace, 2*time.Second)
	return &Agent{cfg: c, idle: map[poolKey]*conn{}, usage: map[string]kernel.Usage{}}
}

// conn is a connected agent with its session.
type conn struct {
	key     poolKey
	t       Transport
	rpc     *jsonrpc.Conn
	load    bool   // the agent can load sessions
	session string // native
	turn    *turn  // running one; guarded by mu
	mu      sync.Mutex
	evict   *time.Timer
	noise   tail
}

// Invoke implements kernel.Invoker.
func (a *Agent) Invoke(ctx context.Context, env kernel.Env, req kernel.InvokeRequest) (kernel.Reply, error) {
	t := newTurn(a, env, req)
	if err := os.MkdirAll(req.State, 0o700); err != nil {
		return kernel.Reply{}, kernel.E("acp.Invoke", kernel.ReadOnly, err, "the agent's folder cannot be made")
	}
	if req.Turn.OutputDir != "" {
		if err := os.MkdirAll(req.Turn.OutputDir, 0o700); err != nil {
			return kernel.Reply{}, kernel.E("acp.Invoke", kernel.ReadOnly, err, "the output folder cannot be made")
		}
	}
	c, err := a.acquire(ctx, t)
	if err != nil {
		return kernel.Reply{}, t.failure(ctx, nil, err)
	}
	if how, held := c.t.Confined(), !req.Turn.Write; held && strings.HasPrefix(how, "none") {
		env.Emit(kernel.Event{Type: "notice", Code: "not_confined", Text: "this turn is read-only by agreement only: " + how})
	}
	c.begin(t)
	err = t.prompt(ctx, c)
	c.begin(nil)
	if err != nil {
		keep := t.obeyed
		if keep { // it has seen the prompt and knows what it said
			a.remember(ctx, c, t)
		}
		err = t.failure(ctx, c, err)
		a.release(c, keep)
		return kernel.Reply{}, err
	}
	a.remember(ctx, c, t)
	a.release(c, true)
	return t.reply(), nil
}

// acquire takes the idle agent of the place, or starts one, with a session for the turn.
func (a *Agent) acquire(ctx context.Context, t *turn) (*conn, error) {
	req := t.req
	key := poolKey{req.Conversation, req.Workspace, req.Turn.Write}
	want := ""
	if req.Turn.Continue {
		s, err := a.cfg.Sessions.Session(ctx, req.Conversation, req.Agent)
		if err != nil {
			return nil, &kernel.Failure{Class: kernel.ClassSession, Reason: "session_gone", Text: "earlier context is not available any more", Err: err}
		}
		want = s.Native
	}
	sctx, cancel := context.WithTimeoutCause(ctx, a.cfg.Watchdog.Startup, errStartup)
	defer cancel()
	c := a.take(key)
	fresh := c == nil
	if fresh {
		var err error
		if c, err = a.connect(sctx, t, key); err != nil {
			return nil, err
		}
	}
	err := a.openSession(sctx, c, t, want)
	if err != nil && !fresh && errorsIsGone(err) { // it had died while idle: once more with a new one
		a.release(c, false)
		if c, err = a.connect(sctx, t, key); err != nil {
			return nil, err
		}
		err = a.openSession(sctx, c, t, want)
	}
	if err != nil {
		err = t.failure(ctx, c, err)
		a.release(c, false)
		return nil, err
	}
	return c, nil
}

var errStartup = errors.New("the agent did not start in time")

func errorsIsGone(err error) bool {
	var f *kernel.Failure
	var e *jsonrpc.Error
	return !errors.As(err, &f) && !errors.As(err, &e)
}

func (a *Agent) take(key poolKey) *conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.idle[key]
	delete(a.idle, key)
	if c != nil && c.evict != nil {
		c.evict.Stop()
	}
	return c
}

// release keeps a healthy agent for the next turn and ends any other.
func (a *Agent) release(c *conn, keep bool) {
	select {
	case <-c.rpc.Done():
		keep = false
	default:
	}
	if keep {
		a.mu.Lock()
		if !a.over && a.idle[c.key] == nil {
			a.idle[c.key] = c
			if a.cfg.Idle > 0 {
				c.evict = time.AfterFunc(a.cfg.Idle, func() { a.evictIdle(c) })
			}
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
	}
	a.end(c)
}

func (a *Agent) evictIdle(c *conn) {
	a.mu.Lock()
	mine := a.idle[c.key] == c
	if mine {
		delete(a.idle, c.key)
	}
	a.mu.Unlock()
	if mine {
		a.end(c)
	}
}

func (a *Agent) end(c *conn) {
	c.t.Stop()
	<-c.t.Done()
	c.rpc.Close()
	<-c.rpc.Done()
}

// Close ends all idle agents; running ones end with their turns.
func (a *Agent) Close() error {
	a.mu.Lock()
	a.over = true
	idle := a.idle
	a.idle = map[poolKey]*conn{}
	a.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range idle {
		if c.evict != nil {
			c.evict.Stop()
		}
		wg.Go(func() { a.end(c) })
	}
	wg.Wait()
	return nil
}

// connect starts the agent and shakes hands.
func (a *Agent) connect(ctx context.Context, t *turn, key poolKey) (*conn, error) {
	req := t.req
	tr, err := a.cfg.Connect(ctx, Place{Conversation: req.Conversation, Run: req.Turn.Run, Workspace: req.Workspace, State: req.State,
		Output: req.Turn.OutputDir, Write: req.Turn.Write})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "cannot_start", Text: fmt.Sprintf("agent %s cannot be started: %v", req.Agent, err), Err: err}
	}
	c := &conn{key: key, t: tr}
	c.rpc = jsonrpc.New(tr, tr, c, jsonrpc.Options{Limit: a.cfg.LineBytes,
		Noise: func(line []byte) { _, _ = c.noise.Write(append(line[:len(line):len(line)], '\n')) },
		Late:  func(id string) { c.late(id) }})
	res, err := c.rpc.Call(ctx, "initialize", map[string]any{"protocolVersion": 1,
		"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": true, "writeTextFile": false}, "terminal": false},
		"clientInfo":         map[string]any{"name": "witan", "version": "1"}})
	if err != nil {
		err = t.failure(ctx, c, err)
		a.release(c, false)
		return nil, err
	}
	var init struct {
		Version int `json:"protocolVersion"`
		Caps    struct {
			Load bool `json:"loadSession"`
		} `json:"agentCapabilities"`
	}
	if err := json.Unmarshal(res, &init); err != nil || init.Version != 1 {
		a.release(c, false)
		return nil, &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "protocol_version",
			Text: fmt.Sprintf("agent %s speaks protocol version %d, not 1; update it", req.Agent, init.Version), Err: err}
	}
	c.load = init.Caps.Load
	return c, nil
}

// openSession gives the connection the session the turn needs.
func (a *Agent) openSession(ctx context.Context, c *conn, t *turn, want string) error {
	meta := map[string]any{"witan": map[string]any{"state": t.req.State}}
	switch {
	case want != "" && c.session == want:
		return nil
	case want != "" && c.load:
		_, err := c.rpc.Call(ctx, "session/load", map[string]any{"sessionId": want, "cwd": t.req.Workspace, "mcpServers": []any{}, "_meta": meta})
		if err == nil {
			c.session = want
			return nil
		}
		var e *jsonrpc.Error
		if !errors.As(err, &e) {
			return err
		}
		fallthrough
	case want != "":
		if err := a.cfg.Sessions.ForgetSession(ctx, t.req.Conversation, t.req.Agent); err != nil {
			return err
		}
		return &kernel.Failure{Class: kernel.ClassSession, Reason: "session_gone", Text: "earlier context is not available any more; it is rebuilt from the conversation"}
	}
	res, err := c.rpc.Call(ctx, "session/new", map[string]any{"cwd": t.req.Workspace, "mcpServers": []any{}, "_meta": meta})
	if err != nil {
		return err
	}
	var s struct {
		ID string `json:"sessionId"`
	}
	if err := json.Unmarshal(res, &s); err != nil || s.ID == "" {
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "no_session", Text: "the agent opened no session"}
	}
	c.session = s.ID
	return nil
}

// remember stores the session for the next direct turn.
func (a *Agent) remember(ctx context.Context, c *conn, t *turn) {
	if t.req.Turn.Plan != "direct" {
		return
	}
	s := kernel.Session{Native: c.session, Workspace: t.req.Workspace, Seen: t.req.Turn.TurnSeq}
	if !c.load {
		s.Host = a.cfg.Instance
	}
	if err := a.cfg.Sessions.PutSession(context.WithoutCancel(ctx), t.req.Conversation, t.req.Agent, s); err != nil {
		t.env.Log.Error("session not stored", "err", err)
	}
}

// begin makes t the turn that updates belong to; nil for none.
func (c *conn) begin(t *turn) {
	c.mu.Lock()
	c.turn = t
	c.mu.Unlock()
}

func (c *conn) current() *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn
}

func (c *conn) late(id string) {
	if t := c.current(); t != nil {
		t.env.Emit(kernel.Event{Type: "notice", Code: "late_response", Text: "the agent answered a request a second time"})
	}
}
