package opencode

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

func same(a, b kernel.Usage) bool {
	a.Complete, b.Complete = false, false
	return reflect.DeepEqual(a, b)
}

func kernelText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func keep(t *testing.T, w *invoketest.World, native string) {
	t.Helper()
	if err := w.Mem.PutSession(t.Context(), invoketest.Conversation, "alpha", kernel.Session{Native: native}); err != nil {
		t.Fatal(err)
	}
}

func kept(t *testing.T, w *invoketest.World) string {
	t.Helper()
	s, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha")
	if err != nil && !kernel.IsKind(err, kernel.NotFound) {
		t.Fatal(err)
	}
	return s.Native
}

func TestRecordedResume(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	keep(t, w, "ses_recorded")
	r, err := w.Invoke(t, open(t, w, recorded(t, "resumed"), invoketest.Options{}), w.Request("x", invoketest.Continue))
	if err != nil || w.Text(t, r) != "Plain reply without reasoning." || *r.Usage.Input != 100 || kept(t, w) != "ses_recorded" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDeadSessionIsForgottenOnce(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	keep(t, w, "ses_gone")
	a := open(t, w, invoketest.Steps(invoketest.Say("hi")).With("load", true), invoketest.Options{})
	_, err := w.Invoke(t, a, w.Request("x", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSession, "session_gone")
	if kept(t, w) != "" {
		t.Error("it is kept")
	}
	w.Good(t, a, w.Request("x"))
	if kept(t, w) == "" {
		t.Error("the new one is not kept")
	}
}

// What a sub-agent says is no part of the answer; that it changed something is.
func TestSubAgentsAreFolded(t *testing.T) {
	t.Parallel()
	for tool, changed := range map[string]bool{"bash": true, "read": false} {
		w := invoketest.NewWorld(t)
		out := step + say + strings.ReplaceAll(step+say+`{"type":"tool_use","sessionID":"ses_1","part":{"tool":"`+tool+`","callID":"c","state":{"status":"completed"}}}`+"\n"+ended("stop"), "ses_1", "ses_2")
		_, err := w.Invoke(t, open(t, w, plain(out), invoketest.Options{}), w.Request("x", invoketest.Write))
		f := invoketest.Failed(t, err, kernel.ClassExecution, "agent_died") // its end is not that of the turn
		if w.Partial(t, f) != "words" || f.Effects != changed || len(w.Events("tool")) != 0 {
			t.Errorf("%s: kept %q, effects %v, %+v", tool, w.Partial(t, f), f.Effects, w.Events("tool"))
		}
	}
}

func TestTitlesOfTools(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	out := step
	for i, in := range []string{`{"filePath":` + kernelText(t, filepath.Join(w.Workspace, "a", "b.go")) + `}`, `{"filePath":"/etc/x"}`, `{"pattern":"func"}`, `"any shape"`, `{"filePath":7}`} {
		out += `{"type":"tool_use","sessionID":"ses_1","part":{"tool":"read","callID":"c` + string(rune('0'+i)) + `","state":{"status":"completed","input":` + in + `}}}` + "\n"
	}
	r, err := w.Invoke(t, open(t, w, plain(out+ended("stop")), invoketest.Options{}), w.Request("x"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Tools {
		got = append(got, c.Title)
	}
	if want := []string{filepath.Join("read a", "b.go"), "read /etc/x", "read func", "read", "read"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
