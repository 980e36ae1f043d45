package term

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"witan/kernel"
)

func show(t *testing.T, tty bool, lines ...string) (out, errs string, r *Run) {
	t.Helper()
	var o, e bytes.Buffer
	r = &Run{Out: &o, Err: &e, TTY: tty}
	for _, l := range lines {
		if err := r.Line(json.RawMessage(l)); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
	}
	return o.String(), e.String(), r
}

var run = []string{
	`{"type":"run.created","run":"run_1","at":"2026-01-01T00:00:00Z","plan":"batch","agents":["a","b"],"permission":"read-only","workspace":"/w"}`,
	`{"type":"attempt.queued","attempt":"t1","agent":"a","try":1}`,
	`{"type":"attempt.queued","attempt":"t2","agent":"b","try":1}`,
	`{"type":"attempt.started","attempt":"t1","agent":"a"}`,
	`{"type":"tool","attempt":"t1","id":"x","kind":"read","title":"look \u001b]52;c;eA==\u0007around","status":"in_progress"}`,
	`{"type":"attempt.finished","attempt":"t1","agent":"a","status":"completed"}`,
	`{"type":"stage.failed","attempt":"t2","stage":"invoke","class":"execution","why":"the agent exited with 3"}`,
	`{"type":"attempt.finished","attempt":"t2","agent":"b","status":"failed","reason":"agent_died"}`,
	`{"type":"message","agent":"a","role":"agent","status":"completed","text":"answer \u001b[31mred\u001b[0m\u202e"}`,
	`{"type":"evidence","id":"e1","level":"observed","summary":"line 3","hash":"sha256:abcdef0123456789"}`,
	`{"type":"finding","agent":"a","severity":"high","title":"wrong","detail":"because","path":"f.go","line":3,"evidence":["e1"]}`,
	`{"type":"something.new","run":"run_1","status":7}`,
	`{"type":"run.finished","at":"2026-01-01T00:00:02Z","status":"partial","reason":"agent_died"}`,
}

func TestRunAsText(t *testing.T) {
	out, errs, r := show(t, false, run...)
	for _, want := range []string{"── a ─", "answer red⟨U+202E⟩", "high    f.go:3  wrong  [a]", "because", "evidence observed: line 3"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(errs, "a answered") {
		t.Errorf("progress without a terminal:\n%s", errs)
	}
	_, progress, _ := show(t, true, run...)
	for _, want := range []string{"run_1 · batch of a, b", "a answered"} {
		if !strings.Contains(progress, want) {
			t.Errorf("%q is not in\n%s", want, progress)
		}
	}
	for _, want := range []string{"b failed: the agent exited with 3", "✗ partial in 2.0 s (agent died)"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not in\n%s", want, errs)
		}
	}
	if strings.ContainsRune(out+errs, 0x1b) {
		t.Error("an escape sequence came through")
	}
	if r.Status != kernel.RunPartial || r.ID != "run_1" {
		t.Errorf("%+v", r)
	}
}

func TestProgressOfATerminalHoldsNoSequenceOfAnAgent(t *testing.T) {
	_, errs, _ := show(t, true, run...)
	if !strings.Contains(errs, "a working: look around") || strings.Contains(errs, "]52") || strings.Count(errs, "\x1b") != strings.Count(errs, "\x1b[K") {
		t.Errorf("%q", errs)
	}
}

func TestDirectStreams(t *testing.T) {
	out, _, _ := show(t, false,
		`{"type":"run.created","run":"run_1","plan":"direct","agents":["a"]}`,
		`{"type":"text","attempt":"t1","agent":"a","delta":"one "}`,
		`{"type":"text","attempt":"t1","agent":"a","delta":"two"}`,
		`{"type":"message","agent":"a","role":"agent","status":"completed","text":"one two"}`,
		`{"type":"run.finished","status":"completed"}`)
	if out != "one two\n" {
		t.Errorf("%q", out)
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	tab := &Table{Out: &b, Columns: []string{"run", "agents", "ok", "none"}}
	if err := tab.Line(json.RawMessage(`{"run":"r\u001b[31m","agents":["a","b"],"ok":true}`)); err != nil {
		t.Fatal(err)
	}
	tab.Flush("nothing")
	if got := strings.Join(strings.Fields(b.String()), " "); got != "RUN AGENTS OK NONE r a,b yes -" {
		t.Errorf("%q", got)
	}
	b.Reset()
	(&Table{Out: &b}).Flush("nothing here")
	if b.String() != "nothing here\n" {
		t.Errorf("%q", b.String())
	}
}
