package kernel

import (
	"encoding/json"
	"strings"
	"time"
)

// Plan decides which phases a run has. Next is called when no phase is open;
// it is pure and reads only the folded run.
type Plan interface {
	Name() string
	// Check refuses a submission the plan cannot work on (Invalid).
	Check(c CreatedBody) error
	Next(s *State) Step
}

// Guide is what a plan with more than one phase adds.
type Guide interface {
	// Brief gives a turn's further fields of the turn block, and what others said.
	Brief(s *State, ph *Phase, sl *Slot) (extra json.RawMessage, given []Given)
	// Members are those who still take part: what a turn is told of.
	Members(s *State) []AgentID
	// Verifies reports whether the pipeline's checks apply to the attempt.
	Verifies(s *State, ph *Phase, sl *Slot, at *Attempt) bool
	// Repair says what an answer of the slot may be asked for once more: receipt, decision or "".
	Repair(s *State, ph *Phase, sl *Slot) string
}

// Step is what a plan wants: exactly one of a phase, a gate, a record of the
// agreed plan, to wait for a gate, or the end.
type Step struct {
	Phase  *PhaseStartedBody
	Gate   *GateBody
	Agreed *AgreedBody
	Wait   bool
	Status RunStatus
	Reason string
}

// Action is what the driver does next. Exactly one of Append, Start, WaitUntil
// and Wait is meant.
type Action struct {
	// Append: this record, as it is. TurnSeq of a phase's slots and session
	// fields of a queued attempt are filled in by the driver.
	Kind    RecordKind
	Attempt AttemptID
	Body    any

	// Start: this stage, on In (an object to be stored) or InDigest.
	Start    string
	Ref      StageRef
	In       any
	InDigest Digest

	// WaitUntil: nothing before this time, unless something is reported earlier.
	WaitUntil time.Time
	// Wait: nothing to do until something is reported.
	Wait bool
}

var waiting = Action{Wait: true}

// Next decides the one next step of a run. It is pure; now only decides
// whether a back-off or a budget of time has run out.
func Next(s *State, p Plan, now time.Time) Action {
	if s.Finished != nil || s.Head.Seq == 0 {
		return waiting
	}
	if a, ok := s.nextFreeze(); ok {
		return a
	}
	if a, ok := s.nextDenial(); ok {
		return a
	}
	if ph := s.Phase(); ph != nil && !ph.Finished {
		return s.nextInPhase(p, ph, now)
	}
	if e := s.ending(); e != nil && (s.Interrupted || s.Commit.Started == 0 || s.commitMoved()) { // a commit that began is not torn
		return s.finish(e.run, e.runReason)
	}
	step := p.Next(s)
	switch {
	case step.Phase != nil:
		return Action{Kind: PhaseStarted, Body: *step.Phase}
	case step.Gate != nil:
		return Action{Kind: GateOpened, Body: *step.Gate}
	case step.Agreed != nil:
		return Action{Kind: PlanAgreed, Body: *step.Agreed}
	case step.Wait:
		return waiting
	case step.Status == RunCompleted:
		if a, ok := s.nextCommit(); ok {
			return a
		}
	}
	return s.finish(step.Status, step.Reason)
}

// nextDenial answers the oldest open gate that nobody can answer any more: of a
// run that asks nobody or is being stopped, or of a turn that is over. Loss is denial.
func (s *State) nextDenial() (Action, bool) {
	for _, g := range s.OpenGates() {
		by := ""
		switch {
		case s.Created.OnGate == OnGateDeny:
			by = "policy"
		case s.Stopping:
			by = "stop"
		case s.lost(g):
			by = "turn-ended"
		}
		if by != "" {
			return Action{Kind: GateDecided, Attempt: g.Attempt, Body: DecidedBody{By: by, Gate: g.Gate, Option: g.Refusal()}}, true
		}
	}
	return Action{}, false
}

// lost reports whether an agent's question has nobody to take its answer: its
// turn is over, and not because the run was parked or lost its host.
func (s *State) lost(g *Gate) bool {
	at := s.byID[g.Attempt]
	if at == nil || g.Kind != GatePermission && g.Kind != GateInput {
		return false
	}
	return s.slotOf[at.ID].Stopped || at.Finished != nil && at.Finished.Status != "interrupted"
}

// ending is why a run is on its way out before its plan says so, and what its
// attempts and the run itself then are.
type ending struct {
	status, class, reason string
	run                   RunStatus
	runReason             string
	resumes               bool // the phase stays open for a resume
}

func (s *State) ending() *ending {
	switch {
	case s.Interrupted:
		return &ending{"interrupted", ClassCancelled, "host_gone", RunInterruptedSt, "host_gone", true}
	case s.Stopping:
		return &ending{"stopped", ClassCancelled, "stopped_by_person", RunStopped, "stopped_by_person", false}
	case s.Tripped != nil:
		return &ending{"stopped", ClassBudget, "budget_exhausted", RunBudgetExhausted, "budget_" + plain(s.Tripped.Limit), true}
	case s.Parked():
		return &ending{"interrupted", ClassPermission, ReasonGateWaits, RunWaiting, ReasonGateWaits, true}
	}
	return nil
}

// ReasonGateWaits says that the run is parked until somebody answers.
const ReasonGateWaits = "gate_waits"

func plain(limit string) string { return strings.TrimPrefix(limit, "unknown/") }

func (s *State) finish(st RunStatus, reason string) Action {
	return Action{Kind: RunFinished, Body: FinishedBody{Status: st, Reason: reason, Usage: s.Usage}}
}

func (s *State) start(stage string, attempt AttemptID, in any, d Digest) Action {
	return Action{Start: stage, Attempt: attempt, Ref: s.Created.Stages[stage], In: in, InDigest: d}
}

// nextFreeze drives the snapshot; every run begins with it.
func (s *State) nextFreeze() (Action, bool) {
	f := &s.Freeze
	switch {
	case !s.Snapshot.IsZero():
		return Action{}, false
	case f.Done:
		return Action{Kind: SnapshotFrozen, Body: SnapshotBody{f.End.Out}}, true
	case f.Failed && s.Stopping:
		return s.finish(RunStopped, "stopped_by_person"), true
	case f.Failed && !s.Interrupted:
		return s.finish(RunFailed, f.End.Reason), true
	case s.Interrupted:
		return s.finish(RunInterruptedSt, "host_gone"), true
	case s.Stopping && !f.Open():
		return s.finish(RunStopped, "stopped_by_person"), true
	case f.Open():
		return waiting, true
	}
	return s.start("freeze", "", nil, s.Created.Task), true
}
