package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// nextCommit drives the run's own commit, of the accepted result.
func (s *State) nextCommit() (Action, bool) {
	c := &s.Commit
	switch {
	case s.Committed != nil:
		return Action{}, false
	case s.commitMoved():
		return s.nextMoved()
	case c.Failed:
		return s.finish(RunFailed, c.End.Reason), true
	case c.Open():
		return waiting, true
	}
	if a, ok := s.nextCommitGate(); ok {
		return a, true
	}
	return s.startCommit(), true
}

// moved are failures of a commit after which the person may want another try:
// nothing was written.
var moved = map[string]bool{"apply_conflict": true, "branch_exists": true}

// commitMoved reports whether the commit met something else in its place: then
// the person is asked, and until the answer nothing is at work.
func (s *State) commitMoved() bool { return s.Commit.Failed && moved[s.Commit.End.Reason] }

func (s *State) movedGate() GateID {
	return NewGateID(s.Run, GateDecision, "commit", strconv.FormatUint(s.Commit.EndSeq, 10))
}

// awaitsMoved reports whether a run that is resumed still owes that question, or
// the answer to it: a run that ended with it tries again instead.
func (s *State) awaitsMoved() bool {
	ended := s.Finished != nil && s.Finished.Status != RunWaiting && s.Finished.Status != RunInterruptedSt
	return s.commitMoved() && !ended && s.Gate(s.movedGate()) != nil
}

func (s *State) nextMoved() (Action, bool) {
	d, a, ok := s.gate(GateBody{Gate: s.movedGate(), Kind: GateDecision,
		Summary: "The result cannot be committed: " + s.Commit.End.Why, Target: s.Created.Workspace, Options: ContinueOrStop}, "")
	switch {
	case !ok:
		return a, true
	case d.Option == "stop":
		return s.finish(RunPartial, s.Commit.End.Reason), true
	}
	return s.startCommit(), true
}

// nextCommitGate asks before a result with unverified claims is committed, where
// that is wanted.
func (s *State) nextCommitGate() (Action, bool) {
	if !s.Created.CommitGate {
		return Action{}, false
	}
	const shown = 8
	var open []string
	for _, p := range s.Phases {
		for _, sl := range p.Slots {
			if a := s.byID[sl.Published]; a != nil {
				for _, c := range a.Claims {
					if c.Verdict != "verified" {
						open = append(open, fmt.Sprintf("%q (%s)", c.Claim, c.Reason))
					}
				}
			}
		}
	}
	if len(open) == 0 {
		return Action{}, false
	}
	text := strings.Join(open[:min(shown, len(open))], "; ")
	if n := len(open) - shown; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	d, a, ok := s.gate(GateBody{Gate: NewGateID(s.Run, GateDecision, "unverified"), Kind: GateDecision,
		Summary: "Not verified: " + text, Options: ContinueOrStop}, "")
	switch {
	case !ok:
		return a, true
	case d.Option == "stop":
		return s.finish(RunPartial, "not_accepted"), true
	}
	return Action{}, false
}

func (s *State) startCommit() Action {
	v := Verdict{Version: ObjectVersion, Scope: "run", Status: "completed", Run: s.Run, Snapshot: s.Snapshot, Candidate: s.Candidate(),
		Results: []ClaimVerdict{}, Outcomes: []Outcome{}}
	for _, p := range s.Phases {
		for _, sl := range p.Slots {
			if a := s.byID[sl.Published]; a != nil {
				v.Parts = append(v.Parts, a.Commit.End.Out)
			}
		}
	}
	return s.start("commit", "", v, Digest{})
}

// Candidate is the content that the last finished writing attempt left; zero
// when nobody has written. What a try left that did not complete does not count.
func (s *State) Candidate() Digest {
	for _, p := range slices.Backward(s.Phases) {
		for _, sl := range slices.Backward(p.Slots) {
			at := sl.Last()
			if !sl.Write || at == nil || at.Finished == nil || at.Invoke.End.Candidate.IsZero() {
				continue
			}
			if st := at.Finished.Status; st == "completed" || st == "partial" {
				return at.Invoke.End.Candidate
			}
		}
	}
	return Digest{}
}
