package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"witan/kernel"
	"witan/stages/invoke/jsonrpc"
	"witan/stages/invoke/turn"
)

const maxRequests = 64 // of the agent, unanswered at the same time

// conn is a running agent with its one session.
type conn struct {
	at      place
	t       turn.Transport
	offered kernel.Digest // the tool servers that it knows
	evict   *time.Timer
	out     *jsonrpc.Queue
	noise   turn.Tail
	ctx     context.Context // ends with the reading; its cause says why
	cancel  context.CancelCauseFunc
	read    sync.WaitGroup // the reader and the writer
	asking  sync.WaitGroup // requests of the agent
	slots   chan struct{}
	early   chan result // a result before the first prompt: it could not begin

	mu    sync.Mutex
	job   *job                          // guarded by mu; the running one
	name  string                        // guarded by mu; of the session
	next  int                           // guarded by mu
	calls map[string]chan answer        // guarded by mu; nil channel = settled
	open  map[string]context.CancelFunc // guarded by mu; questions of the agent
	ready bool                          // guarded by mu; it can be given a prompt
	stray bool                          // guarded by mu; it worked when nobody had asked
}

// answer is what the agent says to a request of ours.
type answer struct{ Subtype, Error string }

func newConn(t turn.Transport, at place, session string, limit int) *conn {
	c := &conn{at: at, t: t, name: session, out: jsonrpc.NewQueue(t), slots: make(chan struct{}, maxRequests), early: make(chan result, 1),
		calls: map[string]chan answer{}, open: map[string]context.CancelFunc{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.read.Go(c.out.Run)
	c.read.Go(func() {
		opt := jsonrpc.Options{Limit: limit, Noise: func(line []byte) { _, _ = c.noise.Write(append(line[:len(line):len(line)], '\n')) }}
		err := jsonrpc.Values(c.ctx, t, opt, c.message)
		c.cancel(err)
		c.asking.Wait()
		c.out.Close()
	})
	return c
}

// session is the native name of the session.
func (c *conn) session() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// dead reports whether the agent is gone, or cannot be relied on any more.
func (c *conn) dead() bool {
	c.mu.Lock()
	stray := c.stray
	c.mu.Unlock()
	select {
	case <-c.t.Done():
		return true
	default:
		return stray || c.ctx.Err() != nil
	}
}

// end ends the agent and waits for the last of it.
func (c *conn) end() {
	c.t.Stop()
	<-c.t.Done()
	c.cancel(errGone)
	c.t.Close()
	c.read.Wait()
}

// begin makes j the turn that events belong to; nil for none.
func (c *conn) begin(j *job) {
	c.mu.Lock()
	c.job = j
	c.mu.Unlock()
}

func (c *conn) current() *job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.job
}

// send queues a message; it does not wait until that is read.
func (c *conn) send(v any) {
	line, err := jsonrpc.Encode(v)
	if err != nil {
		panic(err) // what is sent is made of texts and of JSON that was read
	}
	c.out.Add(line, nil)
}

// call sends a request; what comes back is the agent's answer.
func (c *conn) call(subtype string) <-chan answer {
	ch := make(chan answer, 1)
	c.mu.Lock()
	c.next++
	id := fmt.Sprintf("w%d", c.next)
	c.calls[id] = ch
	c.mu.Unlock()
	c.send(map[string]any{"type": "control_request", "request_id": id, "request": map[string]any{"subtype": subtype}})
	return ch
}

// initialize waits until the agent is ready for a prompt.
func (c *conn) initialize(ctx context.Context) error {
	select {
	case a := <-c.call("initialize"):
		if a.Subtype == "error" {
			return &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "protocol_version", Text: turn.Clean("the agent refuses the protocol: " + a.Error)}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ready = true
		return nil
	case res := <-c.early:
		if f := res.failure(nil); f != nil {
			return f
		}
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "protocol_error", Text: "the agent gave a result before it was asked"}
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ctx.Done():
		return c.lost()
	}
}

var errGone = errors.New("the agent closed its output")

