package builtin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"witan/kernel"
	"witan/kernel/receipts"
	"witan/stages/invoke/builtin"
	"witan/stages/invoke/builtin/work"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is the other side of Serve.
type client struct {
	t    *testing.T
	w    io.WriteCloser
	in   *bufio.Scanner
	done chan error
	seen []wire // notifications so far
}

type wire struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string         `json:"sessionId"`
		Outcome   kernel.Outcome `json:"outcome"`
		Content   *string        `json:"content"`
		Update    struct {
			Kind    string `json:"sessionUpdate"`
			Status  string `json:"status"`
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"update"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func connect(t *testing.T, ctx context.Context, a builtin.Agent) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: t, w: inW, in: bufio.NewScanner(outR), done: make(chan error, 1)}
	c.in.Buffer(nil, 32<<20)
	go func() { c.done <- builtin.Serve(ctx, inR, outW, a) }()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return c
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.w, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// until reads up to the response with this id.
func (c *client) until(id string) wire {
	c.t.Helper()
	for c.in.Scan() {
		var m wire
		if err := json.Unmarshal(c.in.Bytes(), &m); err != nil {
			c.t.Fatalf("%v in %s", err, c.in.Bytes())
		}
		if string(m.ID) == id {
			return m
		}
		if m.ID != nil {
			c.t.Fatalf("answer to nobody: %s", c.in.Bytes())
		}
		c.seen = append(c.seen, m)
	}
	c.t.Fatalf("no answer to %s: %v", id, c.in.Err())
	return wire{}
}

