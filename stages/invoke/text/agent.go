package text

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/turn"
)

// Config of New.
type Config struct {
	ID       kernel.AgentID
	Spec     func(turn.Place) (proc.Spec, error)
	Sessions Sessions
	Watchdog turn.Watchdog
	Hide     turn.Hide
}

// Sessions forgets a session that the agent had under another protocol.
type Sessions interface {
	ForgetSession(ctx context.Context, id kernel.ConversationID, agent kernel.AgentID) error
}

// Agent implements kernel.Invoker.
type Agent struct{ cfg Config }

var _ kernel.Invoker = (*Agent)(nil)

// New returns the adapter of one agent.
func New(c Config) *Agent {
	c.Watchdog = c.Watchdog.WithDefaults()
	return &Agent{c}
}

// Close implements kernel.Invoker; nothing is kept between turns.
func (a *Agent) Close() error { return nil }

// Invoke implements kernel.Invoker.
func (a *Agent) Invoke(ctx context.Context, env kernel.Env, req kernel.InvokeRequest) (kernel.Reply, error) {
	r := turn.NewRecorder(env, req, a.cfg.Hide)
	if err := a.invoke(ctx, r, req); err != nil {
		return kernel.Reply{}, r.Fail(ctx, err, func(err error) *kernel.Failure {
			return &kernel.Failure{Class: kernel.ClassExecution, Reason: "agent_died", Text: turn.Clean(err.Error()), Err: err}
		})
	}
	return r.Reply()
}

func (a *Agent) invoke(ctx context.Context, r *turn.Recorder, req kernel.InvokeRequest) error {
	if req.Turn.Continue { // of a session that this program knows nothing about
		if err := a.cfg.Sessions.ForgetSession(ctx, req.Conversation, req.Owner); err != nil && !kernel.IsKind(err, kernel.NotFound) {
			return err
		}
		return &kernel.Failure{Class: kernel.ClassSession, Reason: "session_gone", Text: "earlier context is not available any more; it is rebuilt from the conversation"}
	}
	if err := r.Folders(); err != nil {
		return err
	}
	if err := r.Sending(ctx); err != nil {
		return err
	}
	t, input, err := a.start(ctx, r, req.Prompt)
	if err != nil {
		return err
	}
	r.Held(t.Confined())
	return a.run(ctx, r, t, input)
}

// placeholder stands for the prompt in an argument.
const placeholder = "{prompt}"

// start starts the program. input is what it is to be given on stdin.
func (a *Agent) start(ctx context.Context, r *turn.Recorder, prompt []byte) (t turn.Transport, input []byte, err error) {
	sctx, started := a.cfg.Watchdog.Starting(ctx, r)
	defer started()
	s, err := a.cfg.Spec(r.Place())
	if err != nil {
		return nil, nil, r.CannotStart(err)
	}
	input = prompt
	s.Args = slices.Clone(s.Args)
	for i, arg := range s.Args {
		if strings.Contains(arg, placeholder) {
			s.Args[i], input = strings.ReplaceAll(arg, placeholder, string(prompt)), nil
		}
	}
	t, err = turn.Start(sctx, s)
	switch {
	case err != nil && sctx.Err() != nil:
		return nil, nil, context.Cause(sctx)
	case err != nil:
		return nil, nil, r.CannotStart(err)
	}
	return t, input, nil
}

// drain is how long the last output of an ended program may take to arrive.
const drain = time.Second

// run reads the answer until the program and all that it started are gone.
func (a *Agent) run(ctx context.Context, r *turn.Recorder, t turn.Transport, input []byte) error {
	var wg sync.WaitGroup
	wg.Go(func() { // a program that reads nothing is no reason to wait
		_, _ = t.Write(input)
		t.CloseWrite()
	})
	read := make(chan struct{})
	go func() {
		defer close(read)
		var d decoder
		buf := make([]byte, 32<<10)
		for {
			n, err := t.Read(buf)
			r.Text(d.write(buf[:n]))
			if err != nil {
				r.Text(d.close())
				return
			}
		}
	}()
	err := a.wait(ctx, r, t)
	if err != nil {
		r.Stop()
		t.Stop()
		<-t.Done()
	}
	wait := time.NewTimer(drain)
	defer wait.Stop()
	select {
	case <-read:
	case <-wait.C: // somebody outside of the tree holds the pipe
	}
	e := t.Exit()
	t.Close()
	<-read
	wg.Wait()
	if err != nil {
		return err
	}
	return judge(r, e)
}

// wait returns when the tree is gone, or with the reason to end it.
func (a *Agent) wait(ctx context.Context, r *turn.Recorder, t turn.Transport) error {
	watch := a.cfg.Watchdog.Watch(r)
	defer watch.Stop()
	for {
		select {
		case <-t.Done():
			return nil
		case <-r.Progress:
			watch.Moved()
		case <-watch.C():
			if err := watch.Bark(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// judge reads how a program ended that nobody ended.
func judge(r *turn.Recorder, e turn.Exit) error {
	if e.Code == 0 && e.Itself {
		r.Ended("end_turn")
		return r.Judge("")
	}
	if turn.Known(e.Stderr) {
		f := turn.Classify(e.Stderr, "", 0)
		f.Text = turn.Clean("the agent " + e.Text)
		return f
	}
	return &kernel.Failure{Class: kernel.ClassExecution, Reason: "agent_died", Text: turn.Clean("the agent " + e.Text)}
}
