package kernel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kinds of gates.
const (
	GatePermission = "permission"
	GateBudget     = "budget"
	GateDecision   = "decision"
	GateRetry      = "retry"
	GateInput      = "input"
)

// What happens at a gate (CreatedBody.OnGate).
const (
	OnGateWait = "wait" // the run and its agents stay alive until somebody answers
	OnGateExit = "exit" // the run parks: what asks is ended, the gate stays open
	OnGateDeny = "deny" // the answer is the refusing option
)

// GateBody is a durable question to the person. It is bound to its run, and to
// one attempt and one request of it where an agent asks.
type GateBody struct {
	Gate    GateID       `json:"gate"`
	Kind    string       `json:"kind"`
	Summary string       `json:"summary"`
	Target  string       `json:"target"` // resolved
	Options []GateOption `json:"options"`
	Key     Digest       `json:"key,omitzero"`      // what is asked about
	Request string       `json:"request,omitempty"` // the asker's own id of it
}

// DecidedBody is the answer. Text goes with an input gate's reply.
type DecidedBody struct {
	By     string `json:"by"`
	Gate   GateID `json:"gate"`
	Option string `json:"option"`
	Text   string `json:"text,omitempty"`
}

// GateUsedBody says that an attempt was given the answer of a gate.
type GateUsedBody struct {
	Gate GateID `json:"gate"`
}

// RevokedBody takes back what an answer allowed for the run.
type RevokedBody struct {
	By   string `json:"by"`
	Gate GateID `json:"gate"`
}

// Gate is a gate of the folded run.
type Gate struct {
	GateBody
	Attempt  AttemptID
	Seq      uint64 // of gate.opened
	At       time.Time
	Decision *DecidedBody
	Used     bool // an attempt has had the answer
	Revoked  bool // what it allowed for the run is asked about again
}

// Grant reports whether the answer allows something for the whole run.
func (g *Gate) Grant() bool {
	return g.Kind == GatePermission && g.Decision != nil && !g.Revoked &&
		slices.ContainsFunc(g.Options, func(o GateOption) bool { return o.ID == g.Decision.Option && o.Kind == "allow_always" })
}

// Refusal is the option that denies: what a lost or unattended question means.
func (b GateBody) Refusal() string {
	for _, kind := range []string{"reject_once", "stop"} {
		for _, o := range b.Options {
			if o.Kind == kind {
				return o.ID
			}
		}
	}
	if n := len(b.Options); n > 0 {
		return b.Options[n-1].ID
	}
	return ""
}

// Offers reports whether the gate has the option.
func (b GateBody) Offers(id string) bool {
	return slices.ContainsFunc(b.Options, func(o GateOption) bool { return o.ID == id })
}

// Wants reports whether the option is an answer in words.
func (b GateBody) Wants(id string) bool {
	return slices.ContainsFunc(b.Options, func(o GateOption) bool { return o.ID == id && o.Kind == "reply" })
}

// Options of Witan's own gates.
var (
	optContinue   = GateOption{ID: "continue", Name: "Continue", Kind: "continue"}
	optStop       = GateOption{ID: "stop", Name: "Stop", Kind: "stop"}
	optRetry      = GateOption{ID: "retry-once", Name: "Try once more", Kind: "continue"}
	optNoRetry    = GateOption{ID: "no-retry", Name: "Do not try again", Kind: "stop"}
	optSameWriter = GateOption{ID: "same-writer", Name: "Same writer again", Kind: "continue"}
	optNextWriter = GateOption{ID: "next-writer", Name: "Next writer", Kind: "continue"}

	ContinueOrStop = []GateOption{optContinue, optStop}
	RetryOrNot     = []GateOption{optRetry, optNoRetry}
	WriterOptions  = []GateOption{optSameWriter, optNextWriter, optStop}
	ReplyOrStop    = []GateOption{{ID: "reply", Name: "Reply", Kind: "reply"}, optStop}
	// PermissionOptions are those of our own permission gates.
	PermissionOptions = []GateOption{{ID: "allow-once", Name: "Allow once", Kind: "allow_once"},
		{ID: "allow-run", Name: "Allow for this run", Kind: "allow_always"}, {ID: "reject", Name: "Reject", Kind: "reject_once"}}
)

// NewGateID names the gate that a run opens about something, which key tells
// apart. The id holds the run, so that a gate is found without an index.
func NewGateID(run RunID, kind string, key ...string) GateID {
	tail := DeriveID("", append([]string{string(run), kind}, key...)...)
	return GateID(GatePrefix + strings.TrimPrefix(string(run), RunPrefix) + "-" + tail)
}

