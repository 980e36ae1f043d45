package model_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"witan/ui/model"
	"witan/ui/uitest"
)

// feed applies lines that must all fit.
func feed(t *testing.T, s *model.State, lines ...json.RawMessage) *model.State {
	t.Helper()
	for _, l := range lines {
		next, fit, err := s.Raw(l)
		if err != nil || fit != model.Fits {
			t.Fatalf("%s: %v, %v", l, fit, err)
		}
		s = next
	}
	return s
}

// rows names the kinds and keys of a thread's rows.
func rows(th *model.Thread) string {
	var out []string
	for i := range th.Len() {
		it := th.At(i)
		out = append(out, fmt.Sprintf("%d:%s", it.Kind, it.Key))
	}
	return strings.Join(out, " ")
}

func TestCouncilIsOrderedByPhasesAndSlots(t *testing.T) {
	t.Parallel()
	s := uitest.State(uitest.Council)
	want := []string{"0:msg_run_council", "1:run_council/proposal/1", "2:proposal-codex", "2:proposal-opencode", "2:proposal-inspector",
		"1:run_council/challenge/1", "2:challenge-codex", "2:challenge-opencode", "2:challenge-inspector",
		"1:run_council/work/1", "2:work-codex", "2:work-inspector", "2:work-opencode"}
	if got := rows(s.Open); got != strings.Join(want, " ") {
		t.Errorf("got  %s\nwant %s", got, strings.Join(want, " "))
	}
	r := s.Open.Last()
	if !r.Active() || r.Agreed == nil || len(r.Agreed.Items) != 4 || r.Snapshot == "" || !r.Known {
		t.Errorf("the run is %+v", r)
	}
	a := r.Attempt("work-codex")
	if a == nil || a.Item != "W1" || a.Status != "working" || len(a.Tools) != 5 || !strings.HasSuffix(a.Words(), "a limit of") {
		t.Errorf("the attempt at work is %+v", a)
	}
	if n, known := r.Attempt("proposal-codex").Usage.Tokens(); !known || n != 4020 {
		t.Errorf("tokens are %d, %v", n, known)
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	s := uitest.State("")
	for conv, want := range map[string]model.Mark{uitest.Council: model.MarkNow, uitest.Gated: model.MarkGate, uitest.Ended: model.MarkNew, uitest.Article: model.MarkNone} {
		if got := s.Mark(conv); got != want {
			t.Errorf("%s is marked %d, want %d", conv, got, want)
		}
	}
	s = s.With(model.Looked{Conversation: uitest.Ended, At: uitest.Now})
	if got := s.Mark(uitest.Ended); got != model.MarkNone {
		t.Errorf("what was looked at is marked %d", got)
	}
}

// TestFit walks through what a view may be sent: what comes twice changes
// nothing, what comes after a hole or from another host asks for a snapshot.
func TestFit(t *testing.T) {
	t.Parallel()
	lines := uitest.Threads()[uitest.Council]
	s := feed(t, &model.State{}, lines[:10]...)
	tests := []struct {
		name string
		line string
		want model.Fit
	}{
		{"the last again", string(lines[9]), model.Duplicate},
		{"an old one", string(lines[1]), model.Duplicate},
		{"after a hole", string(lines[11]), model.Gap},
		{"another host, a low revision", `{"type":"notice","run":"run_council","epoch":"other","revision":2}`, model.Gap},
		{"another host, the next revision", `{"type":"notice","run":"run_council","epoch":"other","revision":11}`, model.Gap},
		{"a run of another conversation", `{"type":"run.created","run":"run_x","conversation":"conv_x"}`, model.Foreign},
		{"a run that nobody created", `{"type":"text","run":"run_y","attempt":"a","delta":"x"}`, model.Foreign},
	}
	for _, tt := range tests {
		next, fit, err := s.Raw(json.RawMessage(tt.line))
		if err != nil || fit != tt.want || next != s {
			t.Errorf("%s: %v, %v, changed: %v", tt.name, fit, err, next != s)
		}
	}
	s = feed(t, s, lines[10:]...)
	if got := s.Open.Revision; got != uint64(len(lines)) {
		t.Errorf("the revision is %d after %d lines", got, len(lines))
	}
}

func TestWhatIsNoLine(t *testing.T) {
	t.Parallel()
	s := uitest.State(uitest.Council)
	for _, raw := range []string{``, `{`, `[]`, `"text"`, `null`, `7`, `{"type":"snapshot","messages":"none"}`} {
		if next, _, err := s.Raw(json.RawMessage(raw)); err == nil || next != s {
			t.Errorf("%q: %v, changed: %v", raw, err, next != s)
		}
	}
	for _, raw := range []string{`{"type":"text","run":"run_council","attempt":"work-codex","delta":7}`, `{"type":"of another version","run":"run_council"}`,
		`{"type":"phase.started","run":"run_council","phase":"p","round":"one","slots":3}`, `{"type":"adoption","run":"run_council","id":"no such"}`,
		`{"type":"gate.decided","run":"run_council","gate":"no such"}`, `{"type":"phase.finished","run":"run_council","phase":"no such"}`} {
		if _, fit, err := s.Raw(json.RawMessage(raw)); err != nil || fit != model.Fits {
			t.Errorf("%q: %v, %v", raw, fit, err)
		}
	}
}

// TestLinesTwice applies every line without its revision once more: entities are
// known by their ids, so only streamed text may differ.
func TestLinesTwice(t *testing.T) {
	t.Parallel()
	for conv := range uitest.Threads() {
		s := uitest.State(conv)
		before := rows(s.Open)
		run := *s.Open.Last()
		for _, l := range uitest.Threads()[conv][1:] {
			line, err := model.Parse(l)
			if err != nil {
				t.Fatal(err)
			}
			if line.Type == "text" || line.Type == "notice" {
				continue
			}
			line.Epoch, line.Revision = "", 0
			s, _ = s.Line(line)
		}
		after := *s.Open.Last()
		if got := rows(s.Open); got != before {
			t.Errorf("%s: rows were\n%s\nand are\n%s", conv, before, got)
		}
		if !reflect.DeepEqual(run.Findings, after.Findings) || !reflect.DeepEqual(run.Gates, after.Gates) || !reflect.DeepEqual(run.Verdicts, after.Verdicts) ||
			len(run.Attempts) != len(after.Attempts) || run.Status != after.Status {
			t.Errorf("%s: the run changed from\n%+v\nto\n%+v", conv, run, after)
		}
	}
}

// TestOlderStatesStay holds on to a state and looks whether later lines reach it.
func TestOlderStatesStay(t *testing.T) {
	t.Parallel()
	lines := uitest.Threads()[uitest.Council]
	type kept struct {
		state *model.State
		dump  string
	}
	dump := func(s *model.State) string {
		var b strings.Builder
		for i := range s.Open.Len() {
			it := s.Open.At(i)
			b.WriteString(it.Key)
			if it.Attempt != nil {
				fmt.Fprintf(&b, " %s %q %d %d;", it.Attempt.Status, it.Attempt.Words(), len(it.Attempt.Tools), len(it.Attempt.Stages))
			}
		}
		return b.String()
	}
	var all []kept
	s := &model.State{}
	for _, l := range lines {
		s = feed(t, s, l)
		all = append(all, kept{s, dump(s)})
	}
	for i, k := range all {
		if got := dump(k.state); got != k.dump {
			t.Fatalf("after line %d it was\n%s\nand is now\n%s", i, k.dump, got)
		}
	}
}

func TestGateIsDecided(t *testing.T) {
	t.Parallel()
	s := uitest.State(uitest.Gated)
	if r := s.Open.Last(); r.Waiting() != 1 || len(s.Gates) != 1 {
		t.Fatalf("%d gates wait, %d are listed", r.Waiting(), len(s.Gates))
	}
	line := fmt.Sprintf(`{"type":"gate.decided","run":"run_gated","gate":"gate_edit","option":"allow-once","by":"person","epoch":%q,"revision":%d}`, s.Open.Epoch, s.Open.Revision+1)
	s = feed(t, s, json.RawMessage(line))
	g := s.Open.Last().Gates[0]
	if g.Open() || g.Decided != "allow-once" || g.By != "person" || len(s.Gates) != 0 || s.Mark(uitest.Gated) != model.MarkNow {
		t.Errorf("the gate is %+v, listed are %v, the mark is %d", g, s.Gates, s.Mark(uitest.Gated))
	}
}

// TestSnapshotAgain attaches again: what was seen of the run stays, the summary is new.
func TestSnapshotAgain(t *testing.T) {
	t.Parallel()
	s := uitest.State(uitest.Council)
	attempts := len(s.Open.Last().Attempts)
	s = feed(t, s, json.RawMessage(`{"type":"snapshot","epoch":"new","revision":7,"conversation":{"conversation":"`+uitest.Council+`"},"messages":[
		{"message":"msg_run_council","role":"user","run":"run_council","text":"all of it"}],"runs":[{"run":"run_council","status":"interrupted","plan":"council","agents":["codex"]}]}`))
	r := s.Open.Last()
	if r.Status != "interrupted" || len(r.Attempts) != attempts || s.Open.Epoch != "new" || s.Open.Revision != 7 {
		t.Errorf("the run is %s with %d attempts at epoch %s", r.Status, len(r.Attempts), s.Open.Epoch)
	}
	if m := s.Open.At(0).Message; m == nil || m.Text != "all of it" {
		t.Errorf("the first row is %+v", m)
	}
}

func TestDetailAndText(t *testing.T) {
	t.Parallel()
	s := feed(t, &model.State{}, json.RawMessage(`{"type":"snapshot","epoch":"e","revision":1,"conversation":{"conversation":"`+uitest.Council+`"},
		"messages":[{"message":"m1","role":"user","run":"run_council","text":"short"},{"message":"m0","role":"system","text":"on its own"}],
		"runs":[{"run":"run_council","status":"running","conversation":"`+uitest.Council+`"}]}`))
	if n := len(s.Open.Last().Attempts); n != 0 {
		t.Fatalf("a summary has %d attempts", n)
	}
	var lines []model.Line
	for _, raw := range uitest.Threads()[uitest.Council][1:] {
		l, err := model.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	s = s.With(model.Detail{Run: "run_council", Lines: lines}).With(model.Said{Run: "run_council", Text: "the whole text"})
	r := s.Open.Last()
	if len(r.Attempts) != 9 || r.Status != "running" || !r.Known {
		t.Errorf("the run has %d attempts and is %s", len(r.Attempts), r.Status)
	}
	if m := s.Open.At(0).Message; m.Text != "the whole text" {
		t.Errorf("the person said %q", m.Text)
	}
	if got := s.With(model.Detail{Run: "no such run"}); got != s {
		t.Error("the detail of a run that is not there changed something")
	}
}

func TestListsQueueAndTrouble(t *testing.T) {
	t.Parallel()
	s := uitest.State(uitest.Council)
	old := s
	s = s.With(model.Queue{Conversation: uitest.Council, Entries: []model.Entry{{ID: "q1", Position: 1, Text: "next"}}}).With(model.Trouble("gone"))
	if len(s.Open.Queue) != 1 || s.Trouble != "gone" || len(old.Open.Queue) != 0 || old.Trouble != "" {
		t.Errorf("now %v %q, before %v %q", s.Open.Queue, s.Trouble, old.Open.Queue, old.Trouble)
	}
	if got := s.With(model.Queue{Conversation: "another"}); got != s {
		t.Error("the queue of another conversation was taken")
	}
	s = s.With(model.Lists{Conversations: []model.Conversation{{ID: "a", Updated: uitest.Now}, {ID: "b", Updated: uitest.Now.Add(time.Hour)}}})
	if s.Conversations[0].ID != "b" || len(s.Agents) == 0 {
		t.Errorf("conversations are %v, agents %v", s.Conversations, s.Agents)
	}
	if a := s.Agent("nobody"); a.Name != "nobody" || a.Ready() || s.Hue("nobody") != len(s.Agents) {
		t.Errorf("an agent that is not listed is %+v", a)
	}
	if s.With(model.Close{}).Open != nil {
		t.Error("a closed conversation is open")
	}
}

// TestLongThreadIsIndexedOnce opens 10,000 messages and adds a line: the rows of
// all other runs must be the very same.
func TestLongThreadIsIndexedOnce(t *testing.T) {
	t.Parallel()
	s := feed(t, &model.State{}, uitest.Long(10000))
	if s.Open.Len() != 10000 {
		t.Fatalf("%d rows", s.Open.Len())
	}
	first := s.Open.Block(0)
	s = feed(t, s, json.RawMessage(`{"type":"run.created","run":"run_new","conversation":"conv_long","message":"m_new","title":"more","epoch":"e","revision":2}`),
		json.RawMessage(`{"type":"attempt.queued","run":"run_new","attempt":"a1","agent":"codex","phase":"respond","round":1,"epoch":"e","revision":3}`))
	if s.Open.Len() != 10002 || s.Open.Block(0) != first {
		t.Errorf("%d rows, first block kept: %v", s.Open.Len(), s.Open.Block(0) == first)
	}
	if got := s.Open.At(10001).Key; got != "a1" {
		t.Errorf("the last row is %q", got)
	}
}

func BenchmarkDelta(b *testing.B) {
	s, _, err := (&model.State{}).Raw(uitest.Long(30000))
	if err != nil {
		b.Fatal(err)
	}
	s, _ = s.Line(model.Line{Type: "run.created", Run: "r", Conversation: "conv_long", Message: "m"})
	s, _ = s.Line(model.Line{Type: "attempt.started", Run: "r", Attempt: "a", Agent: "x", Phase: "respond"})
	b.ReportAllocs()
	for b.Loop() {
		s, _ = s.Line(model.Line{Type: "text", Run: "r", Attempt: "a", Delta: "word "})
		_ = s.Open.Len()
	}
}

func FuzzRaw(f *testing.F) {
	for _, lines := range uitest.Threads() {
		for _, l := range lines {
			f.Add([]byte(l))
		}
	}
	s := uitest.State(uitest.Gated)
	before := rows(s.Open)
	f.Fuzz(func(t *testing.T, raw []byte) {
		next, _, _ := s.Raw(raw)
		if next.Open != nil {
			rows(next.Open)
		}
		if rows(s.Open) != before {
			t.Error("a line changed a state that was handed out")
		}
	})
}
