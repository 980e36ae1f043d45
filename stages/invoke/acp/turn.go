package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"witan/kernel"
	"witan/kernel/plaintext"
	"witan/kernel/secrets"
	"witan/stages/invoke/jsonrpc"
)

// Bounds of one turn.
const (
	maxText     = 64 << 20
	maxOutcomes = 512
	maxTitle    = 400
)

// turn collects what one agent does.
type turn struct {
	a      *Agent
	env    kernel.Env
	req    kernel.InvokeRequest
	obeyed bool // it answered our cancel in time

	mu       sync.Mutex
	text     strings.Builder // guarded by mu
	tools    []kernel.ToolCall
	toolAt   map[string]int
	more     int
	running  map[string]bool
	usage    kernel.Usage
	outcomes []kernel.Outcome
	stop     string
	effects  bool
	answered map[string]json.RawMessage // permission requests by tool call and options
	progress chan struct{}              // holds one token when there was progress
	person   int                        // open questions to a person
}

func newTurn(a *Agent, env kernel.Env, req kernel.InvokeRequest) *turn {
	return &turn{a: a, env: env, req: req, toolAt: map[string]int{}, running: map[string]bool{}, answered: map[string]json.RawMessage{},
		progress: make(chan struct{}, 1)}
}

// prompt sends the delivery and waits for the end of the turn, however it comes.
func (t *turn) prompt(ctx context.Context, c *conn) error {
	if err := t.env.Note(ctx, kernel.DeliverySent, kernel.DeliverySentBody{Agent: t.req.Agent, Fingerprint: t.req.Delivery.Fingerprint, Session: t.req.Delivery.Session}); err != nil {
		return err
	}
	type end struct {
		res json.RawMessage
		err error
	}
	ended := make(chan end, 1)
	pctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		res, err := c.rpc.Call(pctx, "session/prompt", map[string]any{"sessionId": c.session,
			"prompt": []any{map[string]any{"type": "text", "text": string(t.req.Prompt)}}})
		ended <- end{res, err}
	}()
	dog := t.newDog()
	defer dog.stop()
	for {
		select {
		case e := <-ended:
			if e.err != nil {
				return e.err
			}
			return t.finish(e.res)
		case <-t.progress:
			dog.reset()
		case <-dog.c:
			if err := dog.bark(t); err != nil {
				_ = c.rpc.Notify("session/cancel", map[string]any{"sessionId": c.session})
				return err
			}
		case <-ctx.Done():
			err := context.Cause(ctx)
			_ = c.rpc.Notify("session/cancel", map[string]any{"sessionId": c.session})
			grace := time.NewTimer(t.a.cfg.Watchdog.CancelGrace)
			defer grace.Stop()
			select {
			case e := <-ended: // its own end of the turn: process and session are kept
				t.obeyed = e.err == nil
			case <-grace.C:
			}
			return err
		}
	}
}

// goodStops are the protocol's proper ends of a turn.
var goodStops = []string{"end_turn", "max_tokens", "max_turn_requests"}

// finish judges a turn that the agent ended.
func (t *turn) finish(res json.RawMessage) error {
	var r struct {
		Stop  string          `json:"stopReason"`
		Usage json.RawMessage `json:"usage"`
	}
	if err := json.Unmarshal(res, &r); err != nil || r.Stop == "" {
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "no_stop_reason", Text: "the agent ended the turn without saying why"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop = r.Stop
	t.countUsage(r.Usage)
	text := strings.TrimSpace(t.text.String())
	switch {
	case r.Stop == "refusal":
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "refused", Text: "the agent refused to answer"}
	case r.Stop == "cancelled":
		return &kernel.Failure{Class: kernel.ClassCancelled, Reason: "cancelled_by_agent", Text: "the agent cancelled the turn by itself"}
	case !slices.Contains(goodStops, r.Stop):
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "unknown_stop_reason", Text: clean("the agent ended the turn for an unknown reason: " + r.Stop)}
	case text == "" && len(t.tools) == 0:
		return &kernel.Failure{Class: kernel.ClassSession, Reason: "empty_turn", Text: "the agent ended the turn without an answer"}
	}
	if f := readError(text); f != nil {
		return f
	}
	return nil
}

// readError reads answers that are errors in the shape of a reply: some agents
// report provider failures only there.
func readError(text string) *kernel.Failure {
	line := text
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		line = text[i+1:]
	}
	if !strings.HasPrefix(line, "Error: ") || len(line) > 2000 {
		return nil
	}
	return classify(line, "")
}

func (t *turn) reply() kernel.Reply {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := kernel.Reply{Version: kernel.ObjectVersion, Turn: t.req.Delivery.Turn, Delivery: t.req.DeliveryHash, Stop: t.stop,
		Tools: append([]kernel.ToolCall{}, t.tools...), MoreTool: t.more, Usage: t.usage, Outcomes: append([]kernel.Outcome{}, t.outcomes...)}
	if text := t.a.hide(t.text.String()); text != "" {
		d, err := t.env.Packs.Put(context.Background(), "text", []byte(text))
		if err != nil {
			t.env.Log.Error("reply not stored", "err", err)
		}
		r.Text = d
	}
	return r
}