// RunOfGate is the run that a gate id names; false when it is no gate id.
func RunOfGate(id GateID) (RunID, bool) {
	rest, ok := strings.CutPrefix(string(id), GatePrefix)
	run, tail, cut := strings.Cut(rest, "-")
	return RunID(RunPrefix + run), ok && cut && ValidID(RunPrefix, RunPrefix+run) && ValidID("", tail)
}

// Gate finds a gate by id, or nil.
func (s *State) Gate(id GateID) *Gate { return s.gateByID[id] }

// OpenGates lists the gates without an answer, oldest first.
func (s *State) OpenGates() []*Gate {
	var out []*Gate
	for _, g := range s.Gates[s.decidedGates:] {
		if g.Decision == nil {
			out = append(out, g)
		}
	}
	return out
}

// Parked reports whether the run ends for now because a gate waits.
func (s *State) Parked() bool { return s.Created.OnGate == OnGateExit && s.gatesOpen > 0 }

func (s *State) applyGate(r Record) error {
	switch r.Kind {
	case GateOpened:
		b, err := body[GateBody](r)
		if err != nil {
			return err
		}
		if s.gateByID[b.Gate] != nil || b.Gate == "" {
			return fmt.Errorf("gate %q is open already", b.Gate)
		}
		g := &Gate{GateBody: b, Attempt: r.Attempt, Seq: r.Seq, At: r.At}
		s.Gates = append(s.Gates, g)
		s.gateByID[b.Gate] = g
		s.gatesOpen++
		return nil
	case GateRevoked:
		b, err := body[RevokedBody](r)
		g := s.gateByID[b.Gate]
		if err != nil || g == nil {
			return orNo(err, "gate", string(b.Gate))
		}
		g.Revoked = true
		return nil
	case GateUsed:
		b, err := body[GateUsedBody](r)
		g := s.gateByID[b.Gate]
		if err != nil || g == nil {
			return orNo(err, "gate", string(b.Gate))
		}
		g.Used = true
		return nil
	}
	b, err := body[DecidedBody](r)
	if err != nil {
		return err
	}
	g := s.gateByID[b.Gate]
	switch {
	case g == nil:
		return orNo(nil, "gate", string(b.Gate))
	case g.Decision != nil:
		return fmt.Errorf("gate %s is decided already", b.Gate)
	case !g.Offers(b.Option):
		return fmt.Errorf("gate %s does not offer %q", b.Gate, b.Option)
	}
	g.Decision = &b
	s.gatesOpen--
	for s.decidedGates < len(s.Gates) && s.Gates[s.decidedGates].Decision != nil {
		s.decidedGates++
	}
	return nil
}

func orNo(err error, what, id string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("unknown %s %q", what, id)
}

// FindGate finds the gate that a question of an attempt is: the same request of
// the same attempt, or one that an ended try of the same slot left without its
// answer being used.
func (s *State) FindGate(at *Attempt, q Question) *Gate {
	sl := s.SlotOf(at.ID)
	for _, g := range slices.Backward(s.Gates) {
		if g.Key != q.Key || g.Kind != q.Kind {
			continue
		}
		if g.Attempt == at.ID {
			if g.Request == q.Request {
				return g
			}
			continue
		}
		if prev := s.byID[g.Attempt]; prev != nil && !g.Used && prev.Finished != nil && sl != nil && slices.Contains(sl.Attempts, prev) {
			return g
		}
	}
	return nil
}

// Granted reports whether an answer of this run allows the operation of key for
// the whole run, and which gate it was.
func (s *State) Granted(agent AgentID, key Digest) (GateID, bool) {
	for _, g := range s.Gates {
		if at := s.byID[g.Attempt]; g.Key == key && g.Grant() && at != nil && at.Body.Agent == agent {
			return g.Gate, true
		}
	}
	return "", false
}

// gate returns the step that opens a gate, or its decision once there is one;
// ok is false while the answer is awaited or the gate has yet to be opened.
func (s *State) gate(b GateBody, at AttemptID) (d *DecidedBody, a Action, ok bool) {
	g := s.Gate(b.Gate)
	switch {
	case g == nil:
		return nil, Action{Kind: GateOpened, Attempt: at, Body: b}, false
	case g.Decision == nil:
		return nil, waiting, false
	}
	return g.Decision, Action{}, true
}

// AgreedBody is the plan that every member supports.
type AgreedBody struct {
	Finalizer AgentID         `json:"finalizer"`
	Items     json.RawMessage `json:"items"`
	PlanHash  Digest          `json:"plan_hash"`
	Verifiers []AgentID       `json:"verifiers"`
}
