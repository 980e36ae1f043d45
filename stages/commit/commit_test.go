package commit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stages/commit"
)

var update = flag.Bool("update", false, "write the golden files anew")

type world struct {
	t    *testing.T
	mem  *kerneltest.Mem
	turn kernel.Turn
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, mem: kerneltest.NewMem()}
	if err := w.mem.PutConversation(context.Background(), kernel.Conversation{ID: "conv_1"}); err != nil {
		t.Fatal(err)
	}
	w.turn = kernel.Turn{Version: 1, Run: "run_1", Phase: "respond", Round: 1, Slot: 2, Agent: "alpha", TurnSeq: 7}
	w.turn.Snapshot = w.object("snapshot", kernel.Snapshot{Version: 1, Task: w.object("task", kernel.Task{Version: 1, Conversation: "conv_1"})})
	return w
}

func (w *world) object(kind string, v any) kernel.Digest {
	w.t.Helper()
	d, err := kernel.PutObject(context.Background(), w.mem, kind, v)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) verdict(text, status string) kernel.Verdict {
	w.t.Helper()
	v := kernel.Verdict{Version: 1, Scope: "attempt", Turn: w.object("turn", w.turn), Status: status,
		Results: []kernel.ClaimVerdict{{Claim: "c", Verdict: "verified"}}, Outcomes: []kernel.Outcome{{Type: "evidence", ID: "evd_1"}}}
	if text != "" {
		var err error
		if v.Text, err = w.mem.Put(context.Background(), "text", []byte(text)); err != nil {
			w.t.Fatal(err)
		}
	}
	return v
}

func (w *world) env(hour int) kernel.Env {
	return kernel.Env{Run: "run_1", Attempt: "atp_1", Packs: w.mem, Now: func() time.Time { return time.Date(2030, 1, 1, hour, 0, 0, 0, time.UTC) }}
}

func (w *world) messages() []kernel.Message {
	w.t.Helper()
	var out []kernel.Message
	for m, err := range w.mem.Messages(context.Background(), "conv_1", 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func TestAttempt(t *testing.T) {
	w := newWorld(t)
	v := w.verdict("Hello", "partial")
	res, err := commit.Record(w.mem).Run(context.Background(), w.env(1), v)
	if err != nil {
		t.Fatal(err)
	}
	if res.Verdict != w.object("verdict", v) || len(res.Results) != 1 || len(res.Outcomes) != 1 || res.Commit != "" {
		t.Errorf("%+v", res)
	}
	ms := w.messages()
	if len(ms) != 1 {
		t.Fatalf("%d messages", len(ms))
	}
	want := kernel.MessageID(kernel.DeriveID(kernel.MessagePrefix, "run_1", "respond", "1", "2"))
	m := ms[0]
	if m.ID != want || m.Role != "agent" || m.Agent != "alpha" || m.TurnSeq != 7 || m.Text != v.Text || m.Status != "partial" ||
		m.Run != "run_1" || m.Attempt != "atp_1" || m.At.Hour() != 1 {
		t.Errorf("%+v", m)
	}
	if res.Message == nil || res.Message.ID != want || !res.Message.At.IsZero() || res.Message.Attempt != "" {
		t.Errorf("the result tells when or by which try: %+v", res.Message)
	}
}

func TestAgainIsTheSame(t *testing.T) {
	w := newWorld(t)
	v := w.verdict("Hello", "completed")
	a, err := commit.Record(w.mem).Run(context.Background(), w.env(1), v)
	if err != nil {
		t.Fatal(err)
	}
	b, err := commit.Record(w.mem).Run(context.Background(), w.env(2), v)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := kernel.Canonical(a)
	y, _ := kernel.Canonical(b)
	if !bytes.Equal(x, y) || len(w.messages()) != 1 {
		t.Errorf("%s\n%s\n%d messages", x, y, len(w.messages()))
	}
}

func TestAnotherTryTakesTheSamePlace(t *testing.T) {
	w := newWorld(t)
	for _, v := range []kernel.Verdict{w.verdict("half", "stopped"), w.verdict("whole", "completed")} {
		if _, err := commit.Record(w.mem).Run(context.Background(), w.env(1), v); err != nil {
			t.Fatal(err)
		}
	}
	if ms := w.messages(); len(ms) != 1 || ms[0].Status != "completed" {
		t.Errorf("%+v", ms)
	}
	w.turn.Slot = 3
	if _, err := commit.Record(w.mem).Run(context.Background(), w.env(1), w.verdict("other", "completed")); err != nil || len(w.messages()) != 2 {
		t.Errorf("another slot is another message: %v", err)
	}
}

func TestAnswerWithoutText(t *testing.T) {
	w := newWorld(t)
	if _, err := commit.Record(w.mem).Run(context.Background(), w.env(1), w.verdict("", "completed")); err != nil {
		t.Fatal(err)
	}
	if b, err := w.mem.Get(context.Background(), w.messages()[0].Text); err != nil || len(b) != 0 {
		t.Errorf("%q, %v", b, err)
	}
}

func TestRun(t *testing.T) {
	w := newWorld(t)
	v := kernel.Verdict{Version: 1, Scope: "run", Run: "run_1", Status: "completed", Parts: []kernel.Digest{kernel.Sum([]byte("a")), kernel.Sum([]byte("b"))}}
	run := func(v kernel.Verdict) kernel.Result {
		t.Helper()
		res, err := commit.Record(w.mem).Run(context.Background(), w.env(1), v)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := run(v)
	parts, err := kernel.Canonical(v.Parts)
	if err != nil {
		t.Fatal(err)
	}
	if res.Commit != kernel.DeriveID(kernel.CommitPrefix, "run_1") || res.Target != "record" || res.Content != kernel.SumDomain("content/1", parts) || res.Message != nil {
		t.Errorf("%+v", res)
	}
	if len(w.messages()) != 0 {
		t.Error("the run's commit wrote a message")
	}
	v.Parts = v.Parts[:1]
	if other := run(v); other.Content == res.Content || other.Commit != res.Commit {
		t.Errorf("other parts are other content of the one commit: %+v", other)
	}
}

func TestErrors(t *testing.T) {
	w := newWorld(t)
	if _, err := commit.Record(w.mem).Run(context.Background(), w.env(1), kernel.Verdict{Scope: "all"}); !kernel.IsKind(err, kernel.Invalid) {
		t.Errorf("an unknown scope: %v", err)
	}
	v := w.verdict("x", "completed")
	v.Turn = kernel.Sum([]byte("gone"))
	if _, err := commit.Record(w.mem).Run(context.Background(), w.env(1), v); !kernel.IsKind(err, kernel.NotFound) || len(w.messages()) != 0 {
		t.Errorf("a turn that is gone: %v", err)
	}
}

func TestSpec(t *testing.T) {
	for name, stage := range map[string]kernel.Commit{"record": commit.Record(nil), "apply": commit.Apply(nil, nil), "git": commit.Git(nil, nil)} {
		b, err := json.MarshalIndent(stage.Spec(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		p := "testdata/commit-" + name + ".json"
		if *update {
			if err := os.WriteFile(p, append(b, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(p)
		if err != nil || !bytes.Equal(append(b, '\n'), want) {
			t.Errorf("%s differs (-update writes it anew), %v", p, err)
		}
	}
}
