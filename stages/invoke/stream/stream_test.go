package stream

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/turn"
)

func TestMain(m *testing.M) { os.Exit(invoketest.Main(m)) }

// small is a protocol as small as can be: {"id": SESSION}, {"say": TEXT},
// {"retry": WHY}, {"end": true}.
type small struct {
	t   *Turn
	end bool
}

func (r *small) Value(raw json.RawMessage) error {
	var v struct {
		ID, Say, Retry, Refuse string
		End                    bool
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if v.Refuse != "" {
		return errors.New(v.Refuse)
	}
	if v.Retry != "" {
		r.t.Retry(v.Retry)
	}
	if v.Say != "" {
		r.t.Taken()
	}
	r.t.Message(v.Say)
	if v.End {
		r.end = true
		r.t.R.Ended("end_turn")
		r.t.Over()
	}
	return r.t.Session(v.ID)
}

func (r *small) End(e turn.Exit) error {
	if r.end {
		return nil
	}
	return r.t.Died(e)
}

// open starts a program that prints these lines and does what follows.
func open(t *testing.T, w *invoketest.World, wd turn.Watchdog, out string, then ...invoketest.Step) *Agent {
	steps := append([]invoketest.Step{{"raw": out}}, then...)
	return New(Config{ID: "alpha", Spec: w.Program(t, invoketest.Steps(steps...), []string{"--text"}, nil), Sessions: w.Mem, Watchdog: wd,
		Open: func(tn *Turn, s *proc.Spec) (Reader, []byte, error) { return &small{t: tn}, tn.Req.Prompt, nil }})
}

func TestProgramThatLingersAfterItsAnswer(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := open(t, w, turn.Watchdog{}, `{"say":"done"}{"end":true}`+"\n", invoketest.Step{"hang": true})
	if got := w.Good(t, a, w.Request("x")); got != "done" {
		t.Errorf("%q", got)
	}
}

func TestSilenceIsExplained(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := open(t, w, turn.Watchdog{NoOutput: time.Second}, `{"retry":"no network, with key AKIAIOSFODNN7EXAMPLE"}`+"\n", invoketest.Step{"hang": true})
	_, err := w.Invoke(t, a, w.Request("x"))
	f := invoketest.Failed(t, err, kernel.ClassTimeout, "stalled")
	if !strings.Contains(f.Text, "no network") || strings.Contains(f.Text, "AKIA") || w.Notices("provider_retry") != 1 {
		t.Errorf("%s; %+v", f.Text, w.Events("notice"))
	}
}

func TestHowOutputEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		out, class, reason, text string
		then                     []invoketest.Step
	}{
		"cut, and well":   {out: `{"say":"half"}` + "\n" + `{"sa`, class: kernel.ClassProtocol, reason: "protocol_error"},
		"cut by a death":  {out: `{"say":"half"}` + "\n" + `{"sa`, then: []invoketest.Step{{"exit": 7}}, class: kernel.ClassExecution, reason: "agent_died", text: "exited with 7"},
		"refused":         {out: `{"say":"half"}` + "\n" + `{"refuse":"a second end"}` + "\n", then: []invoketest.Step{{"hang": true}}, class: kernel.ClassProtocol, reason: "protocol_error", text: "a second end"},
		"no end":          {out: `{"say":"half"}`, class: kernel.ClassExecution, reason: "agent_died", text: "exited with 0"},
		"noise explains":  {out: `{"say":"half"}` + "\nFatal: no such option\n", then: []invoketest.Step{{"exit": 2}}, class: kernel.ClassExecution, reason: "agent_died", text: "it printed: Fatal: no such option"},
		"another session": {out: `{"id":"native-a"}{"say":"half"}{"id":"native-b"}`, class: kernel.ClassProtocol, reason: "protocol_error", text: "changed its session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			_, err := w.Invoke(t, open(t, w, turn.Watchdog{}, tc.out, tc.then...), w.Request("x"))
			f := invoketest.Failed(t, err, tc.class, tc.reason)
			if !strings.Contains(f.Text, tc.text) || w.Partial(t, f) != "half" {
				t.Errorf("%s; kept %q", f.Text, w.Partial(t, f))
			}
		})
	}
}

