package acp

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/jsonrpc"
)

// peer is an agent in this process, written in Go: prompt answers.
type peer struct {
	rpc    *jsonrpc.Conn
	init   map[string]any // its answer to initialize; nil = version 1
	mute   bool           // initialize is never answered
	open   func(method string, params json.RawMessage) (any, error)
	prompt func(ctx context.Context, p *peer, session string) (any, error)
	told   chan struct{} // closed by session/cancel
}

var done = map[string]any{"stopReason": "end_turn"}

func (p *peer) Notify(method string, _ json.RawMessage) {
	if method == "session/cancel" {
		close(p.told)
	}
}

func (p *peer) Request(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "initialize":
		if p.mute {
			<-ctx.Done()
		}
		if p.init != nil {
			return p.init, nil
		}
		return map[string]any{"protocolVersion": 1}, nil
	case "session/prompt":
		var s struct {
			ID string `json:"sessionId"`
		}
		_ = json.Unmarshal(params, &s)
		return p.prompt(ctx, p, s.ID)
	}
	if p.open != nil {
		return p.open(method, params)
	}
	return map[string]any{"sessionId": "s-1"}, nil
}

// update sends a session update; extra are its fields.
func (p *peer) update(session, kind string, extra map[string]any) {
	u := map[string]any{"sessionUpdate": kind}
	for k, v := range extra {
		u[k] = v
	}
	_ = p.rpc.Notify("session/update", map[string]any{"sessionId": session, "update": u})
}

func (p *peer) say(session, text string) {
	p.update(session, "agent_message_chunk", map[string]any{"content": map[string]any{"type": "text", "text": text}})
}

// connect is a Connect to a new copy of p for each process that would be started.
func connect(p peer) Connect {
	return InProcess(func(ctx context.Context, r io.Reader, w io.Writer) error {
		p := p
		p.told = make(chan struct{})
		ready := make(chan struct{})
		p.rpc = jsonrpc.New(waiting{r, ready}, w, &p, jsonrpc.Options{})
		close(ready)
		select {
		case <-p.rpc.Done():
		case <-ctx.Done():
			p.rpc.Close()
			<-p.rpc.Done()
		}
		return nil
	})
}

// waiting reads when ready is closed, so that a handler finds its connection.
type waiting struct {
	io.Reader
	ready <-chan struct{}
}

func (w waiting) Read(b []byte) (int, error) {
	<-w.ready
	return w.Reader.Read(b)
}

// cancelled waits for a cancel, or for the end of the connection.
func (p *peer) cancelled(ctx context.Context) {
	select {
	case <-p.told:
	case <-ctx.Done():
	}
}

// ask sends a permission request and returns the answer: an option, or "cancelled".
func (p *peer) ask(session, call, kind string, options ...[2]string) string {
	return p.askFor(session, map[string]any{"toolCallId": call, "title": "Do " + call, "kind": kind}, options...)
}

func (p *peer) askFor(session string, call map[string]any, options ...[2]string) string {
	var opts []any
	for _, o := range options {
		opts = append(opts, map[string]any{"optionId": o[0], "kind": o[1], "name": o[0]})
	}
	res, err := p.rpc.Call(context.Background(), "session/request_permission", map[string]any{"sessionId": session,
		"toolCall": call, "options": opts})
	if err != nil {
		return err.Error()
	}
	var r struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(res, &r)
	if r.Outcome.Option != "" {
		return r.Outcome.Option
	}
	return r.Outcome.Outcome
}

// newAgent returns the adapter of p; change completes its configuration.
func newAgent(t *testing.T, w *invoketest.World, p peer, o invoketest.Options, change ...func(*Config)) *Agent {
	c := config(w, o, connect(p))
	for _, f := range change {
		f(&c)
	}
	a := New(c)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// kept is an agent that waits for its next turn; nil if none does.
func kept(a *Agent) *conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.idle {
		return c
	}
	return nil
}
