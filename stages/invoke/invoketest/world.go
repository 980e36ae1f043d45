package invoketest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stages/invoke/proc"
)

// World is what an adapter under test meets: stores, a workspace, and somebody
// who watches.
type World struct {
	Mem       *kerneltest.Mem
	Workspace string
	State     string // the agent's private folder; always writable

	mu     sync.Mutex
	events []kernel.Event // guarded by mu
	notes  []Note         // guarded by mu
	more   chan struct{}  // guarded by mu; closed and replaced when there is more
	fail   error          // guarded by mu; what Note answers
}

// Note is a record that the adapter made durable. After is how many events had
// been shown before.
type Note struct {
	Kind  kernel.RecordKind
	Body  any
	After int
}

// Conversation is the one that all turns of a World belong to.
var Conversation = kerneltest.Conv(1).ID

// NewWorld returns an empty one.
func NewWorld(t *testing.T) *World {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Mem: kerneltest.NewMem(), Workspace: filepath.Join(dir, "ws"), State: filepath.Join(dir, "state"), more: make(chan struct{})}
	for _, d := range []string{w.Workspace, w.State} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Mem.PutConversation(t.Context(), kerneltest.Conv(1)); err != nil {
		t.Fatal(err)
	}
	return w
}

// Env is that of one attempt.
func (w *World) Env() kernel.Env {
	return kernel.Env{Run: kerneltest.Run(1), Attempt: "at_1", Now: time.Now, Log: slog.New(slog.DiscardHandler), Packs: w.Mem,
		Emit: func(e kernel.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
			w.wake()
		},
		Note: func(_ context.Context, kind kernel.RecordKind, body any) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.notes = append(w.notes, Note{kind, body, len(w.events)})
			w.wake()
			return w.fail
		}}
}

// wake lets Until look again; mu is held.
func (w *World) wake() {
	close(w.more)
	w.more = make(chan struct{})
}

// RefuseNotes lets every Note fail from here on.
func (w *World) RefuseNotes(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = err
}

// Request is a read-only direct turn with this prompt; change makes it another.
func (w *World) Request(prompt string, change ...func(*kernel.Turn)) kernel.InvokeRequest {
	tn := kernel.Turn{Version: kernel.ObjectVersion, Run: kerneltest.Run(1), Plan: "direct", Phase: "respond", Round: 1, Agent: "alpha",
		Role: "member", Members: []kernel.AgentID{"alpha"}, TurnSeq: 2}
	for _, c := range change {
		c(&tn)
	}
	owner := tn.Agent
	if tn.Plan == "batch" {
		owner = ""
	}
	d := kernel.Delivery{Version: kernel.ObjectVersion, Fingerprint: kernel.Fingerprint([]byte(prompt)), Bytes: int64(len(prompt)), Session: "new", Complete: true}
	return kernel.InvokeRequest{Agent: "alpha", Conversation: Conversation, Owner: owner, Delivery: d, Turn: tn, Prompt: []byte(prompt), Workspace: w.Workspace, State: w.State}
}

// Continue makes a turn one that goes on in the native session.
func Continue(t *kernel.Turn) { t.Continue = true }

// Write makes a turn one that may write the workspace.
func Write(t *kernel.Turn) { t.Write = true }

// Events are those of a type so far; "" is all.
func (w *World) Events(typ string) []kernel.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []kernel.Event
	for _, e := range w.events {
		if typ == "" || e.Type == typ {
			out = append(out, e)
		}
	}
	return out
}

// Shown is the text that was shown so far.
func (w *World) Shown() string {
	var b strings.Builder
	for _, e := range w.Events("text") {
		b.WriteString(e.Text)
	}
	return b.String()
}

// Notices counts the notices with a code so far.
func (w *World) Notices(code string) (n int) {
	for _, e := range w.Events("notice") {
		if e.Code == code {
			n++
		}
	}
	return n
}

