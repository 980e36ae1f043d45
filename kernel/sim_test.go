package kernel_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"witan/kernel"
)

// sim drives Next without any I/O: stages succeed or fail as told.
type sim struct {
	t    testing.TB
	s    *kernel.State
	plan kernel.Plan
	now  time.Time
	log  []string
	recs []kernel.Record
	open []openStage
	// fail decides how an invoke ends: nil = well.
	fail func(agent kernel.AgentID, try int) *kernel.StageEndBody
	// failAttempt is the same by attempt.
	failAttempt func(at *kernel.Attempt) *kernel.StageEndBody
	// says is the receipt of an attempt; nil = none.
	says func(at *kernel.Attempt) any
	// checks decides how a verify stage ends: a status other than "" and the verdicts.
	checks func(at *kernel.Attempt) (string, []kernel.ClaimVerdict)
	// norm is the normal form of an attempt's text; nil = its own.
	norm func(at *kernel.Attempt) string
	// took hears how long every decision took; nil = nobody asks.
	took func(time.Duration)
	// use is what every turn uses.
	use *kernel.Usage // with one tool call
	// answer decides a gate; nil = nobody does.
	answer func(g *kernel.Gate) string
}

type openStage struct {
	seq     uint64
	attempt kernel.AttemptID
	stage   string
}

