package invoketest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/turn"
)

const killGrace = 100 * time.Millisecond

// Harness is an adapter under test.
type Harness struct {
	// Open returns the adapter for an agent that follows the script.
	Open func(t *testing.T, w *World, s Script, o Options) kernel.Invoker

	Process  bool // the agent has a process of its own
	Protocol bool // there are tools, sessions and a cancel; else only text
	MCP      bool // the agent can be offered tool servers
	OneShot  bool // a process serves one turn; sessions go on in another
	// Between is what stands between two texts with something else between them.
	Between string
	// Harmless is the kind of a tool that changes nothing; "" = read.
	Harmless string
	// NoPending: a tool that is shown runs already.
	NoPending bool
	// Forged is a line that nothing good can have sent, like an answer to what was
	// never asked; "" = that of JSON-RPC.
	Forged string
}

// Options of one test.
type Options struct {
	Watchdog  turn.Watchdog
	LineBytes int
	Hide      turn.Hide
}

// Test is the contract. Each part has a world of its own.
func Test(t *testing.T, h Harness) {
	parts := []struct {
		name string
		need bool // of the adapter, for the part to apply
		run  func(*testing.T, Harness)
	}{
		{"answer", true, answer},
		{"pieces", true, pieces},
		{"one byte per write", true, oneByte},
		{"flood", true, flood},
		{"hidden", true, hidden},
		{"empty", true, empty},
		{"no note, no prompt", true, noNote},
		{"answer not stored", true, notStored},
		{"silence", true, silence},
		{"stop", true, stop},
		{"stop while starting", true, stopBefore},
		{"death", true, death},
		{"tools", h.Protocol, tools},
		{"tool limit", h.Protocol, toolLimit},
		{"noise", h.Protocol, noise},
		{"big line", h.Protocol, bigLine},
		{"malformed", h.Protocol, malformed},
		{"stop obeyed", h.Protocol, stopObeyed},
		{"stop ignored", h.Protocol, stopIgnored},
		{"unanswered", h.Protocol, unanswered},
		{"tool servers", h.MCP, toolServers},
		{"waiting tool", h.MCP, waitingTool},
		{"crash", h.Process, crash},
		{"cannot start", h.Process, cannotStart},
		{"stop of a deaf tree", h.Process, deafTree},
		{"reads nothing", h.Process, readsNothing},
		{"read-only", h.Process, readOnly},
		{"writer", h.Process, writer},
	}
	for _, p := range parts {
		if p.need {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.run(t, h)
			})
		}
	}
}

