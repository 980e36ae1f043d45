package kernel

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// State is a run as its records tell it. It is built by Apply alone; nobody
// else writes to it.
type State struct {
	Run       RunID
	Head      Head
	Created   CreatedBody
	CreatedAt time.Time
	LastAt    time.Time

	Freeze    StageState
	Snapshot  Digest
	Phases    []*Phase
	Commit    StageState // of the run
	Committed *CommitBody

	Stopping    bool
	Interrupted bool // the driving host died; cleared by resume
	Finished    *FinishedBody
	FinishedAt  time.Time
	Usage       Usage
	Attempts    int   // made so far
	Tools       int   // calls of all ended attempts
	Bytes       int64 // sent to agents
	Gates       []*Gate
	Agreed      *AgreedBody
	Tripped     *TrippedBody // a hard budget was passed in flight

	idle         time.Duration // parked, stopped or without a host
	started      int           // attempts dispatched
	used         bool          // Usage holds at least one attempt
	byID         map[AttemptID]*Attempt
	slotOf       map[AttemptID]*Slot
	gateByID     map[GateID]*Gate
	gatesOpen    int
	decidedGates int // gates before this index are decided
	derived      map[string]any
}

// Phase is one barrier-ended step of the plan.
type Phase struct {
	Name     string
	Round    int
	First    int // place of the first slot in its round
	Slots    []*Slot
	Finished bool
	Status   string
}

// Slot is one agent's place in a phase; its last attempt is the one that counts.
type Slot struct {
	SlotBody
	Index     int
	Attempts  []*Attempt
	Published AttemptID // attempt whose text is the slot's message
	Stopped   bool      // this agent alone was asked to stop
	Again     bool      // a resume or retry wants a new try
	Consent   bool      // the person asked for that try
	Message   MessageID // of the published attempt
}

// Last returns the slot's latest attempt, or nil.
func (s *Slot) Last() *Attempt {
	if len(s.Attempts) == 0 {
		return nil
	}
	return s.Attempts[len(s.Attempts)-1]
}

// Attempt is one try at filling a slot.
type Attempt struct {
	ID         AttemptID
	Body       AttemptBody
	Started    bool
	Sent       bool // the prompt may have left
	Finished   *AttemptFinishedBody
	FinishedAt time.Time
	Deliver    StageState
	Invoke     StageState
	Receipt    StageState
	Verify     StageState
	Commit     StageState
	Said       json.RawMessage // the receipt, canonical; nil without one
	Read       any             // what a plan has read of Said, once
	Claims     []ClaimVerdict
}

// StageState is how far one stage got.
type StageState struct {
	Started uint64 // seq of stage.started; 0 = not started
	Impl    string
	In      Digest
	Done    bool // finished
	Failed  bool
	End     StageEndBody
	EndSeq  uint64
}

// Open reports whether the stage was started and has no end yet.
func (s *StageState) Open() bool { return s.Started > 0 && !s.Done && !s.Failed }

// NewState returns the state of a run without records.
func NewState(run RunID) *State {
	return &State{Run: run, byID: map[AttemptID]*Attempt{}, slotOf: map[AttemptID]*Slot{}, gateByID: map[GateID]*Gate{}}
}

// Derived keeps what a plan derives of the phases that are finished, until there
// is another: a long run is not read again at every step. The value must be a
// pure function of those phases, and nobody may change it.
func Derived[T any](s *State, key string, build func() T) T {
	if v, ok := s.derived[key].(T); ok {
		return v
	}
	v := build()
	if s.derived == nil {
		s.derived = map[string]any{}
	}
	s.derived[key] = v
	return v
}

