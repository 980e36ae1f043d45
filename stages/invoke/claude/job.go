package claude

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"witan/kernel"
	"witan/stages/invoke/turn"
)

// job is one turn of an agent.
type job struct {
	a       *Agent
	env     kernel.Env
	req     kernel.InvokeRequest
	session string // as it was before the turn
	r       *turn.Recorder
	ctx     context.Context // ends with the turn, and open questions with it
	end     context.CancelFunc
	desk    *turn.Desk
	ended   chan result
	talk    talk // of the reader alone
	error   *told

	mu    sync.Mutex
	asked map[string]bool // guarded by mu; tools that were shown as they were asked about
}

// newJob returns the job of a turn in a session, whose native name stays here.
func newJob(a *Agent, env kernel.Env, req kernel.InvokeRequest, session string) *job {
	hide := turn.Hide{session: "[session]"}
	maps.Copy(hide, a.cfg.Hide)
	j := &job{a: a, env: env, req: req, r: turn.NewRecorder(env, req, hide), session: session, ended: make(chan result, 1), asked: map[string]bool{}}
	j.ctx, j.end = context.WithCancel(context.Background())
	j.desk = turn.NewDesk(j.ctx, j.r, a.cfg.Decide)
	return j
}

// prompt sends the delivery and waits for the end of the turn, however it comes.
// It reports whether the agent can be kept for another turn.
func (j *job) prompt(ctx context.Context, c *conn) (keep bool, err error) {
	if err := j.r.Sending(ctx); err != nil {
		return false, err
	}
	c.begin(j)
	defer c.begin(nil) // also of a turn without a result
	c.send(map[string]any{"type": "user", "message": map[string]any{"role": "user",
		"content": []any{map[string]any{"type": "text", "text": string(j.req.Prompt)}}}})
	watch := j.a.cfg.Watchdog.Watch(j.r)
	defer watch.Stop()
	for {
		select {
		case res := <-j.ended:
			return j.finish(ctx, res)
		case <-c.ctx.Done():
			select {
			case res := <-j.ended: // it came first
				return j.finish(ctx, res)
			default:
				return false, c.lost()
			}
		case <-j.r.Progress:
			watch.Moved()
		case <-watch.C():
			if err := watch.Bark(); err != nil {
				c.call("interrupt")
				return false, err
			}
		case <-ctx.Done():
			return j.stop(c), context.Cause(ctx)
		}
	}
}

// stop interrupts the turn and reports whether the agent obeyed in time. An
// interrupt names no turn, so its answer is waited for too: it could end the
// next one.
func (j *job) stop(c *conn) bool {
	j.r.Stop()
	j.end()
	interrupted := c.call("interrupt")
	grace := time.NewTimer(j.a.cfg.Watchdog.CancelGrace)
	defer grace.Stop()
	ended := j.ended
	for ended != nil || interrupted != nil {
		select {
		case res := <-ended:
			j.usage(res)
			ended = nil
		case <-interrupted:
			interrupted = nil
		case <-c.ctx.Done():
			return false
		case <-grace.C:
			return false
		}
	}
	return true
}

// finish judges a turn that the agent ended.
func (j *job) finish(ctx context.Context, res result) (keep bool, err error) {
	if ctx.Err() != nil { // too late to be a success
		j.r.Stop()
		j.usage(res)
		return true, context.Cause(ctx)
	}
	j.usage(res)
	j.r.Ended(res.stop())
	if f := res.failure(j.error); f != nil {
		return false, f
	}
	j.talk.rest(j.r, res.Result)
	if err := j.r.Judge("claude"); err != nil {
		return false, err
	}
	return true, nil
}

func (j *job) usage(res result) {
	if u, ok := res.usage(); ok {
		j.r.Usage(u)
	}
}

// fail types an error and keeps what had arrived. A session that turned out to
// be dead, or gave nothing, is forgotten, so that the next try gets another.
func (j *job) fail(ctx context.Context, c *conn, err error) error {
	if c != nil && ctx.Err() == nil {
		err = c.because(err, j.a.cfg.Watchdog.CancelGrace)
	}
	err = j.r.Fail(ctx, err, func(err error) *kernel.Failure {
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "agent_died", Text: turn.Clean(err.Error()), Err: err}
	})
	var f *kernel.Failure
	if errors.As(err, &f) && f.Class == kernel.ClassSession && j.req.Turn.Continue {
		ferr := j.a.cfg.Sessions.ForgetSession(context.WithoutCancel(ctx), j.req.Conversation, j.req.Owner)
		if ferr != nil && !kernel.IsKind(ferr, kernel.NotFound) {
			j.env.Log.Error("dead session not forgotten", "err", ferr)
		}
	}
	return err
}

// remember stores the session for the next turn of its scope.
func (j *job) remember(ctx context.Context, c *conn) {
	if j.req.Owner == "" {
		return
	}
	s := kernel.Session{Native: c.session(), Workspace: j.req.Workspace, Seen: j.req.Turn.TurnSeq}
	if err := j.a.cfg.Sessions.PutSession(context.WithoutCancel(ctx), j.req.Conversation, j.req.Owner, s); err != nil {
		j.env.Log.Error("session not stored", "err", err)
	}
}
