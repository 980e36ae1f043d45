package kernel

import (
	"strconv"
	"time"
)

// nextDeliver freezes the delivery of every slot before any lease.
func (s *State) nextDeliver(p Plan, ph *Phase, sl *Slot, at *Attempt, refused bool) Action {
	d, end := &at.Deliver, s.ending()
	if end == nil && sl.Stopped {
		end = &stoppedAlone
	}
	switch {
	case refused && !at.Started && !d.Open():
		return s.finishAttempt(ph, at, "failed", ClassExecution, ReasonSnapshotChanged)
	case d.Failed:
		return s.finishAttempt(ph, at, "failed", d.End.Class, d.End.Reason)
	case end != nil && !at.Started:
		return s.finishAttempt(ph, at, end.status, end.class, end.reason)
	case d.Done || d.Open():
		return waiting
	}
	return s.start("deliver", at.ID, s.turn(p, ph, sl, at), Digest{})
}

// stoppedAlone is the end of one agent that was asked to stop.
var stoppedAlone = ending{status: "stopped", class: ClassCancelled, reason: "stopped_by_person"}

// turn is an attempt's place in the run, as deliver takes it.
func (s *State) turn(p Plan, ph *Phase, sl *Slot, at *Attempt) Turn {
	t := Turn{Version: ObjectVersion, Run: s.Run, Plan: s.Created.Plan, Phase: ph.Name, Round: ph.Round, Agent: sl.Agent,
		Role: sl.Role, Write: sl.Write, Members: s.Created.Agents, Snapshot: s.Snapshot, TurnSeq: sl.TurnSeq, Slot: sl.Index,
		Seen: at.Body.Seen, Continue: at.Body.Continue, Rebuilt: at.Body.Rebuilt, Candidate: s.Candidate(), InPlace: sl.Write && s.Created.InPlace}
	if sl.Write {
		t.Mode = s.Created.Permission
	}
	if g, ok := p.(Guide); ok {
		t.Extra, t.Given = g.Brief(s, ph, sl)
		t.Repair, t.Members = g.Repair(s, ph, sl), g.Members(s)
	}
	if s.Created.Output != "" {
		t.OutputDir = s.Created.Output + "/" + ph.Name + "-" + strconv.Itoa(ph.Round) + "-" + strconv.Itoa(sl.Index+1)
	}
	return t
}

// nextAttempt takes one delivered attempt through lease, invoke, receipt and verify.
func (s *State) nextAttempt(p Plan, ph *Phase, sl *Slot, at *Attempt, now time.Time) Action {
	if !at.Started {
		return s.nextLease(ph, at, now)
	}
	end := s.ending()
	if end == nil && sl.Stopped {
		end = &stoppedAlone
	}
	switch inv := &at.Invoke; {
	case inv.Started == 0 && end != nil:
		return s.finishAttempt(ph, at, end.status, end.class, end.reason)
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
	case s.Stopping || sl.Stopped: // a result that arrives after the stop is rejected, its text kept
		return s.finishAttempt(ph, at, "stopped", ClassCancelled, "stopped_by_person")
	}
	if a, ok := s.nextCheck(ph, at, "receipt", &at.Receipt, at.Invoke.End.Out, s.Created.Stages["receipt"]); ok {
		return a
	}
	verify := s.Created.Stages["verify"]
	if g, ok := p.(Guide); ok && !g.Verifies(s, ph, sl, at) {
		verify = StageRef{Use: "verify/none", Class: Pure.String()}
	}
	if a, ok := s.nextCheck(ph, at, "verify", &at.Verify, at.Receipt.End.Out, verify); ok {
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
func (s *State) nextCheck(ph *Phase, at *Attempt, stage string, st *StageState, in Digest, ref StageRef) (Action, bool) {
	switch {
	case st.Done:
		return Action{}, false
	case st.Failed:
		return s.finishAttempt(ph, at, "failed", st.End.Class, st.End.Reason), true
	case st.Open():
		return waiting, true
	case s.Interrupted && ref.Class != Pure.String():
		return waiting, true
	}
	return Action{Start: stage, Attempt: at.ID, Ref: ref, InDigest: in}, true
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
	if a, ok := s.nextBudget(at, now); ok {
		return a
	}
	return Action{Kind: AttemptStarted, Attempt: at.ID, Body: at.Body}
}

func (s *State) finishAttempt(ph *Phase, at *Attempt, status, class, reason string) Action {
	b := AttemptFinishedBody{Agent: at.Body.Agent, Phase: ph.Name, Round: ph.Round, Try: at.Body.Try, Item: at.Body.Item,
		Status: status, Class: class, Reason: reason, Usage: Usage{}}
	if u := at.Invoke.End.Usage; u != nil {
		b.Usage = *u
	}
	return Action{Kind: AttemptFinished, Attempt: at.ID, Body: b}
}