// Fold applies all records to a new state.
func Fold(run RunID, recs []Record) (*State, error) {
	s := NewState(run)
	for _, r := range recs {
		if err := s.Apply(r); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Attempt finds an attempt by id, or nil.
func (s *State) Attempt(id AttemptID) *Attempt { return s.byID[id] }

// Phase returns the latest phase, or nil.
func (s *State) Phase() *Phase {
	if len(s.Phases) == 0 {
		return nil
	}
	return s.Phases[len(s.Phases)-1]
}

// SlotOf returns the slot of an attempt, or nil.
func (s *State) SlotOf(id AttemptID) *Slot { return s.slotOf[id] }

// Status is the run's status as lists show it.
func (s *State) Status() RunStatus {
	if s.Finished != nil {
		return s.Finished.Status
	}
	return RunRunning
}

// Summary is the run's row in lists.
func (s *State) Summary() RunSummary {
	sum := RunSummary{Run: s.Run, Gates: s.gatesOpen, Conversation: s.Created.Conversation, Status: s.Status(), Plan: s.Created.Plan,
		Agents: s.Created.Agents, Created: s.CreatedAt, Title: s.Created.Title, Usage: s.Usage}
	if s.Finished != nil {
		at := s.FinishedAt
		sum.Finished, sum.Reason = &at, s.Finished.Reason
	}
	return sum
}

// Apply folds the next record in. It fails with Invalid when the record cannot
// follow: wrong number, wrong previous hash, unknown attempt, or a body of the
// wrong shape. After an error the state must not be used.
func (s *State) Apply(r Record) error {
	if r.Run != s.Run || r.Seq != s.Head.Seq+1 || r.Prev != s.Head.Hash {
		return E("kernel.Apply", Invalid, nil, "record %d of %s does not follow %d of %s", r.Seq, r.Run, s.Head.Seq, s.Run)
	}
	if err := s.apply(r); err != nil {
		return &Error{Op: "kernel.Apply", Kind: Invalid, Run: s.Run, What: fmt.Sprintf("record %d (%s) cannot follow", r.Seq, r.Kind), Err: err}
	}
	s.Head = Head{r.Seq, HashRecord(r.Encode())}
	s.LastAt = r.At
	return nil
}

func body[T any](r Record) (T, error) {
	var v T
	return v, decodeInto(r.Body, &v)
}

// decodeInto decodes a canonical body; unknown fields are refused so that a
// newer record is never half-read.
func decodeInto(b json.RawMessage, v any) error { return DecodeStrict(b, v) }

func (s *State) apply(r Record) error {
	switch r.Kind {
	case RunCreated:
		return s.applyCreated(r)
	case SnapshotFrozen:
		b, err := body[SnapshotBody](r)
		s.Snapshot = b.Snapshot
		return err
	case StageStarted, StageFinished, StageFailed:
		return s.applyStage(r)
	case PhaseStarted:
		return s.applyPhase(r)
	case PhaseFinished:
		b, err := body[PhaseFinishedBody](r)
		if p := s.Phase(); err == nil && p != nil {
			s.derived = nil
			p.Finished, p.Status = true, b.Status
		}
		return err
	case AttemptQueued, AttemptStarted, AttemptFinished:
		return s.applyAttempt(r)
	case StopRequested:
		return s.applyStop(r)
	case RunInterrupted:
		s.Interrupted = true
		b, err := body[InterruptedBody](r)
		if b.Reason == "host_gone" { // said by a later host: nobody knows when it went
			s.idle += max(0, r.At.Sub(s.LastAt))
		}
		return err
	case RunResumed:
		return s.applyResumed(r)
	case MessageRec:
		b, err := body[MessageBody](r)
		if sl := s.slotOf[r.Attempt]; sl != nil {
			sl.Published, sl.Message = r.Attempt, b.Message
		}
		return err
	case DeliverySent:
		if a := s.byID[r.Attempt]; a != nil {
			a.Sent = true
		}
		_, err := body[DeliverySentBody](r)
		return err
	case GateOpened, GateDecided, GateUsed, GateRevoked:
		return s.applyGate(r)
	case ReceiptRec:
		b, err := body[ReceiptBody](r)
		if a := s.byID[r.Attempt]; a != nil {
			a.Said = b.Receipt
		}
		return err
	case VerifyRec:
		b, err := body[ClaimVerdict](r)
		if a := s.byID[r.Attempt]; a != nil {
			a.Claims = append(a.Claims, b)
		}
		return err
	case PlanAgreed:
		b, err := body[AgreedBody](r)
		s.Agreed, s.derived = &b, nil
		return err
	case BudgetTripped:
		b, err := body[TrippedBody](r)
		s.Tripped = &b
		return err
	case CommitRec:
		b, err := body[CommitBody](r)
		s.Committed = &b
		return err
	case RunFinished:
		b, err := body[FinishedBody](r)
		s.Finished, s.FinishedAt = &b, r.At
		return err
	}
	return nil // kinds that say something to people only
}

func (s *State) applyCreated(r Record) error {
	b, err := body[CreatedBody](r)
	if err != nil {
		return err
	}
	if r.Seq != 1 {
		return fmt.Errorf("run.created is not the first record")
	}
	s.Created, s.CreatedAt = b, r.At
	return nil
}

func (s *State) applyPhase(r Record) error {
	s.derived = nil
	b, err := body[PhaseStartedBody](r)
	if err != nil {
		return err
	}
	p := &Phase{Name: b.Phase, Round: b.Round, First: b.First}
	for i, sb := range b.Slots {
		p.Slots = append(p.Slots, &Slot{SlotBody: sb, Index: b.First + i})
	}
	s.Phases = append(s.Phases, p)
	return nil
}

func (s *State) applyAttempt(r Record) error {
	if r.Kind == AttemptFinished {
		b, err := body[AttemptFinishedBody](r)
		a := s.byID[r.Attempt]
		if err != nil || a == nil {
			return orUnknown(err, r.Attempt)
		}
		a.Finished, a.FinishedAt = &b, r.At
		s.addUsage(b.Usage)
		return nil
	}
	b, err := body[AttemptBody](r)
	if err != nil {
		return err
	}
	if r.Kind == AttemptStarted {
		a := s.byID[r.Attempt]
		if a == nil {
			return orUnknown(nil, r.Attempt)
		}
		a.Started = true
		s.started++
		return nil
	}
	p := s.Phase()
	if p == nil || b.Slot < p.First || b.Slot >= p.First+len(p.Slots) || s.byID[r.Attempt] != nil {
		return fmt.Errorf("attempt %s has no free slot", r.Attempt)
	}
	a := &Attempt{ID: r.Attempt, Body: b}
	sl := p.Slots[b.Slot-p.First]
	sl.Attempts, sl.Again, sl.Consent = append(sl.Attempts, a), false, false
	s.byID[a.ID], s.slotOf[a.ID] = a, sl
	s.Attempts++
	return nil
}

// addUsage sums up; before the first attempt nothing is known, which is not the same as zero.
func (s *State) addUsage(u Usage) {
	if s.used {
		u = s.Usage.Add(u)
	}
	s.Usage, s.used = u, true
}

func orUnknown(err error, id AttemptID) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("unknown attempt %q", id)
}

// stageOf finds the state of a stage of an attempt, or of the run.
func (s *State) stageOf(attempt AttemptID, stage string) *StageState {
	if attempt == "" {
		switch stage {
		case "freeze":
			return &s.Freeze
		case "commit":
			return &s.Commit
		}
		return nil
	}
	a := s.byID[attempt]
	if a == nil {
		return nil
	}
	return a.stage(stage)
}

func (a *Attempt) stage(kind string) *StageState {
	switch kind {
	case "deliver":
		return &a.Deliver
	case "invoke":
		return &a.Invoke
	case "receipt":
		return &a.Receipt
	case "verify":
		return &a.Verify
	case "commit":
		return &a.Commit
	}
	return nil
}

func (s *State) applyStage(r Record) error {
	st := s.stageOf(r.Attempt, r.Stage)
	if st == nil {
		return fmt.Errorf("stage %q of attempt %q is unknown", r.Stage, r.Attempt)
	}
	if r.Kind == StageStarted {
		b, err := body[StageStartedBody](r)
		if err != nil {
			return err
		}
		if st.Open() {
			return fmt.Errorf("stage %s is already open", r.Stage)
		}
		*st = StageState{Started: r.Seq, Impl: b.Impl, In: b.In}
		return nil
	}
	b, err := body[StageEndBody](r)
	if err != nil {
		return err
	}
	if !st.Open() || b.Started != st.Started {
		return fmt.Errorf("stage %s was not open", r.Stage)
	}
	st.End, st.EndSeq = b, r.Seq
	s.Tools, s.Bytes = s.Tools+b.Tools, s.Bytes+b.Bytes
	st.Done, st.Failed = r.Kind == StageFinished, r.Kind == StageFailed
	return nil
}

func (s *State) applyStop(r Record) error {
	b, err := body[StopBody](r)
	if err != nil {
		return err
	}
	if b.Agent == "" {
		s.Stopping = true
		return nil
	}
	if p := s.Phase(); p != nil {
		for _, sl := range p.Slots {
			if sl.Agent == b.Agent {
				sl.Stopped = true
			}
		}
	}
	return nil
}

// applyResumed reopens the run: a stage that failed for the run is forgotten,
// and every slot meant by the record that has no completed reply gets a new try.
func (s *State) applyResumed(r Record) error {
	b, err := body[ResumedBody](r)
	if err != nil {
		return err
	}
	asked := s.awaitsMoved()
	if s.Finished != nil {
		s.idle += max(0, r.At.Sub(s.FinishedAt))
	}
	s.Stopping, s.Interrupted, s.Finished, s.Tripped, s.derived = false, false, nil, nil, nil
	if b.OnGate != "" {
		s.Created.OnGate = b.OnGate
	}
	if s.Freeze.Failed {
		s.Freeze = StageState{}
	}
	if s.Commit.Failed && !asked {
		s.Commit = StageState{}
	}
	p := s.Phase()
	if p == nil {
		return nil
	}
	for _, sl := range p.Slots {
		if len(b.Agents) > 0 && !slices.Contains(b.Agents, sl.Agent) {
			continue
		}
		if a := sl.Last(); a == nil || a.Finished != nil && a.Finished.Status != "completed" {
			sl.Again, sl.Stopped, p.Finished = true, false, false
			sl.Consent = b.By == "retry"
		}
	}
	return nil
}
