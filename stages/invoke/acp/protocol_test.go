package acp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/jsonrpc"
)

func TestHandshake(t *testing.T) {
	for name, tc := range map[string]struct {
		p             peer
		class, reason string
	}{
		"another version": {peer{init: map[string]any{"protocolVersion": 7}}, kernel.ClassCompatibility, "protocol_version"},
		"no version":      {peer{init: map[string]any{}}, kernel.ClassCompatibility, "protocol_version"},
		"sign-in": {peer{open: func(string, json.RawMessage) (any, error) {
			return nil, &jsonrpc.Error{Code: -32000, Message: "Authentication required"}
		}}, kernel.ClassSignIn, "signed_out"},
		"no session": {peer{open: func(string, json.RawMessage) (any, error) { return map[string]any{}, nil }}, kernel.ClassProtocol, "no_session"},
	} {
		t.Run(name, func(t *testing.T) {
			w := invoketest.NewWorld(t)
			_, err := w.Invoke(t, newAgent(t, w, tc.p, invoketest.Options{}), w.Request("x"))
			invoketest.Failed(t, err, tc.class, tc.reason)
			if len(w.Notes(kernel.DeliverySent)) != 0 {
				t.Error("the prompt is said to be sent")
			}
		})
	}
}

func TestProgramThatKnowsNoACP(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := New(config(w, invoketest.Options{}, Process(w.Program(t, invoketest.Steps(invoketest.Say("Good morning!\n")), []string{"--text"}, []string{"x"}))))
	_, err := w.Invoke(t, a, w.Request("x"))
	if f := invoketest.Failed(t, err, kernel.ClassExecution, "agent_died"); !strings.Contains(f.Text, "it printed: Good morning!") {
		t.Error(f.Text)
	}
}

func TestEndsOfATurn(t *testing.T) {
	for name, tc := range map[string]struct {
		res           any
		err           error
		text          string
		class, reason string
	}{
		"cut at the limit": {res: map[string]any{"stopReason": "max_tokens"}, text: "half"},
		"refused":          {res: map[string]any{"stopReason": "refusal"}, text: "no", class: kernel.ClassExecution, reason: "refused"},
		"cancelled":        {res: map[string]any{"stopReason": "cancelled"}, text: "no", class: kernel.ClassCancelled, reason: "cancelled_by_agent"},
		"a new reason":     {res: map[string]any{"stopReason": "lunch"}, text: "no", class: kernel.ClassProtocol, reason: "unknown_stop_reason"},
		"no reason":        {res: map[string]any{}, text: "no", class: kernel.ClassProtocol, reason: "no_stop_reason"},
		"rate limit":       {err: &jsonrpc.Error{Code: -32603, Message: "Internal error", Data: json.RawMessage(`{"errorKind":"rate_limit"}`)}, text: "no", class: kernel.ClassRateLimit, reason: "rate_limited"},
		"an error as text": {res: done, text: "Error: 429 Rate limit reached. Please try again later.", class: kernel.ClassRateLimit, reason: "rate_limited"},
	} {
		t.Run(name, func(t *testing.T) {
			w := invoketest.NewWorld(t)
			a := newAgent(t, w, peer{prompt: func(_ context.Context, p *peer, s string) (any, error) {
				p.say(s, tc.text)
				return tc.res, tc.err
			}}, invoketest.Options{})
			r, err := w.Invoke(t, a, w.Request("x"))
			if tc.class == "" {
				if err != nil || w.Text(t, r) != tc.text {
					t.Errorf("%v", err)
				}
				return
			}
			if f := invoketest.Failed(t, err, tc.class, tc.reason); w.Partial(t, f) != tc.text {
				t.Errorf("kept %q", w.Partial(t, f))
			}
		})
	}
}

func TestLateResponseChangesNothing(t *testing.T) {
	w := invoketest.NewWorld(t)
	s := invoketest.Script{"rules": []any{map[string]any{"match": "one", "steps": []invoketest.Step{invoketest.Say("first"), {"late": true}}}},
		"steps": []invoketest.Step{invoketest.Say("second"), {"until_cancel": true}}}
	a := host(t, w, s)
	if got := w.Good(t, a, w.Request("one")); got != "first" {
		t.Errorf("%q", got)
	}
	c := w.Start(t, a, w.Request("two"))
	w.Until(t, "the second text", func() bool { return strings.HasSuffix(w.Shown(), "second") })
	c.Stop()
	_, err := c.Wait(t)
	invoketest.Failed(t, err, kernel.ClassCancelled, "stopped")
}

func TestUnknownRequestIsAnswered(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
		for _, m := range []string{"terminal/create", "craft/drainMidTurnQueue"} {
			_, err := p.rpc.Call(ctx, m, map[string]any{})
			p.say(s, err.Error()+"\n")
		}
		return done, nil
	}}, invoketest.Options{})
	if got := w.Good(t, a, w.Request("x")); strings.Count(got, "(-32601)") != 2 {
		t.Errorf("%q", got)
	}
}

// Evidence of an agent that is not ours is its own declaration.
func TestOutcomes(t *testing.T) {
	content := "line 3 of the file"
	found := kernel.Outcome{Type: "finding", ID: "fnd_1", Severity: "high", Title: "broken", Evidence: []kernel.OutcomeID{"ev_1"}}
	ev := kernel.Outcome{Type: "evidence", ID: "ev_1", Kind: "excerpt", Level: "reproduced", Hash: kernel.Sum([]byte(content))}
	line := func(v map[string]any) invoketest.Step {
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "_witan/outcome", "params": v})
		if err != nil {
			t.Fatal(err)
		}
		return invoketest.Step{"raw": string(b) + "\n"}
	}
	s := invoketest.Steps(line(map[string]any{"outcome": ev, "content": content}), line(map[string]any{"outcome": ev, "content": "something else"}),
		line(map[string]any{"outcome": found}), line(map[string]any{"outcome": kernel.Outcome{Type: "adoption", ID: "x"}}), invoketest.Say("two"))
	for level, connect := range map[string]func(*invoketest.World) Connect{
		"declared":   func(w *invoketest.World) Connect { return Process(w.Program(t, s, nil, nil)) },
		"reproduced": func(*invoketest.World) Connect { return InProcess(invoketest.Serve(s)) },
	} {
		t.Run(level, func(t *testing.T) {
			w := invoketest.NewWorld(t)
			a := New(config(w, invoketest.Options{}, connect(w)))
			defer a.Close()
			r, err := w.Invoke(t, a, w.Request("x"))
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Outcomes) != 2 || r.Outcomes[0].Level != level || r.Outcomes[0].Agent != "alpha" || r.Outcomes[1].ID != "fnd_1" {
				t.Errorf("%+v", r.Outcomes)
			}
			if b, err := w.Mem.Get(t.Context(), ev.Hash); err != nil || string(b) != content {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}
