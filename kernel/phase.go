package kernel

import (
	"slices"
	"strconv"
	"time"
)

// nextInPhase drives the slots of the open phase: queue all, deliver all, then
// lease up to the limit, then through the stages; behind the barrier publish in
// slot order.
func (s *State) nextInPhase(p Plan, ph *Phase, now time.Time) Action {
	end := s.ending()
	if end == nil {
		if a, ok := s.nextQueue(ph); ok {
			return a
		}
	} else if s.Interrupted { // what happened to a write is asked, whoever resumes
		for _, sl := range ph.Slots {
			if a, ok := s.nextWriterGate(sl); ok && !a.Wait {
				return a
			}
		}
	}
	wait := waiting
	if end == nil {
		if t := s.deadline(); !t.IsZero() {
			if !now.Before(t) {
				return Action{Kind: BudgetTripped, Body: TrippedBody{"elapsed", s.elapsed(now).Milliseconds()}}
			}
			wait.WaitUntil = t
		}
	}
	delivered, refused := true, refused(ph)
	for _, sl := range ph.Slots {
		at := sl.Last()
		if at == nil || at.Finished != nil {
			continue
		}
		if a := s.nextDeliver(p, ph, sl, at, refused); !a.Wait {
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
			a := s.nextAttempt(p, ph, sl, at, now)
			switch {
			case !a.WaitUntil.IsZero():
				if wait.WaitUntil.IsZero() || a.WaitUntil.Before(wait.WaitUntil) {
					wait.WaitUntil = a.WaitUntil
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
		b := AttemptBody{Agent: sl.Agent, Phase: ph.Name, Round: ph.Round, Slot: sl.Index, Item: sl.Item, Try: len(sl.Attempts) + 1}
		again := sl.Again
		if a, ok := s.nextWriterGate(sl); ok {
			if !a.Wait {
				return a, true
			}
			continue
		} else if d := s.writerDecision(sl); d != nil {
			if d.Option != "retry-once" && d.Option != "same-writer" {
				continue
			}
			again = true
		}
		switch {
		case sl.Stopped:
			continue
		case at == nil || again:
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
		if n := s.Created.Attempts; n > 0 && s.Attempts >= n { // the circuit breaker
			return Action{Kind: BudgetTripped, Body: TrippedBody{"attempts", int64(s.Attempts)}}, true
		}
		id := AttemptID(DeriveID(AttemptPrefix, string(s.Run), ph.Name, strconv.Itoa(ph.Round), strconv.Itoa(sl.Index), strconv.Itoa(b.Try)))
		return Action{Kind: AttemptQueued, Attempt: id, Body: b}, true
	}
	return Action{}, false
}

// unknownWrite reports whether an ended attempt may have written and nobody
// knows what: it is never repeated without a gate.
func (s *State) unknownWrite(sl *Slot) bool {
	at := sl.Last()
	if at == nil || at.Finished == nil || !sl.Write || !at.Sent || sl.Consent || sl.Stopped {
		return false
	}
	switch at.Finished.Status {
	case "failed", "stalled":
		return at.Invoke.Failed && (at.Invoke.End.Effects || s.diedWriting(at))
	case "interrupted":
		return at.Finished.Reason != ReasonGateWaits && !s.held(at)
	}
	return false
}

// diedWriting reports whether the only writer of a council died, told of a write
// or not: the person says who goes on.
func (s *State) diedWriting(at *Attempt) bool {
	return s.Created.Plan == "council" && (at.Finished.Status == "stalled" || at.Finished.Reason == "agent_died")
}

// held reports whether an attempt ended while a question of it was open: then
// the answer to that says whether it goes on.
func (s *State) held(at *Attempt) bool {
	return slices.ContainsFunc(s.Gates, func(g *Gate) bool { return g.Attempt == at.ID && g.Kind != GateRetry && !g.Used })
}

func (s *State) writerGate(sl *Slot) GateBody {
	at := sl.Last()
	b := GateBody{Gate: NewGateID(s.Run, GateRetry, string(at.ID)), Kind: GateRetry, Target: s.Created.Workspace, Options: RetryOrNot,
		Summary: "What " + string(sl.Agent) + " wrote before its turn ended is not known (" + at.Finished.Reason + ")"}
	if s.Created.Plan == "council" {
		b.Options = WriterOptions
	}
	return b
}

// nextWriterGate asks what to do about a writer that died: the gate's opening,
// or to wait for its answer. It is false when there is nothing to ask, or an answer.
func (s *State) nextWriterGate(sl *Slot) (Action, bool) {
	if !s.unknownWrite(sl) {
		return Action{}, false
	}
	_, a, ok := s.gate(s.writerGate(sl), sl.Last().ID)
	return a, !ok
}

// writerDecision is the answer about a writer that died; nil without one.
func (s *State) writerDecision(sl *Slot) *DecidedBody {
	if !s.unknownWrite(sl) {
		return nil
	}
	if g := s.Gate(s.writerGate(sl).Gate); g != nil {
		return g.Decision
	}
	return nil
}

// WriterDecision is what the person decided about the writer of the phase that
// died; "" without such a decision.
func (s *State) WriterDecision(ph *Phase) string {
	for _, sl := range ph.Slots {
		if d := s.writerDecision(sl); d != nil {
			return d.Option
		}
	}
	return ""
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

// nextPublish runs behind the barrier: the commit stage of every slot that has
// text, in slot order, then the end of the phase. A run that will be resumed
// publishes what is there and leaves the phase open.
func (s *State) nextPublish(ph *Phase) (Action, bool) {
	end := s.ending()
	for _, sl := range ph.Slots {
		if at := sl.Last(); at != nil && at.Finished == nil && !s.Interrupted {
			return waiting, true
		}
		if a, ok := s.nextWriterGate(sl); ok && end == nil {
			return a, true
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
	if end != nil && end.resumes {
		return s.finish(end.run, end.runReason), true
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