// open makes a session in dir.
func (c *client) open(dir, state string) string {
	c.t.Helper()
	params, err := json.Marshal(map[string]any{"cwd": dir, "mcpServers": []any{}, "_meta": map[string]any{"witan": map[string]any{"state": state}}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	if m := c.until("1"); !strings.Contains(string(m.Result), `"protocolVersion":1`) {
		c.t.Fatalf("initialize gave %s", m.Result)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":` + string(params) + `}`)
	var r struct {
		SessionID string `json:"sessionId"`
	}
	if err := json.Unmarshal(c.until("2").Result, &r); err != nil || r.SessionID == "" {
		c.t.Fatalf("no session: %v", err)
	}
	return r.SessionID
}

func (c *client) text() string {
	var b strings.Builder
	for _, m := range c.seen {
		b.WriteString(m.Params.Update.Content.Text)
	}
	return b.String()
}

func prompt(id, session, text string) string {
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "session/prompt",
		"params": map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": text}}}})
	return string(b)
}

func TestServeTurn(t *testing.T) {
	r := newRepo(t, map[string]string{"README.md": "# T <witan-receipt>{}</witan-receipt>\n\nA [gone](gone.md).\n", "a.json": "{"})
	state := filepath.Join(t.TempDir(), "state")
	for _, id := range []kernel.AgentID{"scout", "inspector", "runner"} {
		t.Run(string(id), func(t *testing.T) {
			c := connect(t, t.Context(), agent(t, id))
			ses := c.open(r.dir, state)
			c.send(prompt("p", ses, "look\n<witan-turn>\n{\"version\":1,\"phase\":\"respond\"}\n</witan-turn>\n"))
			if m := c.until(`"p"`); string(m.Result) != `{"stopReason":"end_turn"}` {
				t.Fatalf("ended with %s %v", m.Result, m.Error)
			}
			text := c.text()
			body, rest, ok := strings.Cut(text, "<witan-receipt>\n")
			if !ok || strings.Contains(body, "<witan-") || strings.TrimSpace(body) == "" {
				t.Errorf("the receipt is not the only marker in %q", text)
			}
			block, tail, _ := strings.Cut(rest, "</witan-receipt>")
			if _, _, err := receipts.Parse([]byte(block), receipts.Expect{Phase: "respond"}, true); err != nil || strings.TrimSpace(tail) != "" {
				t.Errorf("receipt %q: %v", block, err)
			}
			open := 0
			for _, m := range c.seen {
				switch m.Params.Update.Kind {
				case "tool_call":
					open++
				case "tool_call_update":
					open--
				}
				if o := m.Params.Outcome; o.Type == "evidence" && (m.Params.Content == nil || kernel.Sum([]byte(*m.Params.Content)) != o.Hash) {
					t.Errorf("the content of %q does not have its hash", o.Summary)
				}
			}
			if open != 0 {
				t.Errorf("%d tool calls did not end", open)
			}
			c.w.Close()
			if err := <-c.done; err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
	}
}

func TestServeOtherPhase(t *testing.T) {
	r := newRepo(t, map[string]string{"a.txt": "a\n"})
	c := connect(t, t.Context(), agent(t, "scout"))
	c.send(prompt("p", c.open(r.dir, ""), "<witan-turn>{\"phase\":\"respond\"}</witan-turn> quoted\n<witan-turn>\n{\"phase\":\"unheard-of\"}\n</witan-turn>"))
	c.until(`"p"`)
	if strings.Contains(c.text(), "witan-receipt") {
		t.Error("a receipt of another phase was sent")
	}
}

func TestServeRefuses(t *testing.T) {
	c := connect(t, t.Context(), agent(t, "scout"))
	for _, tt := range []struct {
		name, line, id string
		code           int
	}{
		{"unknown method", `{"jsonrpc":"2.0","id":"x","method":"session/load","params":{}}`, `"x"`, -32601},
		{"relative folder", `{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"a"}}`, "7", -32602},
		{"unknown session", prompt("p", "none", "hi"), `"p"`, -32602},
		{"malformed prompt", `{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":[]}`, "8", -32602},
	} {
		c.send(tt.line)
		if m := c.until(tt.id); m.Error == nil || m.Error.Code != tt.code || m.Error.Message == "" {
			t.Errorf("%s: %+v", tt.name, m.Error)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"unknown/notification"}`)
	ses := c.open(filepath.Join(t.TempDir(), "gone"), "")
	c.send(prompt("p", ses, "hi"))
	if m := c.until(`"p"`); m.Error == nil || !strings.Contains(m.Error.Message, "workspace cannot be opened") {
		t.Errorf("a workspace that is gone: %+v", m.Error)
	}
	c.send(`{"jsonrpc":`)
	if err := <-c.done; !kernel.IsKind(err, kernel.Invalid) {
		t.Errorf("a malformed message ended with %v", err)
	}
}

// waiting is an agent that works until it is stopped.
type waiting struct{ started chan string }

func (w *waiting) Info() work.Info { return work.Info{ID: "waiting", Name: "Waiting", Doc: "waits"} }

func (w *waiting) Run(ctx context.Context, turn work.Turn, emit work.Emit) (work.Report, error) {
	w.started <- turn.State
	<-ctx.Done()
	return work.Report{}, context.Cause(ctx)
}

func TestServeCancel(t *testing.T) {
	a := &waiting{started: make(chan string, 1)}
	c := connect(t, t.Context(), a)
	ses := c.open(t.TempDir(), "")
	for range 2 { // the session is good for another turn
		c.send(prompt("p", ses, "hi"))
		dir := <-a.started
		c.send(prompt("q", ses, "hi"))
		if m := c.until(`"q"`); m.Error == nil || m.Error.Code != -32600 {
			t.Errorf("a second turn at the same time: %+v", m)
		}
		c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + ses + `"}}`)
		if m := c.until(`"p"`); string(m.Result) != `{"stopReason":"cancelled"}` {
			t.Errorf("cancel gave %s %+v", m.Result, m.Error)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the temporary folder is still there: %v", err)
		}
	}
}

func TestServeEnds(t *testing.T) {
	stop := errors.New("stop")
	for name, end := range map[string]func(c *client, cancel context.CancelCauseFunc) error{
		"client gone": func(c *client, _ context.CancelCauseFunc) error { c.w.Close(); return nil },
		"host stops":  func(_ *client, cancel context.CancelCauseFunc) error { cancel(stop); return stop },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			a := &waiting{started: make(chan string, 1)}
			c := connect(t, ctx, a)
			c.send(prompt("p", c.open(t.TempDir(), ""), "hi"))
			<-a.started
			go func() { // whatever is still written
				for c.in.Scan() {
				}
			}()
			if want, err := end(c, cancel), <-c.done; !errors.Is(err, want) {
				t.Errorf("Serve ended with %v, want %v", err, want)
			}
		})
	}
}

type panics struct{ waiting }

func (panics) Run(context.Context, work.Turn, work.Emit) (work.Report, error) { panic("parser") }

func TestServePanic(t *testing.T) {
	c := connect(t, t.Context(), &panics{})
	c.send(prompt("p", c.open(t.TempDir(), ""), "hi"))
	if m := c.until(`"p"`); m.Error == nil || m.Error.Code != -32603 {
		t.Errorf("%+v", m)
	}
}
