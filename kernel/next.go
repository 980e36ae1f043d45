package kernel

import (
	"slices"
	"strconv"
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

// Step is what a plan wants: a phase, or the end.
type Step struct {
	Phase  *PhaseStartedBody
	Status RunStatus // with Phase nil
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
// whether a back-off has run out.
func Next(s *State, p Plan, now time.Time) Action {
	if s.Finished != nil || s.Head.Seq == 0 {
		return waiting
	}
	if a, ok := s.nextFreeze(); ok {
		return a
	}
	if ph := s.Phase(); ph != nil && !ph.Finished {
		return s.nextInPhase(ph, now)
	}
	switch {
	case s.Interrupted:
		return s.finish(RunInterruptedSt, "host_gone")
	case s.Stopping && s.Commit.Started == 0: // a commit that began is not torn
		return s.finish(RunStopped, "stopped_by_person")
	}
	step := p.Next(s)
	if step.Phase != nil {
		return Action{Kind: PhaseStarted, Body: *step.Phase}
	}
	if step.Status == RunCompleted {
		if a, ok := s.nextCommit(); ok {
			return a
		}
	}
	return s.finish(step.Status, step.Reason)
}

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

// nextCommit drives the run's own commit, of the accepted result.
func (s *State) nextCommit() (Action, bool) {
	c := &s.Commit
	switch {
	case s.Committed != nil:
		return Action{}, false
	case c.Failed:
		return s.finish(RunFailed, c.End.Reason), true
	case c.Open():
		return waiting, true
	}
	v := Verdict{Version: ObjectVersion, Scope: "run", Status: "completed", Run: s.Run, Snapshot: s.Snapshot,
		Results: []ClaimVerdict{}, Outcomes: []Outcome{}}
	for _, p := range s.Phases {
		for _, sl := range p.Slots {
			if a := s.byID[sl.Published]; a != nil {
				v.Parts = append(v.Parts, a.Commit.End.Out)
			}
		}
	}
	return s.start("commit", "", v, Digest{}), true
}

// nextInPhase drives the slots of the open phase: queue all, deliver all, then
// lease up to the limit, then through the stages; behind the barrier publish in
// slot order.
func (s *State) nextInPhase(ph *Phase, now time.Time) Action {
	ending := s.Stopping || s.Interrupted
	if !ending {
		if a, ok := s.nextQueue(ph); ok {
			return a
		}
	}
	wait := waiting
	delivered, refused := true, refused(ph)
	for _, sl := range ph.Slots {
		at := sl.Last()
		if at == nil || at.Finished != nil {
			continue
		}
		if a := s.nextDeliver(ph, sl, at, ending, refused); !a.Wait {
			return a
		}
		delivered = delivered && at.Deliver.Done
	}
	if delivered {
		for _, sl := range ph.Slots {
			at := sl.Last()
			if at == nil || at.Finished != nil {
				continue
			}
			a := s.nextAttempt(ph, sl, at, now)
			switch {
			case !a.WaitUntil.IsZero():
				if wait.WaitUntil.IsZero() || a.WaitUntil.Before(wait.WaitUntil) {
					wait = a
				}
			case !a.Wait:
				return a
			}
		}
	}
	if a, ok := s.nextPublish(ph); ok && !a.Wait {
		return a
	}
	return wait
}

// nextQueue queues the first slot that lacks an attempt or wants another try.
func (s *State) nextQueue(ph *Phase) (Action, bool) {
	for _, sl := range ph.Slots {
		at := sl.Last()
		b := AttemptBody{Agent: sl.Agent, Phase: ph.Name, Round: ph.Round, Slot: sl.Index, Try: len(sl.Attempts) + 1}
		switch {
		case sl.Stopped:
			continue
		case at == nil || sl.Again:
		case at.Finished != nil && s.Attempts < s.Created.Attempts:
			wait, ok := retryAfter(sl, at)
			if !ok {
				continue
			}
			nb := at.FinishedAt.Add(wait)
			b.NotBefore = &nb
		default:
			continue
		}
		id := AttemptID(DeriveID(AttemptPrefix, string(s.Run), ph.Name, strconv.Itoa(ph.Round), strconv.Itoa(sl.Index), strconv.Itoa(b.Try)))
		return Action{Kind: AttemptQueued, Attempt: id, Body: b}, true
	}
	return Action{}, false
}

const (
	maxRetries  = 4
	backoffBase = 250 * time.Millisecond
)

// retryAfter is the retry policy of SPEC G4: transient classes up to four times
// with doubling back-off, a dead session once, everything else never, and
// nothing that may have had effects.
func retryAfter(sl *Slot, at *Attempt) (time.Duration, bool) {
	f := at.Finished
	if f.Status != "failed" || at.Invoke.End.Effects || noRetry[f.Reason] {
		return 0, false
	}
	same := 0
	for _, a := range slices.Backward(sl.Attempts) {
		if a.Finished == nil || a.Finished.Status != "failed" || a.Finished.Class != f.Class {
			break
		}
		same++
	}
	switch f.Class {
	case ClassSession:
		return 0, same <= 1
	case ClassRateLimit, ClassNetwork, ClassProvider, ClassTimeout, ClassProtocol:
		if same > maxRetries {
			return 0, false
		}
		d := backoffBase << (same - 1)
		return max(d, time.Duration(at.Invoke.End.RetryAfter)*time.Millisecond), true
	}
	return 0, false
}

// noRetry are reasons that repeating cannot change.
var noRetry = map[string]bool{"protocol_line_too_large": true, "receipt_missing": true, "receipt_invalid": true,
	"unknown_stop_reason": true, "receipt_mismatch": true, "receipt_stale": true, "receipt_too_large": true, "stalled": true}

// ReasonSnapshotChanged says that frozen bytes no longer match their hash.
const ReasonSnapshotChanged = "snapshot_changed"

// refused reports whether a delivery found the snapshot changed: then no agent starts.
func refused(ph *Phase) bool {
	return slices.ContainsFunc(ph.Slots, func(sl *Slot) bool {
		at := sl.Last()
		return at != nil && at.Deliver.Failed && at.Deliver.End.Reason == ReasonSnapshotChanged
	})
}

// nextDeliver freezes the delivery of every slot before any lease.
func (s *State) nextDeliver(ph *Phase, sl *Slot, at *Attempt, ending, refused bool) Action {
	d := &at.Deliver
	switch {
	case refused && !at.Started && !d.Open():
		return s.finishAttempt(ph, at, "failed", ClassExecution, ReasonSnapshotChanged)
	case d.Failed:
		return s.finishAttempt(ph, at, "failed", d.End.Class, d.End.Reason)
	case (ending || sl.Stopped) && !at.Started:
		return s.finishAttempt(ph, at, s.endStatus(), ClassCancelled, s.endReason())
	case d.Done || d.Open():
		return waiting
	}
	t := Turn{Version: ObjectVersion, Run: s.Run, Plan: s.Created.Plan, Phase: ph.Name, Round: ph.Round, Agent: sl.Agent,
		Role: sl.Role, Write: sl.Write, Members: s.Created.Agents, Snapshot: s.Snapshot, TurnSeq: sl.TurnSeq, Slot: sl.Index,
		Seen: at.Body.Seen, Continue: at.Body.Continue, Rebuilt: at.Body.Rebuilt, Extra: sl.Extra}
	if s.Created.Output != "" {
		t.OutputDir = s.Created.Output + "/" + ph.Name + "-" + strconv.Itoa(ph.Round) + "-" + strconv.Itoa(sl.Index+1)
	}
	return s.start("deliver", at.ID, t, Digest{})
}

func (s *State) endStatus() string {
	if s.Interrupted {
		return "interrupted"
	}
	return "stopped"
}

func (s *State) endReason() string {
	if s.Interrupted {
		return "host_gone"
	}
	return "stopped_by_person"
}

// nextAttempt takes one delivered attempt through lease, invoke, receipt and verify.
func (s *State) nextAttempt(ph *Phase, sl *Slot, at *Attempt, now time.Time) Action {
	if !at.Started {
		return s.nextLease(ph, at, now)
	}
	stopped := s.Stopping || sl.Stopped
	switch inv := &at.Invoke; {
	case inv.Started == 0 && (stopped || s.Interrupted):
		return s.finishAttempt(ph, at, s.endStatus(), ClassCancelled, s.endReason())
	case inv.Started == 0:
		return s.start("invoke", at.ID, nil, at.Deliver.End.Out)
	case inv.Open():
		return waiting
	case inv.Failed:
		st := inv.End.Status
		if st == "" {
			st = "failed"
		}
		return s.finishAttempt(ph, at, st, inv.End.Class, inv.End.Reason)
	case stopped: // a result that arrives after the stop is rejected, its text kept
		return s.finishAttempt(ph, at, "stopped", ClassCancelled, "stopped_by_person")
	}
	if a, ok := s.nextCheck(ph, at, "receipt", &at.Receipt, at.Invoke.End.Out); ok {
		return a
	}
	if a, ok := s.nextCheck(ph, at, "verify", &at.Verify, at.Receipt.End.Out); ok {
		return a
	}
	if at.Verify.End.Status != "" {
		return s.finishAttempt(ph, at, at.Verify.End.Status, ClassExecution, ReasonVerifyFailed)
	}
	return s.finishAttempt(ph, at, "completed", "", "")
}

// ReasonVerifyFailed says that the checks of an answer did not pass.
const ReasonVerifyFailed = "verify_failed"

// nextCheck drives a stage behind invoke. After an interruption only pure ones
// go on by themselves; the rest waits for resume.
func (s *State) nextCheck(ph *Phase, at *Attempt, stage string, st *StageState, in Digest) (Action, bool) {
	switch {
	case st.Done:
		return Action{}, false
	case st.Failed:
		return s.finishAttempt(ph, at, "failed", st.End.Class, st.End.Reason), true
	case st.Open():
		return waiting, true
	case s.Interrupted && s.Created.Stages[stage].Class != Pure.String():
		return waiting, true
	}
	return s.start(stage, at.ID, nil, in), true
}

func (s *State) nextLease(ph *Phase, at *Attempt, now time.Time) Action {
	running := 0
	for _, o := range ph.Slots {
		if l := o.Last(); l != nil && l.Started && l.Finished == nil {
			running++
		}
	}
	if running >= max(1, s.Created.Concurrency) {
		return waiting
	}
	if nb := at.Body.NotBefore; nb != nil && now.Before(*nb) {
		return Action{WaitUntil: *nb}
	}
	return Action{Kind: AttemptStarted, Attempt: at.ID, Body: at.Body}
}

func (s *State) finishAttempt(ph *Phase, at *Attempt, status, class, reason string) Action {
	b := AttemptFinishedBody{Agent: at.Body.Agent, Phase: ph.Name, Round: ph.Round, Try: at.Body.Try,
		Status: status, Class: class, Reason: reason, Usage: Usage{}}
	if u := at.Invoke.End.Usage; u != nil {
		b.Usage = *u
	}
	return Action{Kind: AttemptFinished, Attempt: at.ID, Body: b}
}

// nextPublish runs behind the barrier: the commit stage of every slot that has
// text, in slot order, then the end of the phase. An interrupted run publishes
// what is there and leaves the phase open for resume.
func (s *State) nextPublish(ph *Phase) (Action, bool) {
	for _, sl := range ph.Slots {
		if at := sl.Last(); at != nil && at.Finished == nil && !s.Interrupted {
			return waiting, true
		}
	}
	for _, sl := range ph.Slots {
		at := sl.Last()
		if at == nil || at.Finished == nil || sl.Published == at.ID || at.Commit.Failed || at.Commit.Done {
			continue
		}
		if at.Commit.Open() {
			return waiting, true
		}
		if a, ok := s.publish(at); ok {
			return a, true
		}
	}
	if s.Interrupted {
		return s.finish(RunInterruptedSt, "host_gone"), true
	}
	return Action{Kind: PhaseFinished, Body: PhaseFinishedBody{Phase: ph.Name, Round: ph.Round, Status: s.phaseStatus(ph)}}, true
}

func (s *State) publish(at *Attempt) (Action, bool) {
	if at.Verify.Done {
		return s.start("commit", at.ID, nil, at.Verify.End.Out), true
	}
	if at.Invoke.End.Text.IsZero() {
		return Action{}, false
	}
	v := Verdict{Version: ObjectVersion, Scope: "attempt", Turn: at.Deliver.In, Text: at.Invoke.End.Text,
		Status: at.Finished.Status, Results: []ClaimVerdict{}, Outcomes: []Outcome{}}
	return s.start("commit", at.ID, v, Digest{}), true
}

func (s *State) phaseStatus(ph *Phase) string {
	if s.Stopping {
		return "stopped"
	}
	done, some := 0, false
	for _, sl := range ph.Slots {
		at := sl.Last()
		if at == nil || at.Finished == nil || at.Commit.Failed {
			continue
		}
		switch at.Finished.Status {
		case "completed":
			done++
		case "partial":
			some = true
		}
	}
	switch {
	case done == len(ph.Slots):
		return "completed"
	case done == 0 && !some:
		return "failed"
	}
	return "partial"
}