// lost is why nothing more is read.
func (c *conn) lost() error {
	select { // what the agent said before it went explains more
	case res := <-c.early:
		if f := res.failure(nil); f != nil {
			return f
		}
	default:
	}
	err := context.Cause(c.ctx)
	var line *jsonrpc.LineError
	if errors.As(err, &line) || errors.Is(err, jsonrpc.ErrMalformed) || errors.Is(err, jsonrpc.ErrUnknownID) {
		return err
	}
	return fmt.Errorf("%w: %v", errGone, err)
}

// because types the errors of the connection; others it leaves alone.
func (c *conn) because(err error, grace time.Duration) error {
	var line *jsonrpc.LineError
	switch {
	case errors.As(err, &line):
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "protocol_line_too_large", Text: line.Error(), Err: err}
	case errors.Is(err, jsonrpc.ErrMalformed) || errors.Is(err, jsonrpc.ErrUnknownID):
		if errors.Is(err, io.ErrUnexpectedEOF) { // the end of the process may explain the cut
			f := c.died(grace)
			if e := c.t.Exit(); e.Itself && e.Code != 0 {
				f.Err = err
				return f
			}
		}
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "protocol_error", Text: turn.Clean(err.Error()), Err: err}
	case errors.Is(err, errGone):
		f := c.died(grace)
		f.Err = err
		return f
	}
	return err
}

// died says how an agent came to close its output. Most often the process is
// about to end by itself.
func (c *conn) died(grace time.Duration) *kernel.Failure {
	wait := time.NewTimer(grace)
	defer wait.Stop()
	select {
	case <-c.t.Done():
	case <-wait.C:
		c.t.Stop()
		<-c.t.Done()
	}
	e := c.t.Exit()
	text := "the agent " + e.Text
	if !e.Itself {
		text = "the agent closed its output"
		if e.Stderr != "" {
			text += "; it last said: " + e.Stderr
		}
	}
	if noise := c.noise.String(); e.Stderr == "" && noise != "" {
		text += "; it printed: " + noise
	}
	f := &kernel.Failure{Class: kernel.ClassExecution, Reason: "agent_died"}
	if turn.Known(e.Stderr) {
		f = turn.Classify(e.Stderr, "", 0)
	}
	f.Text = turn.Clean(text)
	return f
}

func (c *conn) settle(id string, a answer) error {
	c.mu.Lock()
	ch, known := c.calls[id]
	c.calls[id] = nil
	j := c.job
	c.mu.Unlock()
	switch {
	case !known:
		return fmt.Errorf("%w: %.60s", jsonrpc.ErrUnknownID, id)
	case ch != nil:
		ch <- a // has room
	case j != nil:
		j.env.Emit(kernel.Event{Type: "notice", Code: "late_response", Text: "the agent answered a request a second time"})
	}
	return nil
}

func (c *conn) answer(id string, response any) {
	c.send(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": id, "response": response}})
}

func (c *conn) refuse(id, why string) {
	c.send(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "error", "request_id": id, "error": why}})
}

// request answers what the agent asks. A side that asks without reading its
// answers is not read either.
func (c *conn) request(id string, raw json.RawMessage) {
	var r request
	if err := json.Unmarshal(raw, &r); err != nil || r.Subtype != "can_use_tool" {
		c.refuse(id, "method not found: "+r.Subtype)
		return
	}
	j := c.current()
	if j == nil {
		c.answer(id, deny("no turn is running"))
		return
	}
	select {
	case c.slots <- struct{}{}:
	case <-c.ctx.Done():
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	c.open[id] = cancel
	c.mu.Unlock()
	c.asking.Go(func() {
		defer func() { <-c.slots }()
		defer cancel()
		res := j.permission(ctx, r)
		c.mu.Lock()
		delete(c.open, id)
		c.mu.Unlock()
		c.answer(id, res)
	})
}

// withdraw ends a question that the agent does not ask any more.
func (c *conn) withdraw(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.open[id]; cancel != nil {
		cancel()
	}
}
