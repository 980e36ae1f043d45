package acp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/jsonrpc"
)

// host is an agent's adapter in a new host, over a scripted agent that logs.
func host(t *testing.T, w *invoketest.World, s invoketest.Script) kernel.Invoker {
	a := open(t, w, s.With("log", w.LogFile()), invoketest.Options{})
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func TestSessionGoesOn(t *testing.T) {
	w := invoketest.NewWorld(t)
	s := invoketest.Steps(invoketest.Say("ok")).With("load", true).With("replay", "what was said before")
	first := host(t, w, s)
	w.Good(t, first, w.Request("one"))
	w.Good(t, first, w.Request("two", invoketest.Continue)) // in the same process
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := w.Good(t, host(t, w, s), w.Request("three", invoketest.Continue)); got != "ok" {
		t.Errorf("what a loaded session repeats is no answer: %q", got)
	}
	l := w.Log(t)
	if len(l) != 3 || l[0].Session != l[1].Session || l[0].Session != l[2].Session || l[0].PID != l[1].PID || l[0].PID == l[2].PID {
		t.Errorf("%+v", l)
	}
}

func TestSessionOfAnAgentThatCannotLoad(t *testing.T) {
	w := invoketest.NewWorld(t)
	s := invoketest.Steps(invoketest.Say("ok"))
	w.Good(t, host(t, w, s), w.Request("one"))
	if ses, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha"); err != nil || ses.Host != "host-1" {
		t.Errorf("%+v, %v", ses, err)
	}
	second := host(t, w, s)
	_, err := w.Invoke(t, second, w.Request("two", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSession, "session_gone")
	w.Good(t, second, w.Request("two, rebuilt"))
	if len(w.Log(t)) != 2 {
		t.Error("a prompt was sent to a dead session")
	}
}

// The id that a failing load repeats is not kept.
func TestDeadSessionIsForgotten(t *testing.T) {
	w := invoketest.NewWorld(t)
	put(t, w, "gone-1")
	_, err := w.Invoke(t, host(t, w, invoketest.Steps(invoketest.Say("ok")).With("load", true)), w.Request("x", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSession, "session_gone")
	forgotten(t, w)
}

func put(t *testing.T, w *invoketest.World, native string) {
	t.Helper()
	if err := w.Mem.PutSession(t.Context(), invoketest.Conversation, "alpha", kernel.Session{Native: native, Workspace: w.Workspace}); err != nil {
		t.Fatal(err)
	}
}

func forgotten(t *testing.T, w *invoketest.World) {
	t.Helper()
	if _, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha"); !kernel.IsKind(err, kernel.NotFound) {
		t.Errorf("the session is not forgotten: %v", err)
	}
}

// loading is an agent that can load sessions, if open lets it.
func loading(open func(method string, params json.RawMessage) (any, error), prompt func(context.Context, *peer, string) (any, error)) peer {
	return peer{init: map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{"loadSession": true}}, open: open, prompt: prompt}
}

func TestLoadThatFailsForAnotherReason(t *testing.T) {
	w := invoketest.NewWorld(t)
	put(t, w, "s-9")
	a := newAgent(t, w, loading(func(string, json.RawMessage) (any, error) {
		return nil, &jsonrpc.Error{Code: -32000, Message: "Authentication required"}
	}, nil), invoketest.Options{})
	_, err := w.Invoke(t, a, w.Request("x", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSignIn, "signed_out")
	if _, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha"); err != nil {
		t.Errorf("a session that may live is forgotten: %v", err)
	}
}

// A resumed session that gives nothing is given up: the next try gets a fresh one.
func TestEmptyResumedSessionIsForgotten(t *testing.T) {
	w := invoketest.NewWorld(t)
	put(t, w, "s-9")
	a := newAgent(t, w, loading(func(string, json.RawMessage) (any, error) { return map[string]any{}, nil },
		func(context.Context, *peer, string) (any, error) { return done, nil }), invoketest.Options{})
	_, err := w.Invoke(t, a, w.Request("x", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSession, "empty_turn")
	forgotten(t, w)
}

// A turn of a batch has no session that goes on.
func TestGroupTurnsLeaveNoSession(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := host(t, w, invoketest.Steps(invoketest.Say("ok")))
	batch := func(tn *kernel.Turn) { tn.Plan = "batch" }
	for range 2 {
		w.Good(t, a, w.Request("x", batch))
	}
	forgotten(t, w)
	if l := w.Log(t); l[0].PID != l[1].PID || l[0].Session == l[1].Session {
		t.Errorf("%+v", l)
	}
}

// A process that died while it was idle is replaced, once and unseen.
func TestDeadIdleProcessIsReplaced(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := host(t, w, invoketest.Steps(invoketest.Say("ok")).With("load", true)).(*Agent)
	w.Good(t, a, w.Request("one"))
	killed := w.Log(t)[0].PID
	p, err := os.FindProcess(killed)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	<-kept(a).t.Done()
	w.Good(t, a, w.Request("two", invoketest.Continue))
	if l := w.Log(t); len(l) != 2 || l[1].PID == killed || l[1].Session != l[0].Session {
		t.Errorf("%+v", l)
	}
}

// A reader and a writer are never the same process.
func TestConfinementIsNotShared(t *testing.T) {
	w := invoketest.NewWorld(t)
	file := filepath.Join(w.Workspace, "f")
	a := host(t, w, invoketest.Steps(invoketest.Step{"write": map[string]any{"path": file, "by": "self"}}))
	w.Good(t, a, w.Request("one", invoketest.Write))
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.Good(t, a, w.Request("two"))
	l := w.Log(t)
	if l[0].PID == l[1].PID {
		t.Error("the writer's process was given a read-only turn")
	}
	w.Good(t, a, w.Request("three"))
	if l = w.Log(t); l[1].PID != l[2].PID {
		t.Error("the reader's process was not used again")
	}
}

func TestCloseEndsWhatIsKept(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := open(t, w, invoketest.Steps(invoketest.Step{"tree": 1, "hold": true}), invoketest.Options{}).(*Agent)
	w.Good(t, a, w.Request("one"))
	c := kept(a)
	if c == nil || c.dead() {
		t.Fatal("nothing is kept")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if !c.dead() {
		t.Error("still alive")
	}
	w.Gone(t, 1)
	w2 := invoketest.NewWorld(t)
	b := host(t, w2, invoketest.Steps(invoketest.Say("ok"))).(*Agent)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	w2.Good(t, b, w2.Request("after the end"))
	if kept(b) != nil {
		t.Error("a process is kept after Close")
	}
}

func TestDeathWhileStarting(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := New(config(w, invoketest.Options{}, Process(w.Program(t, invoketest.Steps(), []string{"--nonsense"}, nil))))
	_, err := w.Invoke(t, a, w.Request("x"))
	if f := invoketest.Failed(t, err, kernel.ClassExecution, "agent_died"); !strings.Contains(f.Text, "exited with 2; it last said: usage: fakeagent") {
		t.Error(f.Text)
	}
}