// failure types an error and keeps what had arrived.
func (t *turn) failure(ctx context.Context, c *conn, err error) error {
	var f *kernel.Failure
	if !errors.As(err, &f) {
		f = t.classify(ctx, c, err)
	}
	f.Text = t.a.hide(f.Text)
	if f.Partial == nil {
		r := t.reply()
		if !r.Text.IsZero() || len(r.Tools) > 0 {
			f.Partial = r
		}
	}
	t.mu.Lock()
	f.Effects = f.Effects || t.effects && t.req.Turn.Write
	t.mu.Unlock()
	return f
}

func (t *turn) classify(ctx context.Context, c *conn, err error) *kernel.Failure {
	var line *jsonrpc.LineError
	var rpc *jsonrpc.Error
	switch {
	case errors.Is(err, errStartup) || errors.Is(context.Cause(ctx), errStartup):
		return &kernel.Failure{Class: kernel.ClassTimeout, Reason: "startup_timeout",
			Text: fmt.Sprintf("the agent did not answer within %s of its start", t.a.cfg.Watchdog.Startup), Err: err}
	case ctx.Err() != nil:
		return &kernel.Failure{Class: kernel.ClassCancelled, Reason: "stopped", Status: "stopped", Text: "stopped", Err: err}
	case errors.As(err, &line):
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "protocol_line_too_large", Text: line.Error(), Err: err}
	case errors.As(err, &rpc):
		f := classify(rpc.Message, string(rpc.Data))
		if rpc.Code == -32000 {
			f.Class, f.Reason = kernel.ClassSignIn, "signed_out"
		}
		return f
	case errors.Is(err, jsonrpc.ErrMalformed) || errors.Is(err, jsonrpc.ErrUnknownID):
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "protocol_error", Text: clean(err.Error()), Err: err}
	case kernel.KindOf(err) != kernel.Internal:
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "internal_error", Text: err.Error(), Err: err}
	}
	text := "the agent closed the connection"
	if c != nil {
		c.t.Stop()
		<-c.t.Done()
		text = "the agent " + c.t.Why()
	}
	return &kernel.Failure{Class: kernel.ClassExecution, Reason: "agent_died", Text: clean(text), Err: err}
}

func clean(s string) string {
	s = plaintext.Clean(secrets.Redact(s))
	if rs := []rune(s); len(rs) > 600 {
		s = string(rs[:600]) + "…"
	}
	return s
}

// signs are words by which providers' failures are known, in order.
var signs = []struct {
	words         []string
	class, reason string
}{
	{[]string{"401", "unauthorized", "not logged in", "authentication", "invalid api key", "please run /login"}, kernel.ClassSignIn, "signed_out"},
	{[]string{"429", "rate limit", "rate_limit", "too many requests", "quota"}, kernel.ClassRateLimit, "rate_limited"},
	{[]string{"context length", "context window", "context_length", "prompt is too long", "contextoverflow"}, kernel.ClassContextOverflow, "context_overflow"},
	{[]string{"unknown session", "session not found", "invalid session"}, kernel.ClassSession, "session_gone"},
	{[]string{"econnrefused", "connection refused", "enotfound", "network", "could not connect", "fetch failed", "econnreset"}, kernel.ClassNetwork, "network_error"},
	{[]string{"timed out", "timeout"}, kernel.ClassTimeout, "provider_timeout"},
}

// classify reads the agent's own words of a failure.
func classify(message, data string) *kernel.Failure {
	all := strings.ToLower(message + " " + data)
	for _, s := range signs {
		for _, w := range s.words {
			if strings.Contains(all, w) {
				return &kernel.Failure{Class: s.class, Reason: s.reason, Text: clean(message)}
			}
		}
	}
	return &kernel.Failure{Class: kernel.ClassProvider, Reason: "provider_error", Text: clean(message)}
}

// dog is the watchdog of one turn.
type dog struct {
	w     Watchdog
	last  time.Time
	next  time.Duration
	timer *time.Timer
	c     <-chan time.Time
	said  time.Duration
}

func (t *turn) newDog() *dog {
	d := &dog{w: t.a.cfg.Watchdog, last: time.Now()}
	d.next = min(d.w.Notice, d.w.NoOutput)
	d.timer = time.NewTimer(d.next)
	d.c = d.timer.C
	return d
}

func (d *dog) reset() {
	d.last, d.said = time.Now(), 0
	d.timer.Reset(min(d.w.Notice, d.w.NoOutput))
}

func (d *dog) stop() { d.timer.Stop() }

// bark says that the agent is silent, and in the end gives up on it. An agent
// that waits for a person is not silent.
func (d *dog) bark(t *turn) error {
	t.mu.Lock()
	limit := d.w.NoOutput
	if len(t.running) > 0 {
		limit = max(limit, d.w.Tool)
	}
	person := t.person > 0
	t.mu.Unlock()
	if person {
		d.reset()
		return nil
	}
	silent := time.Since(d.last)
	if silent >= limit {
		return &kernel.Failure{Class: kernel.ClassTimeout, Reason: "stalled", Status: "stalled",
			Text: fmt.Sprintf("the agent was silent for %s and was ended; what it said is kept", silent.Round(time.Second))}
	}
	if silent >= d.w.Notice {
		d.said = silent
		t.env.Emit(kernel.Event{Type: "notice", Code: "silent", Text: fmt.Sprintf("silent for %s", silent.Round(time.Second))})
	}
	d.timer.Reset(min(d.w.Notice, limit-silent))
	return nil
}
