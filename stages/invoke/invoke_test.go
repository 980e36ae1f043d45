package invoke_test

import (
	"context"
	"errors"
	"testing"

	"witan/kernel"
	"witan/stages/invoke"
	"witan/stages/invoke/invoketest"
)

// stub is an agent that keeps what it was given.
type stub struct{ got []kernel.InvokeRequest }

func (s *stub) Close() error { return nil }

func (s *stub) Invoke(_ context.Context, _ kernel.Env, req kernel.InvokeRequest) (kernel.Reply, error) {
	s.got = append(s.got, req)
	return kernel.Reply{Version: kernel.ObjectVersion, Delivery: req.DeliveryHash, Stop: "end_turn"}, nil
}

// delivery stores everything that a delivery names.
func delivery(t *testing.T, p kernel.Packs, agent kernel.AgentID, prompt string) kernel.Delivery {
	t.Helper()
	put := func(kind string, v any) kernel.Digest {
		d, err := kernel.PutObject(t.Context(), p, kind, v)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	task := put("task", kernel.Task{Version: 1, Conversation: "conv_1", Text: "do it", Workspace: "/ws"})
	snap := put("snapshot", kernel.Snapshot{Version: 1, Task: task, Text: "do it", Workspace: kernel.Workspace{Kind: "folder", Path: "/ws"}})
	tn := put("turn", kernel.Turn{Version: 1, Agent: agent, Phase: "respond", Round: 1, Snapshot: snap, Write: true})
	text, err := p.Put(t.Context(), "prompt", []byte(prompt))
	if err != nil {
		t.Fatal(err)
	}
	return kernel.Delivery{Version: 1, Turn: tn, Prompt: text, Fingerprint: kernel.Fingerprint([]byte(prompt)), Bytes: int64(len(prompt)), Session: "new", Complete: true}
}

func TestStageResolvesTheDelivery(t *testing.T) {
	w, a := invoketest.NewWorld(t), &stub{}
	st := invoke.New(invoke.Config{Look: func(id kernel.AgentID) (kernel.Invoker, bool) { return a, id == "alpha" }, State: func(tn kernel.Turn) string { return "/state/" + tn.Phase }})
	d := delivery(t, w.Mem, "alpha", "the prompt")
	r, err := st.Run(t.Context(), w.Env(), d)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := kernel.Canonical(d)
	if err != nil || r.Delivery != kernel.Sum(raw) {
		t.Errorf("%s, %v", r.Delivery, err)
	}
	got := a.got[0]
	if string(got.Prompt) != "the prompt" || got.Agent != "alpha" || got.Conversation != "conv_1" || got.Workspace != "/ws" || got.State != "/state/respond" || !got.Turn.Write {
		t.Errorf("%+v", got)
	}
	if s := st.Spec(); s.ID != "invoke/agent" || s.Class != kernel.Once {
		t.Errorf("%+v", s)
	}
}

func TestStageRefuses(t *testing.T) {
	w, a := invoketest.NewWorld(t), &stub{}
	st := invoke.New(invoke.Config{Look: func(id kernel.AgentID) (kernel.Invoker, bool) { return a, id == "alpha" }, State: func(kernel.Turn) string { return "/state" }})
	_, err := st.Run(t.Context(), w.Env(), delivery(t, w.Mem, "nobody", "x"))
	invoketest.Failed(t, err, kernel.ClassCompatibility, "unknown_agent")

	changed := delivery(t, w.Mem, "alpha", "x")
	changed.Fingerprint = kernel.Fingerprint([]byte("y"))
	if _, err := st.Run(t.Context(), w.Env(), changed); !errors.Is(err, &kernel.Error{Kind: kernel.Corrupt}) {
		t.Errorf("another fingerprint: %v", err)
	}
	for name, lose := range map[string]func(*kernel.Delivery){
		"prompt": func(d *kernel.Delivery) { d.Prompt = kernel.Sum([]byte("lost")) },
		"turn":   func(d *kernel.Delivery) { d.Turn = kernel.Sum([]byte("lost")) },
	} {
		d := delivery(t, w.Mem, "alpha", "x")
		lose(&d)
		if _, err := st.Run(t.Context(), w.Env(), d); !kernel.IsKind(err, kernel.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(a.got) != 0 {
		t.Errorf("the agent was given %+v", a.got)
	}
}
