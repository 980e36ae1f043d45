package text

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

func TestMain(m *testing.M) { os.Exit(invoketest.Main(m)) }

func open(rest ...string) func(t *testing.T, w *invoketest.World, s invoketest.Script, o invoketest.Options) kernel.Invoker {
	return func(t *testing.T, w *invoketest.World, s invoketest.Script, o invoketest.Options) kernel.Invoker {
		return New(Config{ID: "alpha", Spec: w.Program(t, s, []string{"--text"}, rest), Sessions: w.Mem, Watchdog: o.Watchdog, Hide: o.Hide})
	}
}

func TestContract(t *testing.T) {
	invoketest.Test(t, invoketest.Harness{Process: true, Open: open()})
}

func TestPromptGoesIn(t *testing.T) {
	prompt := "one\ntwo \"three\" {prompt}\n"
	for name, rest := range map[string][]string{"stdin": nil, "argument": {placeholder}} {
		t.Run(name, func(t *testing.T) {
			w := invoketest.NewWorld(t)
			a := open(rest...)(t, w, invoketest.Steps(invoketest.Say("ok")).With("log", w.LogFile()), invoketest.Options{})
			for range 2 { // the second is not made of the first
				w.Good(t, a, w.Request(prompt))
			}
			for _, l := range w.Log(t) {
				if l.Prompt != prompt {
					t.Errorf("got %q", l.Prompt)
				}
			}
		})
	}
}

func TestBytesThatAreNoText(t *testing.T) {
	for raw, want := range map[string]string{
		"a\xffb":           "a\uFFFDb",
		"pending \xed\x95": "pending \uFFFD",
		"one \xed":         "one \uFFFD",
		"한\xed\x95X글":      "한\uFFFD\uFFFDX글",
	} {
		w := invoketest.NewWorld(t)
		s := invoketest.Steps(invoketest.Step{"raw64": base64.StdEncoding.EncodeToString([]byte(raw))})
		if got := w.Good(t, open()(t, w, s, invoketest.Options{}), w.Request("x")); got != want {
			t.Errorf("%q gives %q", raw, got)
		}
	}
}

func TestFailureIsReadFromStderr(t *testing.T) {
	w := invoketest.NewWorld(t)
	s := invoketest.Steps(invoketest.Step{"stderr": "request failed: HTTP 429, retry-after: 7\n"}, invoketest.Step{"exit": 1})
	_, err := w.Invoke(t, open()(t, w, s, invoketest.Options{}), w.Request("x"))
	f := invoketest.Failed(t, err, kernel.ClassRateLimit, "rate_limited")
	if f.RetryAfter.Seconds() != 7 || !strings.Contains(f.Text, "exited with 1") {
		t.Errorf("%s, %s", f.RetryAfter, f.Text)
	}
}

// A session of another protocol cannot go on: the prompt would lack its beginning.
func TestForeignSessionIsForgotten(t *testing.T) {
	w := invoketest.NewWorld(t)
	if err := w.Mem.PutSession(t.Context(), invoketest.Conversation, "alpha", kernel.Session{Native: "n"}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Invoke(t, open()(t, w, invoketest.Steps(invoketest.Say("hi")), invoketest.Options{}), w.Request("x", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSession, "session_gone")
	if _, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha"); !kernel.IsKind(err, kernel.NotFound) {
		t.Errorf("still there: %v", err)
	}
}