func newSim(t testing.TB, plan kernel.Plan, concurrency int, agents ...kernel.AgentID) *sim {
	m := &sim{t: t, s: kernel.NewState("run_1"), plan: plan, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	stages := map[string]kernel.StageRef{}
	for _, k := range []string{"freeze", "deliver", "invoke", "receipt", "verify", "commit"} {
		stages[k] = kernel.StageRef{Use: k + "/x", Class: "pure"}
	}
	m.put(kernel.RunCreated, "", "", kernel.CreatedBody{Agents: agents, Plan: plan.Name(), Permission: "read-only", Concurrency: concurrency,
		Attempts: 512, Stages: stages, Task: kernel.Sum([]byte("task")), Writable: []kernel.AgentID{}})
	return m
}

func (m *sim) put(kind kernel.RecordKind, at kernel.AttemptID, stage string, body any) uint64 {
	m.t.Helper()
	b, err := kernel.Canonical(body)
	if err != nil {
		m.t.Fatal(err)
	}
	recs, _, _, err := kernel.Chain(m.s.Head, []kernel.Record{{Run: m.s.Run, At: m.now, Kind: kind, Attempt: at, Stage: stage, Body: b}})
	if err == nil {
		err = m.s.Apply(recs[0])
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.recs = append(m.recs, recs[0])
	name := string(kind)
	if stage != "" {
		name += " " + stage
	}
	if a := m.s.Attempt(at); a != nil {
		name += fmt.Sprintf(" %s/%d", a.Body.Agent, a.Body.Try)
	}
	m.log = append(m.log, name)
	return m.s.Head.Seq
}

// settle takes all steps that can be taken; it returns when the run waits.
func (m *sim) settle() kernel.Action {
	for range 100_000 {
		t0 := time.Now()
		a := kernel.Next(m.s, m.plan, m.now)
		if m.took != nil {
			m.took(time.Since(t0))
		}
		if a.Wait || !a.WaitUntil.IsZero() {
			return a
		}
		if a.Start == "" {
			m.put(a.Kind, a.Attempt, "", a.Body)
			continue
		}
		in := a.InDigest
		if a.In != nil {
			b, err := kernel.Canonical(a.In)
			if err != nil {
				m.t.Fatal(err)
			}
			in = kernel.Sum(b)
		}
		seq := m.put(kernel.StageStarted, a.Attempt, a.Start, kernel.StageStartedBody{Impl: a.Ref.Use, In: in})
		m.open = append(m.open, openStage{seq, a.Attempt, a.Start})
	}
	m.t.Fatal("the run does not come to rest")
	return kernel.Action{}
}

// end ends the open stage that which picks.
func (m *sim) end(which func(openStage) bool) {
	m.t.Helper()
	i := slices.IndexFunc(m.open, which)
	if i < 0 {
		m.t.Fatalf("no such stage is open: %v", m.open)
	}
	o := m.open[i]
	m.open = slices.Delete(m.open, i, i+1)
	body := kernel.StageEndBody{Impl: o.stage + "/x", Started: o.seq, Out: kernel.Sum([]byte(fmt.Sprint(o.stage, o.attempt)))}
	kind := kernel.StageFinished
	if o.stage == "invoke" {
		body.Text = kernel.Sum([]byte("text of " + string(o.attempt)))
		at := m.s.Attempt(o.attempt)
		fail := m.failAttempt
		if m.fail != nil {
			fail = func(at *kernel.Attempt) *kernel.StageEndBody { return m.fail(at.Body.Agent, at.Body.Try) }
		}
		if fail != nil {
			if f := fail(at); f != nil {
				kind = kernel.StageFailed
				f.Started, f.Impl = o.seq, body.Impl
				body = *f
			}
		}
		if kind == kernel.StageFinished {
			m.invoked(at, &body)
		}
	}
	var verdicts []kernel.ClaimVerdict
	if o.stage == "verify" && m.checks != nil {
		body.Status, verdicts = m.checks(m.s.Attempt(o.attempt))
	}
	m.put(kind, o.attempt, o.stage, body)
	for _, v := range verdicts {
		m.put(kernel.VerifyRec, o.attempt, "", v)
	}
	if o.stage == "receipt" && m.says != nil {
		if r := m.says(m.s.Attempt(o.attempt)); r != nil {
			b, err := kernel.Canonical(r)
			if err != nil {
				m.t.Fatal(err)
			}
			m.put(kernel.ReceiptRec, o.attempt, "", kernel.ReceiptBody{Phase: m.s.Attempt(o.attempt).Body.Phase, Receipt: b, Source: "text"})
		}
	}
	if o.stage == "commit" && o.attempt != "" && kind == kernel.StageFinished {
		m.put(kernel.MessageRec, o.attempt, "", kernel.MessageBody{Agent: m.s.Attempt(o.attempt).Body.Agent, Message: m.message(o.attempt)})
	}
	if o.stage == "commit" && o.attempt == "" {
		m.put(kernel.CommitRec, "", "", kernel.CommitBody{Commit: "cmt"})
	}
}

// invoked is what an invoke stage says of a turn in a discussion or council.
func (m *sim) invoked(at *kernel.Attempt, body *kernel.StageEndBody) {
	if m.plan.Name() == "discuss" {
		text := string(at.ID)
		if m.norm != nil {
			text = m.norm(at)
		}
		body.Norm = kernel.Sum([]byte(text))
	}
	if body.Usage = m.use; m.use != nil {
		body.Tools = 1
	}
	if m.s.SlotOf(at.ID).Write {
		body.Candidate = kernel.Sum([]byte("candidate of " + string(at.ID)))
	}
}

func (m *sim) message(at kernel.AttemptID) kernel.MessageID {
	if m.says == nil {
		return ""
	}
	return kernel.MessageID("msg_" + string(m.s.Attempt(at).Body.Agent))
}

// answered decides the oldest open gate, if somebody does.
func (m *sim) answered() bool {
	if m.answer == nil {
		return false
	}
	for _, g := range m.s.OpenGates() {
		if o := m.answer(g); o != "" {
			m.put(kernel.GateDecided, g.Attempt, "", kernel.DecidedBody{By: "person", Gate: g.Gate, Option: o, Text: "words"})
			return true
		}
	}
	return false
}

func (m *sim) endAll() {
	for m.settle(); len(m.open) > 0; m.settle() {
		m.end(func(openStage) bool { return true })
	}
}

// drive runs to the end, moving the clock over back-offs, and returns the pauses.
func (m *sim) drive() []time.Duration {
	m.t.Helper()
	var waits []time.Duration
	for m.s.Finished == nil {
		switch a := m.settle(); {
		case !a.WaitUntil.IsZero():
			waits = append(waits, a.WaitUntil.Sub(m.now))
			m.now = a.WaitUntil
		case len(m.open) > 0:
			m.end(func(openStage) bool { return true })
		case m.answered():
		case m.s.Finished == nil:
			m.t.Fatalf("stuck after\n%s", strings.Join(m.log, "\n"))
		}
	}
	return waits
}

// external are the kinds that the decider does not decide on.
var external = []kernel.RecordKind{kernel.RunCreated, kernel.StageFinished, kernel.StageFailed, kernel.MessageRec, kernel.CommitRec,
	kernel.StopRequested, kernel.RunInterrupted, kernel.RunResumed, kernel.ReceiptRec, kernel.VerifyRec, kernel.GateUsed, kernel.DeliverySent}

// byPerson reports whether a record is somebody's answer.
func byPerson(r kernel.Record) bool {
	return r.Kind == kernel.GateDecided && strings.Contains(string(r.Body), `"by":"person"`)
}

// replay folds every prefix again: it must decide exactly the record that follows.
func (m *sim) replay() {
	m.t.Helper()
	s := kernel.NewState(m.s.Run)
	for _, r := range m.recs {
		if !slices.Contains(external, r.Kind) && !byPerson(r) {
			a := kernel.Next(s, m.plan, r.At)
			kind, ok := a.Kind, true
			if a.Start != "" {
				kind, ok = kernel.StageStarted, a.Start == r.Stage
			} else if b, err := kernel.Canonical(a.Body); err != nil || string(b) != string(r.Body) {
				ok = false
			}
			if !ok || kind != r.Kind || a.Attempt != r.Attempt {
				m.t.Fatalf("record %d is %s %s %s %s, decided is %+v", r.Seq, r.Kind, r.Stage, r.Attempt, r.Body, a)
			}
		}
		if err := s.Apply(r); err != nil {
			m.t.Fatal(err)
		}
	}
}

var update = flag.Bool("update", false, "write the golden ledgers again")

// golden compares the run with the ledger recorded under name and replays the
// recorded one: old ledgers must go on to decide what they once did.
func (m *sim) golden(name string) {
	m.t.Helper()
	file := filepath.Join("testdata", "ledgers", name+".ndjson")
	var b bytes.Buffer
	for _, r := range m.recs {
		b.Write(append(r.Encode(), '\n'))
	}
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			m.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	if !bytes.Equal(want, b.Bytes()) {
		m.t.Errorf("the run differs from %s; if that is meant, run go test ./kernel -update", file)
	}
	old := &sim{t: m.t, s: m.s, plan: m.plan}
	for l := range bytes.Lines(want) {
		r, err := kernel.DecodeRecord(bytes.TrimSuffix(l, []byte("\n")))
		if err != nil {
			m.t.Fatal(err)
		}
		old.recs = append(old.recs, r)
	}
	old.replay()
}

func (m *sim) agent(o openStage) kernel.AgentID {
	if a := m.s.Attempt(o.attempt); a != nil {
		return a.Body.Agent
	}
	return ""
}

func (m *sim) wantEnd(st kernel.RunStatus, reason string) {
	m.t.Helper()
	if f := m.s.Finished; f == nil || f.Status != st || f.Reason != reason {
		m.t.Fatalf("run ended as %+v, want %s %s\n%s", f, st, reason, strings.Join(m.log, "\n"))
	}
}

func (m *sim) index(line string) int {
	m.t.Helper()
	i := slices.Index(m.log, line)
	if i < 0 {
		m.t.Fatalf("%q is not in\n%s", line, strings.Join(m.log, "\n"))
	}
	return i
}
