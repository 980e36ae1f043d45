package kernel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/plans"
)

// TestBadLedgers: recorded ledgers with one thing wrong are refused where it is.
func TestBadLedgers(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "ledgers", "batch.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	fold := func(ls [][]byte) error {
		s := kernel.NewState("run_1")
		for _, l := range ls {
			r, err := kernel.DecodeRecord(l)
			if err == nil {
				err = s.Apply(r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := fold(lines); err != nil {
		t.Fatal(err)
	}
	for i := range len(lines) - 1 {
		if fold(slices.Concat(lines[:i], lines[i+1:])) == nil {
			t.Errorf("record %d left out is not noticed", i+1)
		}
		if fold(slices.Concat(lines[:i+1], lines[i:])) == nil {
			t.Errorf("record %d twice is not noticed", i+1)
		}
		changed := slices.Clone(lines)
		changed[i] = bytes.Replace(lines[i], []byte("2026"), []byte("2027"), 1)
		if fold(changed) == nil {
			t.Errorf("a change of record %d is not noticed", i+1)
		}
	}
}

func TestBatchOrder(t *testing.T) {
	m := newSim(t, plans.Batch{}, 2, "a", "b", "c")
	m.settle()
	m.end(func(o openStage) bool { return o.stage == "freeze" })
	m.settle()
	if n := strings.Count(strings.Join(m.log, "\n"), "stage.started deliver"); n != 3 {
		t.Fatalf("%d deliveries before any lease, want 3", n)
	}
	for range 3 {
		m.end(func(o openStage) bool { return o.stage == "deliver" })
		m.settle()
	}
	if n := len(m.open); n != 2 {
		t.Fatalf("%d agents run at once, want 2", n)
	}
	for _, who := range []kernel.AgentID{"b", "a", "c"} { // end in another order than members
		for _, stage := range []string{"invoke", "receipt", "verify"} {
			m.end(func(o openStage) bool { return o.stage == stage && m.agent(o) == who })
			m.settle()
		}
	}
	m.endAll()
	m.wantEnd(kernel.RunCompleted, "")
	if !(m.index("attempt.finished b/1") < m.index("attempt.finished a/1") && m.index("message a/1") < m.index("message b/1") &&
		m.index("message b/1") < m.index("message c/1") && m.index("attempt.finished c/1") < m.index("message a/1")) {
		t.Fatalf("order:\n%s", strings.Join(m.log, "\n"))
	}
}

// TestEveryPrefixDecidesTheNextStep replays each simulated run: at every prefix
// the decider wants exactly the record that follows, or the record came from outside.
func TestEveryPrefixDecidesTheNextStep(t *testing.T) {
	fails := map[string]func(kernel.AgentID, int) *kernel.StageEndBody{
		"all well": nil,
		"one dies": func(a kernel.AgentID, _ int) *kernel.StageEndBody {
			if a == "b" {
				return &kernel.StageEndBody{Class: kernel.ClassExecution, Reason: "agent_died"}
			}
			return nil
		},
		"one recovers": func(a kernel.AgentID, try int) *kernel.StageEndBody {
			if a == "c" && try < 3 {
				return &kernel.StageEndBody{Class: kernel.ClassNetwork, Reason: "refused"}
			}
			return nil
		},
	}
	for name, fail := range fails {
		t.Run(name, func(t *testing.T) {
			m := newSim(t, plans.Batch{}, 2, "a", "b", "c")
			m.fail = fail
			m.drive()
			m.replay()
			m.golden(map[string]string{"all well": "batch", "one dies": "batch-one-dies", "one recovers": "batch-one-recovers"}[name])
			if name == "all well" || name == "one recovers" {
				m.wantEnd(kernel.RunCompleted, "")
			} else {
				m.wantEnd(kernel.RunPartial, "agent_died")
			}
		})
	}
}

func TestRetryPolicy(t *testing.T) {
	for _, tc := range []struct {
		class, reason string
		tries         int
	}{
		{kernel.ClassNetwork, "refused", 5},
		{kernel.ClassRateLimit, "rate_limited", 5},
		{kernel.ClassProtocol, "bad_json", 5},
		{kernel.ClassProtocol, "protocol_line_too_large", 1},
		{kernel.ClassProtocol, "receipt_invalid", 1},
		{kernel.ClassSession, "session_gone", 2},
		{kernel.ClassSignIn, "signed_out", 1},
		{kernel.ClassExecution, "agent_died", 1},
		{kernel.ClassTimeout, "stalled", 1},
		{kernel.ClassTimeout, "startup_timeout", 5},
	} {
		m := newSim(t, plans.Direct{}, 1, "a")
		m.fail = func(kernel.AgentID, int) *kernel.StageEndBody {
			return &kernel.StageEndBody{Class: tc.class, Reason: tc.reason}
		}
		waits := m.drive()
		if got := len(m.s.Phase().Slots[0].Attempts); got != tc.tries {
			t.Errorf("%s %s: %d tries, want %d", tc.class, tc.reason, got, tc.tries)
		}
		if tc.tries == 5 && fmt.Sprint(waits) != "[250ms 500ms 1s 2s]" {
			t.Errorf("%s: back-off %v", tc.class, waits)
		}
		m.wantEnd(kernel.RunFailed, tc.reason)
	}
}

func TestNoRetryAfterEffects(t *testing.T) {
	m := newSim(t, plans.Direct{}, 1, "a")
	m.fail = func(kernel.AgentID, int) *kernel.StageEndBody {
		return &kernel.StageEndBody{Class: kernel.ClassNetwork, Reason: "cut", Effects: true}
	}
	m.endAll()
	m.wantEnd(kernel.RunFailed, "cut")
}

func TestStopKeepsWhatIsThere(t *testing.T) {
	m := newSim(t, plans.Batch{}, 3, "a", "b", "c")
	m.settle()
	for len(m.open) > 0 && m.open[0].stage != "invoke" {
		m.end(func(openStage) bool { return true })
		m.settle()
	}
	for _, stage := range []string{"invoke", "receipt", "verify"} { // a is complete
		m.end(func(o openStage) bool { return m.agent(o) == "a" && o.stage == stage })
		m.settle()
	}
	m.put(kernel.StopRequested, "", "", kernel.StopBody{By: "person"})
	m.settle()
	m.end(func(o openStage) bool { return m.agent(o) == "b" }) // late success is rejected
	m.fail = func(kernel.AgentID, int) *kernel.StageEndBody {
		return &kernel.StageEndBody{Class: kernel.ClassCancelled, Reason: "stopped_by_person", Status: "stopped", Text: kernel.Sum([]byte("part"))}
	}
	m.endAll()
	m.wantEnd(kernel.RunStopped, "stopped_by_person")
	st := func(i int) string { return m.s.Phase().Slots[i].Last().Finished.Status }
	if st(0) != "completed" || st(1) != "stopped" || st(2) != "stopped" {
		t.Fatalf("statuses %s %s %s", st(0), st(1), st(2))
	}
	for _, a := range []string{"a", "b", "c"} {
		m.index("message " + a + "/1")
	}
	m.replay()
	m.golden("batch-stopped")
}

func TestInterruptThenResume(t *testing.T) {
	m := newSim(t, plans.Batch{}, 3, "a", "b")
	m.settle()
	for len(m.open) > 0 && m.open[0].stage != "invoke" {
		m.end(func(openStage) bool { return true })
		m.settle()
	}
	m.end(func(o openStage) bool { return m.agent(o) == "a" && o.stage == "invoke" })
	m.settle()
	m.fail = func(kernel.AgentID, int) *kernel.StageEndBody {
		return &kernel.StageEndBody{Class: kernel.ClassCancelled, Reason: "host_gone", Status: "interrupted", Text: kernel.Sum([]byte("part"))}
	}
	m.end(func(o openStage) bool { return m.agent(o) == "b" })
	m.put(kernel.RunInterrupted, "", "", kernel.InterruptedBody{Reason: "host_gone"})
	m.endAll()
	m.wantEnd(kernel.RunInterruptedSt, "host_gone")
	m.index("message b/1") // partial text is kept
	m.fail = nil
	m.put(kernel.RunResumed, "", "", kernel.ResumedBody{By: "resume"})
	m.endAll()
	m.wantEnd(kernel.RunCompleted, "")
	if n := strings.Count(strings.Join(m.log, "\n"), "message a/"); n != 1 {
		t.Fatalf("the finished reply appears %d times", n)
	}
	m.index("message b/2")
	m.replay()
	m.golden("batch-interrupted-resumed")
	if n := strings.Count(strings.Join(m.log, "\n"), "\ncommit"); n != 1 {
		t.Fatalf("%d commits\n%s", n, strings.Join(m.log, "\n"))
	}
}

func TestChangedSnapshotStartsNoAgent(t *testing.T) {
	m := newSim(t, plans.Batch{}, 3, "a", "b")
	m.settle()
	m.end(func(openStage) bool { return true })
	m.settle()
	o := m.open[0]
	m.open = m.open[1:]
	m.put(kernel.StageFailed, o.attempt, "deliver", kernel.StageEndBody{Started: o.seq, Class: kernel.ClassExecution, Reason: kernel.ReasonSnapshotChanged})
	m.endAll()
	m.wantEnd(kernel.RunFailed, kernel.ReasonSnapshotChanged)
	if strings.Contains(strings.Join(m.log, "\n"), "attempt.started") {
		t.Fatal("an agent was started")
	}
}

func TestApplyRefusesWhatCannotFollow(t *testing.T) {
	m := newSim(t, plans.Direct{}, 1, "a")
	ok := kernel.Record{V: 1, Run: "run_1", Seq: 2, Prev: m.s.Head.Hash, At: m.now, Kind: kernel.NoticeRec, Body: json.RawMessage(`{"code":"c","text":"t"}`)}
	for name, change := range map[string]func(*kernel.Record){
		"other run":     func(r *kernel.Record) { r.Run = "run_2" },
		"hole":          func(r *kernel.Record) { r.Seq = 3 },
		"other past":    func(r *kernel.Record) { r.Prev = kernel.Sum(nil) },
		"created twice": func(r *kernel.Record) { r.Kind = kernel.RunCreated; r.Body = json.RawMessage(`{}`) },
		"unknown attempt": func(r *kernel.Record) {
			r.Kind = kernel.AttemptStarted
			r.Attempt = "atp_no"
			r.Body = json.RawMessage(`{}`)
		},
		"unknown field": func(r *kernel.Record) { r.Kind = kernel.StopRequested; r.Body = json.RawMessage(`{"x":1}`) },
		"end of nothing": func(r *kernel.Record) {
			r.Kind, r.Stage, r.Body = kernel.StageFinished, "freeze", json.RawMessage(`{"impl":"x","in":"","ms":1,"started":1,"version":1}`)
		},
	} {
		s, r := clone(t, m), ok
		change(&r)
		if err := s.Apply(r); !kernel.IsKind(err, kernel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := clone(t, m).Apply(ok); err != nil {
		t.Error(err)
	}
}

func clone(t *testing.T, m *sim) *kernel.State {
	t.Helper()
	return newSim(t, m.plan, 1, "a").s
}
