package stream

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

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
	Watchdog  turn.Watchdog
	LineBytes int       // of one value; 0 = 16 MiB
	Hide      turn.Hide // texts that must not get out of the host

	// NewSession names a new session, where the program lets its caller do that;
	// nil: the program names it.
	NewSession func() string

	// Open completes the command of a turn and returns what reads its output, and
	// what the program is given on stdin. s is its own to change.
	Open func(t *Turn, s *proc.Spec) (r Reader, input []byte, err error)
}

// Reader understands what one program prints in one turn. Its methods are called
// one after the other.
type Reader interface {
	// Value takes the next value, an object. An error ends the program at once:
	// a *kernel.Failure is what came of the turn, anything else a broken protocol.
	// What it does not know it ignores.
	Value(v json.RawMessage) error
	// End says what came of the turn after the program is gone; nil for a proper
	// end. Died is its answer for an end that nothing explains.
	End(e turn.Exit) error
}

// Agent implements kernel.Invoker.
type Agent struct{ cfg Config }

var _ kernel.Invoker = (*Agent)(nil)

// New returns the adapter of one agent.
func New(c Config) *Agent {
	c.Watchdog = c.Watchdog.WithDefaults()
	return &Agent{c}
}

// Close implements kernel.Invoker; nothing runs between turns.
func (a *Agent) Close() error { return nil }

// Invoke implements kernel.Invoker.
func (a *Agent) Invoke(ctx context.Context, env kernel.Env, req kernel.InvokeRequest) (kernel.Reply, error) {
	t := &Turn{Req: req, env: env, over: make(chan struct{})}
	hide := turn.Hide{}
	maps.Copy(hide, a.cfg.Hide)
	var err error
	switch {
	case req.Turn.Continue:
		t.Resume, err = a.session(ctx, req)
		hide[t.Resume] = sessionWord
	case a.cfg.NewSession != nil:
		t.New = a.cfg.NewSession()
		t.session = t.New
		hide[t.New] = sessionWord
	}
	t.R = turn.NewRecorder(env, req, hide)
	if err == nil {
		err = a.invoke(ctx, t)
	}
	if t.taken && (err == nil || ctx.Err() != nil) {
		a.remember(ctx, t)
	}
	if err != nil {
		return kernel.Reply{}, a.fail(ctx, t, err)
	}
	return t.R.Reply()
}

// sessionWord stands for a native id in what the agent says of it.
const sessionWord = "[session]"

// session is the native session to go on in.
func (a *Agent) session(ctx context.Context, req kernel.InvokeRequest) (string, error) {
	s, err := a.cfg.Sessions.Session(ctx, req.Conversation, req.Owner)
	if err != nil || s.Native == "" {
		f := Gone()
		f.Err = err
		return "", f
	}
	return s.Native, nil
}

// Gone is the failure of a turn whose session is dead.
func Gone() *kernel.Failure {
	return &kernel.Failure{Class: kernel.ClassSession, Reason: "session_gone", Text: "earlier context is not available any more; it is rebuilt from the conversation"}
}

// remember stores the session for the next turn of its owner.
func (a *Agent) remember(ctx context.Context, t *Turn) {
	if t.Req.Owner == "" || t.session == "" {
		return
	}
	s := kernel.Session{Native: t.session, Workspace: t.Req.Workspace, Seen: t.Req.Turn.TurnSeq}
	if err := a.cfg.Sessions.PutSession(context.WithoutCancel(ctx), t.Req.Conversation, t.Req.Owner, s); err != nil {
		t.env.Log.Error("session not stored", "err", err)
	}
}

// fail types an error and keeps what had arrived.
func (a *Agent) fail(ctx context.Context, t *Turn, err error) error {
	err = t.R.Fail(ctx, err, func(err error) *kernel.Failure {
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "agent_died", Text: turn.Clean(err.Error()), Err: err}
	})
	var f *kernel.Failure
	if !errors.As(err, &f) {
		return err
	}
	if t.session != "" {
		f.Text = strings.ReplaceAll(f.Text, t.session, sessionWord)
	}
	if f.Class == kernel.ClassSession && t.Req.Turn.Continue {
		ferr := a.cfg.Sessions.ForgetSession(context.WithoutCancel(ctx), t.Req.Conversation, t.Req.Owner)
		if ferr != nil && !kernel.IsKind(ferr, kernel.NotFound) {
			t.env.Log.Error("dead session not forgotten", "err", ferr)
		}
	}
	return err
}

func (a *Agent) invoke(ctx context.Context, t *Turn) error {
	if err := t.R.Folders(); err != nil {
		return err
	}
	if err := t.R.Sending(ctx); err != nil {
		return err
	}
	tr, r, input, err := a.start(ctx, t)
	if err != nil {
		return err
	}
	t.R.Held(tr.Confined())
	return a.run(ctx, t, tr, r, input)
}

// start starts the program.
func (a *Agent) start(ctx context.Context, t *Turn) (turn.Transport, Reader, []byte, error) {
	sctx, started := a.cfg.Watchdog.Starting(ctx, t.R)
	defer started()
	s, err := a.cfg.Spec(t.R.Place())
	if err != nil {
		return nil, nil, nil, t.R.CannotStart(err)
	}
	s.Args, s.Env = slices.Clone(s.Args), slices.Clone(s.Env)
	r, input, err := a.cfg.Open(t, &s)
	if err != nil {
		return nil, nil, nil, err
	}
	tr, err := turn.Start(sctx, s)
	switch {
	case err != nil && sctx.Err() != nil:
		return nil, nil, nil, context.Cause(sctx)
	case err != nil:
		return nil, nil, nil, t.R.CannotStart(err)
	}
	return tr, r, input, nil
}
