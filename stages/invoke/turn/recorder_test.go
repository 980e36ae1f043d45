package turn_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/turn"
)

func TestTextIsBounded(t *testing.T) {
	w := invoketest.NewWorld(t)
	r := turn.NewRecorder(w.Env(), w.Request("x"), nil)
	piece := strings.Repeat("é", 512<<10) // 1 MiB
	for range 70 {
		r.Text(piece)
	}
	reply, err := r.Reply()
	if err != nil {
		t.Fatal(err)
	}
	got := w.Text(t, reply)
	const end = "\n[cut: the answer is over 64 MiB]\n"
	if len(got) > 64<<20+len(end) || !strings.HasSuffix(got, "é"+end) || strings.Count(got, "cut:") != 1 || got != w.Shown() {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-50:])
	}
}

func TestStopTakesNothingNew(t *testing.T) {
	w := invoketest.NewWorld(t)
	r := turn.NewRecorder(w.Env(), w.Request("x"), nil)
	r.Text("before")
	r.Tool(turn.Tool{ID: "1", Status: "in_progress"})
	r.Stop()
	r.Text("after")
	r.Tool(turn.Tool{ID: "2", Status: "in_progress"})
	r.Tool(turn.Tool{ID: "1", Status: "failed"})
	r.Outcome(kernel.Outcome{Type: "finding", ID: "f"}, nil, true)
	reply, err := r.Reply()
	if err != nil {
		t.Fatal(err)
	}
	if w.Text(t, reply) != "before" || len(reply.Outcomes) != 0 || len(reply.Tools) != 1 || reply.Tools[0].Status != "failed" {
		t.Errorf("%+v", reply)
	}
}

// Effects decide on retries: only what was not read, in a turn that may write.
func TestEffects(t *testing.T) {
	for _, tc := range []struct {
		kind  string
		write bool
		want  bool
	}{{"read", true, false}, {"edit", true, true}, {"", true, true}, {"edit", false, false}} {
		w := invoketest.NewWorld(t)
		r := turn.NewRecorder(w.Env(), w.Request("x", func(tn *kernel.Turn) { tn.Write = tc.write }), nil)
		r.Tool(turn.Tool{ID: "1", Kind: tc.kind})
		err := r.Fail(t.Context(), errors.New("died"), func(error) *kernel.Failure { return &kernel.Failure{Class: "execution", Reason: "agent_died"} })
		if f := invoketest.Failed(t, err, "execution", "agent_died"); f.Effects != tc.want {
			t.Errorf("%+v: %v", tc, f.Effects)
		}
	}
}

// A stop is a stop, whatever came of it.
func TestStopIsNoFailureOfTheAgent(t *testing.T) {
	w := invoketest.NewWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := turn.NewRecorder(w.Env(), w.Request("x"), nil)
	err := r.Fail(ctx, &kernel.Failure{Class: kernel.ClassExecution, Reason: "agent_died"}, nil)
	if f := invoketest.Failed(t, err, kernel.ClassCancelled, "stopped"); f.Status != "stopped" {
		t.Errorf("%+v", f)
	}
}

// What is shown is in the order of the text, whoever writes.
func TestShownIsWhatIsKept(t *testing.T) {
	w := invoketest.NewWorld(t)
	r := turn.NewRecorder(w.Env(), w.Request("x"), turn.Hide{"abcab": "[S]"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				r.Text("abc")
			}
		})
	}
	wg.Wait()
	reply, err := r.Reply()
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Text(t, reply); got != w.Shown() || strings.Contains(got, "abcab") {
		t.Errorf("kept %d bytes, shown %d", len(got), len(w.Shown()))
	}
}

func TestTailIsBounded(t *testing.T) {
	var tail turn.Tail
	for range 1000 {
		_, _ = tail.Write([]byte(strings.Repeat("x", 10_000) + "\n"))
	}
	_, _ = tail.Write([]byte("the \x1b[31mend\xff\n"))
	if s := tail.String(); len(s) > 2100 || !strings.HasSuffix(s, "the end\uFFFD") {
		t.Errorf("%d bytes: %q", len(s), s[len(s)-20:])
	}
}
