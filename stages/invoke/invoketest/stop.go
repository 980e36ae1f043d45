package invoketest

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/invoke/turn"
)

// brokenPacks stores no text.
type brokenPacks struct {
	kernel.Packs
	err error
}

func (p brokenPacks) Put(context.Context, string, []byte) (kernel.Digest, error) {
	return kernel.Digest{}, p.err
}

// stall is silence that a busy machine does not make of a first word, and obey
// what an agent that obeys never needs.
const (
	stall = 2 * time.Second
	obey  = time.Minute
)

func silence(t *testing.T, h Harness) {
	w := NewWorld(t)
	a := h.open(t, w, Steps(Say("a start"), Step{"hang": true}), Options{Watchdog: turn.Watchdog{Notice: stall / 4, NoOutput: stall}})
	_, err := w.Invoke(t, a, w.Request("x"))
	f := Failed(t, err, kernel.ClassTimeout, "stalled")
	if f.Status != "stalled" || w.Partial(t, f) != "a start" {
		t.Errorf("status %q, kept %q", f.Status, w.Partial(t, f))
	}
	if n := w.Notices("silent"); n < 2 {
		t.Errorf("silence was noticed %d times", n)
	}
}

// stopped checks that a call ended as stopped by the person, and returns what was kept.
func (w *World) stopped(t *testing.T, c *Call) string {
	t.Helper()
	_, err := c.Wait(t)
	f := Failed(t, err, kernel.ClassCancelled, "stopped")
	if f.Status != "stopped" {
		t.Errorf("status %q", f.Status)
	}
	return w.Partial(t, f)
}

func stop(t *testing.T, h Harness) {
	w := NewWorld(t)
	a := h.open(t, w, Steps(Say("begun"), Step{"hang": true}), Options{Watchdog: turn.Watchdog{CancelGrace: obey}})
	c := w.Start(t, a, w.Request("x"))
	w.Until(t, "the first text", func() bool { return w.Shown() == "begun" })
	c.Stop()
	if got := w.stopped(t, c); got != "begun" {
		t.Errorf("kept %q", got)
	}
}

func stopBefore(t *testing.T, h Harness) {
	w := NewWorld(t)
	a := h.open(t, w, Steps(Say("hi")), Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStopped)
	_, err := a.Invoke(ctx, w.Env(), w.Request("x"))
	if f := Failed(t, err, kernel.ClassCancelled, "stopped"); f.Partial != nil {
		t.Errorf("%+v", f.Partial)
	}
}

// stopObeyed: the session, and where it can be the process, are kept for the next
// turn, which goes on in it.
func stopObeyed(t *testing.T, h Harness) {
	w := NewWorld(t)
	a := h.open(t, w, Steps(Say("begun"), Step{"hang": true}).With("log", w.LogFile()).With("load", true), Options{Watchdog: turn.Watchdog{CancelGrace: obey}})
	for i := range 2 {
		before := len(w.Events("text"))
		c := w.Start(t, a, w.Request("x", func(tn *kernel.Turn) { tn.Continue = i > 0 }))
		w.Until(t, "the text", func() bool { return len(w.Events("text")) > before })
		c.Stop()
		if got := w.stopped(t, c); got != "begun" {
			t.Errorf("kept %q", got)
		}
	}
	s, err := w.Mem.Session(t.Context(), Conversation, "alpha")
	if err != nil || s.Native == "" || s.Workspace != w.Workspace || s.Seen != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if !h.Process {
		return
	}
	if l := w.Log(t); len(l) != 2 || l[0].Session != l[1].Session || (l[0].PID == l[1].PID) == h.OneShot {
		t.Errorf("not the same session, or the wrong process: %+v", l)
	}
}

// stopIgnored: what an agent does after a stop, and its late success, do not count.
func stopIgnored(t *testing.T, h Harness) {
	w := NewWorld(t)
	steps := []Step{Say("before"), {"ignore_cancel": true}, {"until_cancel": true}}
	for range 20 {
		steps = append(steps, Say("after"))
	}
	steps = append(steps, Step{"tool": map[string]any{"id": "late", "title": "late"}})
	c := w.Start(t, h.open(t, w, Steps(steps...), Options{Watchdog: turn.Watchdog{CancelGrace: obey}}), w.Request("x"))
	w.Until(t, "the text", func() bool { return w.Shown() == "before" })
	c.Stop()
	if got := w.stopped(t, c); got != "before" {
		t.Errorf("kept %q", got)
	}
	if w.Shown() != "before" || len(w.Events("tool")) != 0 {
		t.Errorf("shown %q and %+v", w.Shown(), w.Events("tool"))
	}
}

// unanswered: a whole answer without its end is kept, and is no success.
func unanswered(t *testing.T, h Harness) {
	w := NewWorld(t)
	a := h.open(t, w, Steps(Say("all of it"), Step{"unanswered": true}), Options{Watchdog: turn.Watchdog{NoOutput: stall}})
	_, err := w.Invoke(t, a, w.Request("x"))
	if f := Failed(t, err, kernel.ClassTimeout, "stalled"); w.Partial(t, f) != "all of it" {
		t.Errorf("kept %q", w.Partial(t, f))
	}
}

// deafTree: an agent that ignores everything is ended with all that it started.
func deafTree(t *testing.T, h Harness) {
	w := NewWorld(t)
	a := h.open(t, w, Steps(Step{"deaf": true}, Step{"tree": 2, "hold": true}, Say("ready"), Step{"hang": true}),
		Options{Watchdog: turn.Watchdog{CancelGrace: 50 * time.Millisecond}})
	c := w.Start(t, a, w.Request("x"))
	w.Until(t, "the tree", func() bool { return strings.HasSuffix(w.Shown(), "ready") })
	c.Stop()
	w.stopped(t, c)
	w.Gone(t, 2)
}

// Gone checks that the ports which n descendants said they hold are free and the
// workspace can be removed.
func (w *World) Gone(t *testing.T, n int) {
	t.Helper()
	var ports []string
	for l := range strings.Lines(w.Shown()) {
		if p, ok := strings.CutPrefix(l, "port "); ok {
			ports = append(ports, strings.TrimSpace(p))
		}
	}
	if len(ports) != n {
		t.Fatalf("%d descendants, want %d: %q", len(ports), n, w.Shown())
	}
	for _, p := range ports {
		if c, err := net.Dial("tcp", p); err == nil {
			c.Close()
			t.Errorf("a descendant still holds %s", p)
		}
	}
	if err := os.RemoveAll(w.Workspace); err != nil {
		t.Error(err)
	}
}

// readsNothing: a prompt that an agent does not take holds up neither a stop nor
// the watchdog.
func readsNothing(t *testing.T, h Harness) {
	w := NewWorld(t)
	s := Steps(Say("x")).With("blind", true)
	prompt := strings.Repeat("word ", 400_000)
	c := w.Start(t, h.open(t, w, s, Options{Watchdog: turn.Watchdog{CancelGrace: 50 * time.Millisecond, NoOutput: 200 * time.Millisecond}}), w.Request(prompt))
	_, err := c.Wait(t)
	Failed(t, err, kernel.ClassTimeout, "stalled")

	c = w.Start(t, h.open(t, w, s, Options{Watchdog: turn.Watchdog{CancelGrace: 50 * time.Millisecond}}), w.Request(prompt))
	w.Until(t, "the prompt to be on its way", func() bool { return len(w.Notes(kernel.DeliverySent)) == 2 })
	c.Stop()
	w.stopped(t, c)
}
