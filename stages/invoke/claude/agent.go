package claude

import (
	"context"
	"time"

	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/turn"
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
	Spec      func(turn.Place) (proc.Spec, error)
	Sessions  Sessions
	Decide    turn.Decide // nil = by policy, at once
	Model     string      // "" = the agent's own choice
	Effort    string      // "" = the agent's own choice
	Watchdog  turn.Watchdog
	LineBytes int           // of one message; 0 = 16 MiB
	Idle      time.Duration // how long an idle agent is kept; 0 = until Close
	Hide      turn.Hide     // texts that must not get out of the host
}

// Agent implements kernel.Invoker.
type Agent struct {
	cfg  Config
	idle pool
}

var _ kernel.Invoker = (*Agent)(nil)

// New returns the adapter of one agent.
func New(c Config) *Agent {
	c.Watchdog = c.Watchdog.WithDefaults()
	return &Agent{cfg: c, idle: pool{keep: c.Idle, conns: map[place]*conn{}}}
}

// Invoke implements kernel.Invoker.
func (a *Agent) Invoke(ctx context.Context, env kernel.Env, req kernel.InvokeRequest) (kernel.Reply, error) {
	session, lost := a.session(ctx, req)
	j := newJob(a, env, req, session)
	defer j.end()
	if lost != nil {
		return kernel.Reply{}, j.fail(ctx, nil, lost)
	}
	if err := j.r.Folders(); err != nil {
		return kernel.Reply{}, err
	}
	c, err := a.acquire(ctx, j)
	if err != nil {
		return kernel.Reply{}, j.fail(ctx, c, err)
	}
	j.r.Held(c.t.Confined())
	keep, err := j.prompt(ctx, c)
	if keep { // it has seen the prompt and knows what it said
		j.remember(ctx, c)
	}
	if err != nil {
		err = j.fail(ctx, c, err)
	}
	a.idle.put(c, keep)
	if err != nil {
		return kernel.Reply{}, err
	}
	return j.r.Reply()
}

// session is the native session of a turn: the one that it goes on in, or a new
// one with a name of our own.
func (a *Agent) session(ctx context.Context, req kernel.InvokeRequest) (string, error) {
	if !req.Turn.Continue {
		return newID(), nil
	}
	s, err := a.cfg.Sessions.Session(ctx, req.Conversation, req.Owner)
	if err != nil {
		return "", &kernel.Failure{Class: kernel.ClassSession, Reason: "session_gone", Text: "earlier context is not available any more", Err: err}
	}
	return s.Native, nil
}

// acquire takes the idle agent that has the turn's session, or starts one. With
// an error it may return an agent that has ended.
func (a *Agent) acquire(ctx context.Context, j *job) (*conn, error) {
	at := place{j.req.Conversation, j.req.Workspace, j.req.Turn.Write}
	offered := kernel.Sum(servers(j.req.MCP))
	if c := a.idle.take(at); c != nil {
		if c.session() == j.session && c.offered == offered {
			return c, nil
		}
		c.end()
	}
	sctx, started := a.cfg.Watchdog.Starting(ctx, j.r)
	defer started()
	c, err := a.start(sctx, j, at)
	if c != nil {
		c.offered = offered
	}
	if err == nil {
		err = c.initialize(sctx)
	}
	if err != nil && c != nil {
		err = c.because(err, a.cfg.Watchdog.CancelGrace)
		c.end()
	}
	return c, err
}

// start starts a process for the session of j.
func (a *Agent) start(ctx context.Context, j *job, at place) (*conn, error) {
	s, err := a.cfg.Spec(j.r.Place())
	if err != nil {
		return nil, j.r.CannotStart(err)
	}
	more, err := a.flags(s, j)
	if err != nil {
		return nil, err
	}
	s.Args = append(s.Args[:len(s.Args):len(s.Args)], more...)
	s.Env = append(settings[:len(settings):len(settings)], s.Env...)
	t, err := turn.Start(ctx, s)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, j.r.CannotStart(err)
	}
	return newConn(t, at, j.session, a.cfg.LineBytes), nil
}

// Release ends the idle agents of a folder that goes away, and waits for them.
func (a *Agent) Release(workspace string) { a.idle.release(workspace) }

// Close ends all idle agents; running ones end with their turns.
func (a *Agent) Close() error { a.idle.close(); return nil }
