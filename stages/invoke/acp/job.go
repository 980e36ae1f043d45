package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"witan/kernel"
	"witan/stages/invoke/jsonrpc"
	"witan/stages/invoke/turn"
)

// job is one turn of an agent.
type job struct {
	a    *Agent
	env  kernel.Env
	req  kernel.InvokeRequest
	r    *turn.Recorder
	ctx  context.Context // ends with the turn, and open questions with it
	end  context.CancelFunc
	desk *turn.Desk
}

func newJob(a *Agent, env kernel.Env, req kernel.InvokeRequest) *job {
	j := &job{a: a, env: env, req: req, r: turn.NewRecorder(env, req, a.cfg.Hide)}
	j.ctx, j.end = context.WithCancel(context.Background())
	j.desk = turn.NewDesk(j.ctx, j.r, a.cfg.Decide)
	return j
}

// end is how the agent answered the prompt.
type end struct {
	res json.RawMessage
	err error
}

// prompt sends the delivery and waits for the end of the turn, however it
// comes. It reports whether the agent can be kept for another turn.
func (j *job) prompt(ctx context.Context, c *conn) (keep bool, err error) {
	if err := j.r.Sending(ctx); err != nil {
		return false, err
	}
	ended := make(chan end, 1)
	pctx, stop := context.WithCancel(context.Background()) // a stop of the turn must not lose its answer
	defer stop()
	c.wg.Go(func() {
		res, err := c.rpc.Call(pctx, "session/prompt", map[string]any{"sessionId": c.session,
			"prompt": []any{map[string]any{"type": "text", "text": string(j.req.Prompt)}}})
		ended <- end{res, err}
	})
	watch := j.a.cfg.Watchdog.Watch(j.r)
	defer watch.Stop()
	for {
		select {
		case e := <-ended:
			if ctx.Err() != nil { // too late to be a success
				j.r.Stop()
				return e.err == nil, context.Cause(ctx)
			}
			if e.err != nil {
				return false, e.err
			}
			err := j.finish(c, e.res)
			return err == nil, err
		case <-j.r.Progress:
			watch.Moved()
		case <-watch.C():
			if err := watch.Bark(); err != nil {
				c.cancel()
				return false, err
			}
		case <-ctx.Done():
			return j.stop(c, ended), context.Cause(ctx)
		}
	}
}

// stop cancels the turn and reports whether the agent obeyed in time. A cancel
// names no turn, so an agent that has not answered is not used again: the cancel
// could end its next turn.
func (j *job) stop(c *conn, ended <-chan end) bool {
	j.r.Stop()
	j.end()
	c.cancel()
	grace := time.NewTimer(j.a.cfg.Watchdog.CancelGrace)
	defer grace.Stop()
	select {
	case e := <-ended:
		if e.err == nil {
			j.usage(c, e.res)
		}
		return e.err == nil
	case <-grace.C:
		return false
	}
}

// goodStops are the protocol's proper ends of a turn.
var goodStops = []string{"end_turn", "max_tokens", "max_turn_requests"}

// finish judges a turn that the agent ended.
func (j *job) finish(c *conn, res json.RawMessage) error {
	var r struct {
		Stop string `json:"stopReason"`
	}
	if err := json.Unmarshal(res, &r); err != nil || r.Stop == "" {
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "no_stop_reason", Text: "the agent ended the turn without saying why"}
	}
	j.r.Ended(r.Stop)
	j.usage(c, res)
	switch {
	case r.Stop == "refusal":
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "refused", Text: "the agent refused to answer"}
	case r.Stop == "cancelled":
		return &kernel.Failure{Class: kernel.ClassCancelled, Reason: "cancelled_by_agent", Text: "the agent cancelled the turn by itself"}
	case !slices.Contains(goodStops, r.Stop):
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "unknown_stop_reason", Text: turn.Clean("the agent ended the turn for an unknown reason: " + r.Stop)}
	}
	return j.r.Judge(c.name)
}

// usage takes the counts of a prompt's answer.
func (j *job) usage(c *conn, res json.RawMessage) {
	if u, ok := c.count.add(j.a.cfg.Usage, res); ok {
		j.r.Usage(u)
	}
}

// fail types an error and keeps what had arrived. A session that turned out to
// be dead, or gave nothing, is forgotten, so that the next try gets another.
func (j *job) fail(ctx context.Context, c *conn, err error) error {
	err = j.r.Fail(ctx, err, func(err error) *kernel.Failure { return j.classify(c, err) })
	var f *kernel.Failure
	if errors.As(err, &f) && f.Class == kernel.ClassSession && j.req.Turn.Continue {
		if ferr := j.forget(ctx); ferr != nil {
			j.env.Log.Error("dead session not forgotten", "err", ferr)
		}
	}
	return err
}

// classify types the errors of the connection.
func (j *job) classify(c *conn, err error) *kernel.Failure {
	var line *jsonrpc.LineError
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &line):
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "protocol_line_too_large", Text: line.Error(), Err: err}
	case errors.As(err, &refused):
		return refusal(refused)
	case errors.Is(err, jsonrpc.ErrMalformed) || errors.Is(err, jsonrpc.ErrUnknownID):
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "protocol_error", Text: turn.Clean(err.Error()), Err: err}
	}
	f := &kernel.Failure{Class: kernel.ClassExecution, Reason: "agent_died", Text: "the agent closed the connection", Err: err}
	if c != nil {
		f.Text = c.why(j.a.cfg.Watchdog.CancelGrace)
		if strings.Contains(f.Text, "database is locked") { // another one of its kind starts at this moment
			f.Class, f.Reason = kernel.ClassProvider, "agent_busy"
		}
	}
	return f
}

// authRequired is the protocol's own code.
const authRequired = -32000

// refusal reads an error that the agent answered with.
func refusal(e *jsonrpc.Error) *kernel.Failure {
	f := turn.Classify(e.Message, string(e.Data), e.Code)
	if e.Code == authRequired {
		f.Class, f.Reason = kernel.ClassSignIn, "signed_out"
	}
	f.Err = e
	return f
}