// Notes are the records of a kind so far.
func (w *World) Notes(kind kernel.RecordKind) []Note {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Note
	for _, n := range w.notes {
		if n.Kind == kind {
			out = append(out, n)
		}
	}
	return out
}

// patience only ends a test that is broken.
const patience = time.Minute

// Until waits until what was shown makes done true.
func (w *World) Until(t *testing.T, what string, done func() bool) {
	t.Helper()
	end := time.After(patience)
	for {
		w.mu.Lock()
		more := w.more
		w.mu.Unlock()
		if done() {
			return
		}
		select {
		case <-more:
		case <-end:
			t.Fatalf("waited in vain for %s; shown: %.500q", what, w.Shown())
		}
	}
}

// Call is an Invoke under way.
type Call struct {
	stop context.CancelCauseFunc
	done chan struct{}
	rep  kernel.Reply
	err  error
}

var errStopped = errors.New("stopped by the test")

// Start invokes in the background.
func (w *World) Start(t *testing.T, a kernel.Invoker, req kernel.InvokeRequest) *Call {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(t.Context()))
	c := &Call{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.rep, c.err = a.Invoke(ctx, w.Env(), req)
	}()
	t.Cleanup(func() { stop(errStopped); <-c.done })
	return c
}

// Stop stops it as a person would.
func (c *Call) Stop() { c.stop(errStopped) }

// Wait returns how it ended.
func (c *Call) Wait(t *testing.T) (kernel.Reply, error) {
	t.Helper()
	select {
	case <-c.done:
		return c.rep, c.err
	case <-time.After(patience):
		t.Fatal("Invoke does not return")
		panic("unreachable")
	}
}

// Invoke is Start and Wait.
func (w *World) Invoke(t *testing.T, a kernel.Invoker, req kernel.InvokeRequest) (kernel.Reply, error) {
	t.Helper()
	return w.Start(t, a, req).Wait(t)
}

// Text is the text of a reply.
func (w *World) Text(t *testing.T, r kernel.Reply) string {
	t.Helper()
	if r.Text.IsZero() {
		return ""
	}
	b, err := w.Mem.Get(t.Context(), r.Text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Good invokes and returns the text of the reply.
func (w *World) Good(t *testing.T, a kernel.Invoker, req kernel.InvokeRequest) string {
	t.Helper()
	r, err := w.Invoke(t, a, req)
	if err != nil {
		t.Fatal(err)
	}
	return w.Text(t, r)
}

// Failed checks how an Invoke failed and returns the failure.
func Failed(t *testing.T, err error, class, reason string) *kernel.Failure {
	t.Helper()
	var f *kernel.Failure
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a failure %s: %s", err, class, reason)
	}
	if f.Class != class || f.Reason != reason {
		t.Fatalf("got %s: %s (%s), want %s: %s", f.Class, f.Reason, f.Text, class, reason)
	}
	return f
}

// Partial is the text that a failure kept.
func (w *World) Partial(t *testing.T, f *kernel.Failure) string {
	t.Helper()
	if f.Partial == nil {
		return ""
	}
	return w.Text(t, f.Partial.(kernel.Reply))
}

// LogLine is what a scripted agent logs of a prompt.
type LogLine struct {
	Session string `json:"session"`
	Prompt  string `json:"prompt"`
	PID     int    `json:"pid"`
}

// LogFile is where a scripted agent may log.
func (w *World) LogFile() string { return filepath.Join(w.State, "log") }

// Log reads it.
func (w *World) Log(t *testing.T) (out []LogLine) {
	t.Helper()
	b, err := os.ReadFile(w.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		var e LogLine
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		out = append(out, e)
	}
	return out
}

// Main is the body of a TestMain; its result is the exit code.
func Main(m *testing.M) int {
	if code, ok := proc.Main(os.Args[1:]); ok {
		return code
	}
	if len(os.Args) > 1 && os.Args[1] == serveTools {
		return toolServer(os.Args[2:], os.Stdin, os.Stdout)
	}
	defer removeFake()
	return m.Run()
}
