package claude

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/turn"
)

// entry is what the scripted agent logs of a prompt.
type entry struct {
	Session string   `json:"session"`
	PID     int      `json:"pid"`
	Flags   []string `json:"flags"`
}

func logged(t *testing.T, w *invoketest.World) (out []entry) {
	t.Helper()
	b, err := os.ReadFile(w.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		var e entry
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func has(flags []string, want ...string) bool {
	i := slices.Index(flags, want[0])
	return i >= 0 && i+len(want) <= len(flags) && slices.Equal(flags[i:i+len(want)], want)
}

func TestASessionGoesOn(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	s := invoketest.Steps(invoketest.Say("ok")).With("log", w.LogFile()).With("load", true)
	a := open(t, w, s, invoketest.Options{})
	w.Good(t, a, w.Request("one"))
	w.Good(t, a, w.Request("two", invoketest.Continue))
	w.Good(t, a, w.Request("three")) // starts anew
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	w.Good(t, open(t, w, s, invoketest.Options{}), w.Request("four", invoketest.Continue))
	l := logged(t, w)
	if l[0].PID != l[1].PID || l[1].PID == l[2].PID || l[2].PID == l[3].PID {
		t.Errorf("which goes on in which process: %+v", l)
	}
	if l[0].Session != l[1].Session || l[1].Session == l[2].Session || l[2].Session != l[3].Session {
		t.Errorf("which goes on in which session: %+v", l)
	}
	if !has(l[0].Flags, "--session-id", l[0].Session) || !has(l[3].Flags, "--resume", l[2].Session) || has(l[3].Flags, "--session-id") {
		t.Errorf("%q, %q", l[0].Flags, l[3].Flags)
	}
}

// A session that the program does not know any more is forgotten, once: the next
// try is one of a new session.
func TestADeadSession(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	native := "gone-0000-4000-8000-000000000001"
	if err := w.Mem.PutSession(t.Context(), invoketest.Conversation, "alpha", kernel.Session{Native: native}); err != nil {
		t.Fatal(err)
	}
	a := open(t, w, invoketest.Steps(invoketest.Say("ok")).With("load", true), invoketest.Options{})
	_, err := w.Invoke(t, a, w.Request("x", invoketest.Continue))
	if f := invoketest.Failed(t, err, kernel.ClassSession, "session_gone"); strings.Contains(f.Text, native) {
		t.Errorf("the native id is told: %s", f.Text)
	}
	if len(w.Notes(kernel.DeliverySent)) != 0 {
		t.Error("it is on record that the prompt was sent")
	}
	if _, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha"); !kernel.IsKind(err, kernel.NotFound) {
		t.Errorf("still there: %v", err)
	}
	if got := w.Good(t, a, w.Request("x")); got != "ok" {
		t.Errorf("%q", got)
	}
}

func TestNoSessionToGoOnIn(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	_, err := w.Invoke(t, open(t, w, invoketest.Steps(invoketest.Say("ok")), invoketest.Options{}), w.Request("x", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSession, "session_gone")
}

func TestNativeIDsStayHere(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	native := "5e55104e-0000-4000-8000-000000000001"
	if err := w.Mem.PutSession(t.Context(), invoketest.Conversation, "alpha", kernel.Session{Native: native}); err != nil {
		t.Fatal(err)
	}
	s := invoketest.Steps(invoketest.Say("I am "+native[:10]), invoketest.Say(native[10:]),
		invoketest.Step{"tool": map[string]any{"id": "1", "kind": "read", "title": "Read /tmp/" + native + "/x", "status": "completed"}}).With("load", true)
	r, err := w.Invoke(t, open(t, w, s, invoketest.Options{}), w.Request("x", invoketest.Continue))
	if err != nil || w.Text(t, r) != "I am [session]" || r.Tools[0].Title != "Read /tmp/[session]/x" {
		t.Errorf("%q, %+v, %v", w.Text(t, r), r.Tools, err)
	}
}

// What an agent does when nobody asked makes its process one that is not used again.
func TestWorkBetweenTurns(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"a turn of its own":          `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"by myself"}]}}`,
		"the end of one":             `{"type":"result","subtype":"success","is_error":false}`,
		"the end of a helper's turn": `{"type":"result","subtype":"success","is_error":false,"origin":{"kind":"task-notification"}}`,
	} {
		w := invoketest.NewWorld(t)
		ended := `{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn"}`
		lines := ended + "\n" + raw + "\n"
		if strings.Contains(raw, "origin") { // during the turn: it must not end it
			lines = raw + "\n" + `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"."}}}` + "\n" + ended + "\n"
		}
		s := invoketest.Steps(invoketest.Say("ok"), invoketest.Step{"raw": lines}, invoketest.Step{"unanswered": true}).With("log", w.LogFile()).With("load", true)
		a := open(t, w, s, invoketest.Options{})
		for i := range 2 {
			got := w.Good(t, a, w.Request("x", func(tn *kernel.Turn) { tn.Continue = i > 0 }))
			if want := map[bool]string{false: "ok", true: "ok."}[strings.Contains(raw, "origin")]; got != want {
				t.Errorf("%s: %q", name, got)
			}
			until(t, "the work to be noticed", func() bool { c := kept(a); return c == nil || c.dead() })
		}
		if l := logged(t, w); l[0].PID == l[1].PID || l[0].Session != l[1].Session {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// kept is an agent that waits for its next turn; nil if none does.
func kept(a *Agent) *conn {
	a.idle.mu.Lock()
	defer a.idle.mu.Unlock()
	for _, c := range a.idle.conns {
		return c
	}
	return nil
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick, end := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestIdleAgentsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(a *Agent, w *invoketest.World){
		"in time":         func(*Agent, *invoketest.World) {},
		"with the folder": func(a *Agent, w *invoketest.World) { a.Release(w.Workspace) },
		"with the host":   func(a *Agent, _ *invoketest.World) { _ = a.Close() },
	} {
		w := invoketest.NewWorld(t)
		a := open(t, w, invoketest.Steps(invoketest.Say("ok")), invoketest.Options{}, func(c *Config) {
			if name == "in time" {
				c.Idle = 300 * time.Millisecond
			}
		})
		w.Good(t, a, w.Request("x"))
		c := kept(a)
		if c == nil {
			t.Fatalf("%s: it is not kept", name)
		}
		a.Release("/another/folder")
		end(a, w)
		until(t, "its end "+name, func() bool { return c.dead() && kept(a) == nil })
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	s := invoketest.Steps(invoketest.Say("ok")).With("log", w.LogFile())
	free := func(c *Config) {
		spec := c.Spec
		c.Spec = func(p turn.Place) (proc.Spec, error) {
			out, err := spec(p)
			out.Confine = false
			return out, err
		}
		c.Model, c.Effort = "some-model", "high"
	}
	a, loose := open(t, w, s, invoketest.Options{}), open(t, w, s, invoketest.Options{}, free)
	w.Good(t, a, w.Request("x"))
	w.Good(t, loose, w.Request("x"))
	w.Good(t, loose, w.Request("x", invoketest.Write))
	l := logged(t, w)
	for i, e := range l {
		if !has(e.Flags, "--permission-mode", "default") || !has(e.Flags, "--disallowedTools", unwanted) || has(e.Flags, "--mcp-config") {
			t.Errorf("%d: %q", i, e.Flags)
		}
		if i > 0 && (!has(e.Flags, "--model", "some-model") || !has(e.Flags, "--effort", "high")) {
			t.Errorf("%d: %q", i, e.Flags)
		}
	}
	if _, ok := proc.Landlock(); has(l[0].Flags, "--tools") == ok || has(l[0].Flags, "--model") {
		t.Errorf("held by the system, or not: %q", l[0].Flags)
	}
	if !has(l[1].Flags, "--tools", harmless) || has(l[2].Flags, "--tools") {
		t.Errorf("not held: %q; a writer: %q", l[1].Flags, l[2].Flags)
	}
}

func TestToolServers(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	s := invoketest.Steps(invoketest.Say("ok")).With("log", w.LogFile()).With("load", true)
	a := open(t, w, s, invoketest.Options{})
	ask := func(token string, more bool) {
		req := w.Request("x", func(tn *kernel.Turn) { tn.Continue = more })
		req.MCP = []kernel.MCPServer{{Name: "witan", Command: "/bin/relay", Args: []string{"a"}, Env: map[string]string{"TOKEN": token}}}
		w.Good(t, a, req)
	}
	ask("first-token", false)
	ask("first-token", true)
	ask("second-token", true)
	l := logged(t, w)
	if l[0].PID != l[1].PID || l[1].PID == l[2].PID || l[0].Session != l[2].Session {
		t.Errorf("%+v", l)
	}
	i := slices.Index(l[2].Flags, "--mcp-config")
	if i < 0 || !has(l[2].Flags, "--allowedTools", "mcp__witan") || strings.Contains(strings.Join(l[2].Flags, " "), "token") {
		t.Fatalf("%q", l[2].Flags)
	}
	b, err := os.ReadFile(l[2].Flags[i+1])
	if want := `{"mcpServers":{"witan":{"command":"/bin/relay","args":["a"],"env":{"TOKEN":"second-token"}}}}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	if info, err := os.Stat(l[2].Flags[i+1]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