func session(t *testing.T, w *invoketest.World) string {
	t.Helper()
	s, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha")
	if kernel.IsKind(err, kernel.NotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.Native
}

func TestSessionIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		before, out, class, want string
	}{
		"new":                      {out: `{"id":"n-1"}{"say":"x"}{"end":true}`, want: "n-1"},
		"resumed":                  {before: "n-0", out: `{"id":"n-0"}{"say":"x"}{"end":true}`, want: "n-0"},
		"another in its place":     {before: "n-0", out: `{"id":"n-1"}{"say":"x"}{"end":true}`, class: kernel.ClassSession},
		"nothing said":             {before: "n-0", out: `{"id":"n-0"}{"end":true}`, class: kernel.ClassSession},
		"new, of a turn that died": {out: `{"id":"n-1"}{"say":"x"}`, class: kernel.ClassExecution},
		"old, of a turn that died": {before: "n-0", out: `{"id":"n-0"}{"say":"x"}`, class: kernel.ClassExecution, want: "n-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			req := w.Request("x")
			if tc.before != "" {
				if err := w.Mem.PutSession(t.Context(), invoketest.Conversation, "alpha", kernel.Session{Native: tc.before}); err != nil {
					t.Fatal(err)
				}
				req = w.Request("x", invoketest.Continue)
			}
			_, err := w.Invoke(t, open(t, w, turn.Watchdog{}, tc.out), req)
			var f *kernel.Failure
			if errors.As(err, &f) != (tc.class != "") || f != nil && f.Class != tc.class {
				t.Fatalf("%v", err)
			}
			if got := session(t, w); got != tc.want {
				t.Errorf("kept %q, want %q", got, tc.want)
			}
		})
	}
}

// A stopped turn is part of the session only once its prompt is.
func TestSessionOfAStoppedTurn(t *testing.T) {
	for out, want := range map[string]string{`{"id":"n-1"}`: "", `{"id":"n-1"}{"say":"x"}`: "n-1"} {
		w := invoketest.NewWorld(t)
		ready := w.LogFile()
		c := w.Start(t, open(t, w, turn.Watchdog{Notice: 100 * time.Millisecond}, out+`{"retry":"shown"}`+"\n", invoketest.Step{"touch": ready}, invoketest.Step{"hang": true}), w.Request("x"))
		w.Until(t, "the last line", func() bool { return w.Notices("provider_retry") > 0 })
		c.Stop()
		_, err := c.Wait(t)
		invoketest.Failed(t, err, kernel.ClassCancelled, "stopped")
		if got := session(t, w); got != want {
			t.Errorf("%s: kept %q, want %q", out, got, want)
		}
	}
}

func TestNothingToContinue(t *testing.T) {
	w := invoketest.NewWorld(t)
	_, err := w.Invoke(t, open(t, w, turn.Watchdog{}, `{"say":"x"}{"end":true}`), w.Request("x", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSession, "session_gone")
	if len(w.Notes(kernel.DeliverySent)) != 0 {
		t.Error("the prompt was sent")
	}
}

// The id of a session is nobody's business, whoever tells it.
func TestSessionIsNotShown(t *testing.T) {
	w := invoketest.NewWorld(t)
	if err := w.Mem.PutSession(t.Context(), invoketest.Conversation, "alpha", kernel.Session{Native: "native-1"}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Invoke(t, open(t, w, turn.Watchdog{}, `{"id":"native-1"}{"say":"I am native-1"}`, invoketest.Step{"stderr": "native-1 broke"}, invoketest.Step{"exit": 1}), w.Request("x", invoketest.Continue))
	f := invoketest.Failed(t, err, kernel.ClassExecution, "agent_died")
	if all := f.Text + w.Partial(t, f) + w.Shown(); strings.Contains(all, "native-1") || !strings.Contains(all, "[session]") {
		t.Errorf("%s", all)
	}

	w = invoketest.NewWorld(t)
	_, err = w.Invoke(t, open(t, w, turn.Watchdog{}, `{"id":"native-2"}`, invoketest.Step{"stderr": "native-2 broke"}, invoketest.Step{"exit": 1}), w.Request("x"))
	if f := invoketest.Failed(t, err, kernel.ClassExecution, "agent_died"); strings.Contains(f.Text, "native-2") {
		t.Errorf("%s", f.Text)
	}
}