func (h Harness) open(t *testing.T, w *World, s Script, o Options) kernel.Invoker {
	t.Helper()
	a := h.Open(t, w, s, o)
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func answer(t *testing.T, h Harness) {
	w := NewWorld(t)
	req := w.Request("hello")
	r, err := w.Invoke(t, h.open(t, w, Steps(Say("It is "), Say("fine.\n")), Options{}), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Text(t, r); got != "It is fine.\n" {
		t.Errorf("text is %q", got)
	}
	if w.Shown() != "It is fine.\n" {
		t.Errorf("shown is %q", w.Shown())
	}
	if r.Version != kernel.ObjectVersion || r.Stop != "end_turn" || r.Delivery != req.DeliveryHash || r.Tools == nil || r.Outcomes == nil {
		t.Errorf("%+v", r)
	}
	sent := w.Notes(kernel.DeliverySent)
	want := kernel.DeliverySentBody{Agent: "alpha", Fingerprint: req.Delivery.Fingerprint, Session: "new"}
	if len(sent) != 1 || sent[0].Body != want {
		t.Fatalf("sent: %+v", sent)
	}
	for _, e := range w.Events("")[:sent[0].After] {
		if e.Type == "text" || e.Type == "tool" {
			t.Errorf("%+v came before it was on record that the prompt is sent", e)
		}
	}
}

// odd is text that is easily damaged.
const odd = "é 한 👩\u200d💻 \"quoted\" \\ \u2028 </b> \x1b[31mred\x1b[0m \u202e \ttab\r\n"

func pieces(t *testing.T, h Harness) {
	w := NewWorld(t)
	var steps []Step
	for _, r := range odd {
		steps = append(steps, Say(string(r)))
	}
	if got := w.Good(t, h.open(t, w, Steps(steps...), Options{}), w.Request("x")); got != odd {
		t.Errorf("%q", got)
	}
}

func oneByte(t *testing.T, h Harness) {
	w := NewWorld(t)
	if got := w.Good(t, h.open(t, w, Steps(Step{"bytes": 1, "of": odd}, Say("!")), Options{}), w.Request("x")); got != odd+"!" {
		t.Errorf("%q", got)
	}
	if w.Shown() != odd+"!" {
		t.Errorf("shown %q", w.Shown())
	}
}

func flood(t *testing.T, h Harness) {
	const n = 20_000
	var want strings.Builder
	for i := range n {
		fmt.Fprintf(&want, "%d ", i)
	}
	w := NewWorld(t)
	if got := w.Good(t, h.open(t, w, Steps(Step{"flood": n}, Say("end")), Options{}), w.Request("x")); got != want.String()+"end" {
		t.Errorf("%d bytes, want %d", len(got), want.Len()+3)
	}
}

// hidden: what must not leave the host does not, also in pieces and in errors.
func hidden(t *testing.T, h Harness) {
	w := NewWorld(t)
	o := Options{Hide: turn.Hide{"swordfish": "[KEY]"}}
	if got := w.Good(t, h.open(t, w, Steps(Say("it is sword"), Say("fi"), Say("sh."), Say(" sword")), o), w.Request("x")); got != "it is [KEY]. sword" {
		t.Errorf("%q", got)
	}
	if w.Shown() != "it is [KEY]. sword" {
		t.Errorf("shown %q", w.Shown())
	}
}

func empty(t *testing.T, h Harness) {
	w := NewWorld(t)
	_, err := w.Invoke(t, h.open(t, w, Steps(Say(" \n")), Options{}), w.Request("x"))
	Failed(t, err, kernel.ClassSession, "empty_turn")
}

// noNote: what is not on record is not sent.
func noNote(t *testing.T, h Harness) {
	w := NewWorld(t)
	full := kernel.E("test", kernel.NoSpace, nil, "the disk is full")
	w.RefuseNotes(full)
	_, err := w.Invoke(t, h.open(t, w, Steps(Say("hi")).With("log", w.LogFile()), Options{}), w.Request("x"))
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(w.LogFile()); err == nil {
		t.Error("the agent was given its prompt")
	}
}

// notStored: a reply whose text cannot be stored is no reply.
func notStored(t *testing.T, h Harness) {
	w := NewWorld(t)
	env := w.Env()
	full := kernel.E("test", kernel.NoSpace, nil, "the disk is full")
	env.Packs = brokenPacks{w.Mem, full}
	_, err := h.open(t, w, Steps(Say("hi")), Options{}).Invoke(t.Context(), env, w.Request("x"))
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

func tools(t *testing.T, h Harness) {
	w := NewWorld(t)
	kind := h.Harmless
	if kind == "" {
		kind = "read"
	}
	r, err := w.Invoke(t, h.open(t, w, Steps(
		Step{"tool": map[string]any{"id": "1", "kind": kind, "title": "Read\x1b[31m a\nfile", "status": "in_progress"}},
		Step{"tool": map[string]any{"id": "1", "status": "completed"}},
		Step{"tool": map[string]any{"id": "2", "title": strings.Repeat("long ", 200)}},
	), Options{}), w.Request("x"))
	if err != nil {
		t.Fatal(err) // a tool result is a result
	}
	if len(r.Tools) != 2 || r.Tools[0] != (kernel.ToolCall{ID: "1", Kind: kind, Title: "Read a file", Status: "completed"}) {
		t.Fatalf("%+v", r.Tools)
	}
	status := "pending"
	if h.NoPending {
		status = "in_progress"
	}
	if two := r.Tools[1]; two.Kind != "other" || two.Status != status || len(two.Title) > 410 {
		t.Errorf("%+v", two)
	}
	if ev := w.Events("tool"); len(ev) != 3 || ev[0].Tool.Status != "in_progress" || ev[1].Tool != r.Tools[0] {
		t.Errorf("%+v", ev)
	}
}

func toolLimit(t *testing.T, h Harness) {
	w := NewWorld(t)
	var steps []Step
	for i := range kernel.MaxReplyTools + 10 {
		for _, status := range []string{"in_progress", "completed"} {
			steps = append(steps, Step{"tool": map[string]any{"id": fmt.Sprint("t", i), "title": "x", "status": status}})
		}
	}
	r, err := w.Invoke(t, h.open(t, w, Steps(steps...), Options{}), w.Request("x"))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tools) != kernel.MaxReplyTools || r.MoreTool != 10 {
		t.Errorf("%d tools and %d more", len(r.Tools), r.MoreTool)
	}
}

func noise(t *testing.T, h Harness) {
	w := NewWorld(t)
	line := `{"jsonrpc":"2.0","method":`
	got := w.Good(t, h.open(t, w, Steps(
		Step{"raw": "Welcome!\n\r\n\n  [info] started\r\n"}, Say("a"),
		Step{"raw": line + `"no/such","params":{}}` + "\n" + line + `"session/update","params":{"update":{"sessionUpdate":"no_such_kind","content":{"type":"text","text":"x"}}}}` + "\n"}, Say("b"),
		Step{"raw": line + `"session/update","params":{"sessionId":"another","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}` + "\n"}, Say("c"),
		Step{"raw": line + `"session/update","params":"what"}` + "\n"}, Say("d"),
	), Options{}), w.Request("x"))
	want := strings.Join([]string{"a", "b", "c", "d"}, h.Between)
	if got != want || w.Shown() != want {
		t.Errorf("%q, shown %q", got, w.Shown())
	}
}

func bigLine(t *testing.T, h Harness) {
	for _, n := range []int{70 << 10, 1_100 << 10, 12 << 20} {
		w := NewWorld(t)
		if got := w.Good(t, h.open(t, w, Steps(Step{"line": n}, Say("after")), Options{}), w.Request("x")); got != "after" {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
	w := NewWorld(t)
	_, err := w.Invoke(t, h.open(t, w, Steps(Say("before"), Step{"line": 3 << 20}, Say("after")), Options{LineBytes: 1 << 20}), w.Request("x"))
	f := Failed(t, err, kernel.ClassProtocol, "protocol_line_too_large")
	bytes := 0
	if _, serr := fmt.Sscanf(f.Text, "a line of %d bytes", &bytes); serr != nil || bytes < 3<<20 || bytes > 3<<20+1000 || w.Partial(t, f) != "before" {
		t.Errorf("kept %q; %s", w.Partial(t, f), f.Text)
	}
}

func malformed(t *testing.T, h Harness) {
	forged := h.Forged
	if forged == "" {
		forged = `{"jsonrpc":"2.0","id":77,"result":{}}`
	}
	for _, raw := range []string{`{"jsonrpc":"2.0","method":"session/upd` + "\n", forged + "\n"} {
		w := NewWorld(t)
		_, err := w.Invoke(t, h.open(t, w, Steps(Say("before"), Step{"raw": raw}, Say("after")), Options{}), w.Request("x"))
		if f := Failed(t, err, kernel.ClassProtocol, "protocol_error"); w.Partial(t, f) != "before" {
			t.Errorf("kept %q", w.Partial(t, f))
		}
	}
}

func death(t *testing.T, h Harness) {
	w := NewWorld(t)
	a := h.open(t, w, Steps(Say("half"), Step{"stderr": "panic: of key AKIAIOSFODNN7EXAMPLE and swordfish\n"}, Step{"exit": 3}), Options{Hide: turn.Hide{"swordfish": "[KEY]"}})
	_, err := w.Invoke(t, a, w.Request("x"))
	f := Failed(t, err, kernel.ClassExecution, "agent_died")
	if f.Status != "" || w.Partial(t, f) != "half" {
		t.Errorf("status %q, kept %q", f.Status, w.Partial(t, f))
	}
	if strings.Contains(f.Text, "AKIA") || strings.Contains(f.Text, "swordfish") {
		t.Errorf("%s", f.Text)
	}
	if h.Process && (!strings.Contains(f.Text, "exited with 3") || !strings.Contains(f.Text, "panic: of key")) {
		t.Errorf("%s", f.Text)
	}
}

func crash(t *testing.T, h Harness) {
	w := NewWorld(t)
	_, err := w.Invoke(t, h.open(t, w, Steps(Say("half"), Step{"crash": true}), Options{}), w.Request("x"))
	if f := Failed(t, err, kernel.ClassExecution, "agent_died"); !strings.Contains(f.Text, "killed") || w.Partial(t, f) != "half" {
		t.Errorf("%s, kept %q", f.Text, w.Partial(t, f))
	}
}

func cannotStart(t *testing.T, h Harness) {
	w := NewWorld(t)
	a := h.open(t, w, Steps(Say("hi")), Options{})
	if err := os.RemoveAll(w.Workspace); err != nil {
		t.Fatal(err)
	}
	_, err := w.Invoke(t, a, w.Request("x"))
	if f := Failed(t, err, kernel.ClassCompatibility, "cannot_start"); !strings.Contains(f.Text, w.Workspace) {
		t.Errorf("does not say what is missing: %s", f.Text)
	}
}

func readOnly(t *testing.T, h Harness) {
	w := NewWorld(t)
	target := func(by string) string { return filepath.Join(w.Workspace, by) }
	keep := target("keep")
	if err := os.WriteFile(keep, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := []Step{{"write": map[string]any{"path": filepath.Join(w.State, "own"), "by": "self"}}, {"write": map[string]any{"path": keep, "by": "self"}}}
	ways := []string{"self", "child", "setsid"}
	for _, by := range ways {
		steps = append(steps, Step{"write": map[string]any{"path": target(by), "by": by}})
	}
	got := w.Good(t, h.open(t, w, Steps(steps...), Options{}), w.Request("x"))
	if !strings.HasPrefix(got, "write by self worked\n") {
		t.Errorf("its own folder: %q", got)
	}
	if _, ok := proc.Landlock(); !ok {
		if w.Notices("not_confined") != 1 {
			t.Error("it is not said that the turn is not held")
		}
		return
	}
	if w.Notices("not_confined") != 0 {
		t.Error("the turn is held")
	}
	if n := strings.Count(got, "failed"); n != 4 {
		t.Errorf("%d of 4 writes failed: %q", n, got)
	}
	for _, by := range ways {
		if _, err := os.Lstat(target(by)); err == nil {
			t.Errorf("%s was written", by)
		}
	}
	if b, err := os.ReadFile(keep); string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
}

func writer(t *testing.T, h Harness) {
	w := NewWorld(t)
	file := filepath.Join(w.Workspace, "new")
	got := w.Good(t, h.open(t, w, Steps(Step{"write": map[string]any{"path": file, "by": "setsid"}}), Options{}), w.Request("x", Write))
	if got != "write by setsid worked\n" {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
