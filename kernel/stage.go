package kernel

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"time"
)

// Class says what may be done with a stage after a crash.
type Class uint8

const (
	Pure  Class = iota // same input, same output, no outside effect: run again, or take the journaled output
	Keyed              // the effect is named by a key: running again finishes or finds the same effect
	Once               // never repeated for the same attempt; an unfinished one becomes interrupted
)

func (c Class) String() string { return [...]string{"pure", "keyed", "once"}[c] }

func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Spec declares a stage: its id ("verify/command"), version, class, what it
// touches and where it may run. The driver and the policy read it.
type Spec struct {
	ID       string          `json:"stage"`
	Version  int             `json:"version"`
	Class    Class           `json:"class"`
	Doc      string          `json:"doc"`
	Touches  []string        `json:"touches"`  // of: workspace-read, workspace-write, process, network, store
	Parallel bool            `json:"parallel"` // attempts of one run may be in it at the same time
	Options  json.RawMessage `json:"options"`  // JSON schema of its options
	In       json.RawMessage `json:"in"`       // JSON schema
	Out      json.RawMessage `json:"out"`      // JSON schema
}

// Stage is a typed step. Run gets everything it may touch in env; it returns
// *Failure for an end that the attempt should record.
type Stage[In, Out any] interface {
	Spec() Spec
	Run(ctx context.Context, env Env, in In) (Out, error)
}

// The six stages. Their types chain, so that a pipeline in the wrong order does
// not compile: Task → Snapshot ⇒ Turn → Delivery → Reply → Claim → Verdict → Result.
type (
	Freeze  = Stage[Task, Snapshot]
	Deliver = Stage[Turn, Delivery]
	Invoke  = Stage[Delivery, Reply]
	Receipt = Stage[Reply, Claim]
	Verify  = Stage[Claim, Verdict]
	Commit  = Stage[Verdict, Result]
)

// Env is everything a stage may touch; nothing is global.
type Env struct {
	Run     RunID
	Attempt AttemptID
	Now     func() time.Time
	Log     *slog.Logger
	Packs   Packs
	Options json.RawMessage // of the pipeline file or `witan stage`; nil = defaults

	// Emit shows progress to views. It is lossy for them, durable for text
	// within 250 ms, and never blocks for long.
	Emit func(Event)
	// Note appends a record of this attempt durably before it returns: the
	// intent of a Once stage, a permission decision, a notice.
	Note func(ctx context.Context, kind RecordKind, body any) error
	// Ask opens a gate and waits for the person's answer, however long that
	// takes. The gate is durable before Ask waits. It fails when ctx ends or the
	// run is parked: the question was then withdrawn and nothing is allowed.
	// nil where nobody can be asked (`witan stage`).
	Ask func(ctx context.Context, q Question) (Answer, error)
}

// Question is what a stage asks a person. Key names what is asked about: an
// answer of an interrupted try serves the next try's question of the same key.
// Request is the asker's own id; the same request twice is one gate.
type Question struct {
	Kind    string // permission, input
	Key     Digest
	Request string
	Summary string
	Target  string // resolved
	Options []GateOption
}

// GateOption is one answer that a gate offers.
type GateOption struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once, continue, stop, reply
}

// Answer is what a person said.
type Answer struct {
	Option string
	Text   string
	By     string
	Gate   GateID
}

// Event is one step of an agent's turn as it happens: the one vocabulary of all adapters.
type Event struct {
	Type   string // text, thought, tool, plan, usage, notice, finding, alive; receipt-only: no text that follows is shown
	Text   string // text, thought: the delta; notice: the sentence
	Code   string // notice: snake_case code
	Tool   ToolCall
	Usage  *Usage
	Object *Outcome // finding or evidence reported by tool
}

// Failure is a typed end of a stage. Class is one of the failure classes of
// SPEC G4; Reason a snake_case code; Text one sentence. Status, if set, is the
// attempt's status instead of "failed". Partial is the object kept in spite of
// the failure (the Reply with the text that had arrived). RetryAfter is the
// provider's own word, 0 if none.
type Failure struct {
	Class      string
	Reason     string
	Text       string
	Status     string
	Partial    any
	RetryAfter time.Duration
	Effects    bool // something outside may have changed: no silent retry
	Err        error
}

func (f *Failure) Error() string {
	s := f.Class + ": " + f.Reason
	if f.Text != "" {
		s += ": " + f.Text
	}
	return s
}

func (f *Failure) Unwrap() error { return f.Err }

// Failure classes.
const (
	ClassSignIn          = "sign-in"
	ClassCompatibility   = "compatibility"
	ClassSession         = "session"
	ClassRateLimit       = "rate-limit"
	ClassNetwork         = "network"
	ClassProvider        = "provider"
	ClassTimeout         = "timeout"
	ClassContextOverflow = "context-overflow"
	ClassProtocol        = "protocol"
	ClassPermission      = "permission"
	ClassBudget          = "budget"
	ClassCancelled       = "cancelled"
	ClassExecution       = "execution"
)

// Then composes two stages; a pair whose types do not meet does not compile.
// The composition is as weak as its weaker part: Once if one of them is.
func Then[A, B, C any](first Stage[A, B], second Stage[B, C]) Stage[A, C] {
	return chain[A, B, C]{first, second}
}

type chain[A, B, C any] struct {
	first  Stage[A, B]
	second Stage[B, C]
}

func (c chain[A, B, C]) Spec() Spec {
	a, b := c.first.Spec(), c.second.Spec()
	return Spec{ID: a.ID + "+" + b.ID, Version: a.Version*1000 + b.Version, Class: max(a.Class, b.Class),
		Touches: append(append([]string(nil), a.Touches...), b.Touches...), Parallel: a.Parallel && b.Parallel, In: a.In, Out: b.Out}
}

func (c chain[A, B, C]) Run(ctx context.Context, env Env, in A) (C, error) {
	mid, err := c.first.Run(ctx, env, in)
	if err != nil {
		var zero C
		return zero, err
	}
	return c.second.Run(ctx, env, mid)
}

// Node is a stage with its types erased to packs: what the ledger, the bus and
// `witan stage` see.
type Node interface {
	Spec() Spec
	// RunJSON takes and gives canonical JSON. A *Failure comes back with
	// Partial still typed.
	RunJSON(ctx context.Context, env Env, in []byte) ([]byte, error)
}

// Erase turns a typed stage into a Node. Input is decoded strictly.
func Erase[In, Out any](s Stage[In, Out]) Node { return node[In, Out]{s} }

type node[In, Out any] struct{ s Stage[In, Out] }

func (n node[In, Out]) Spec() Spec { return n.s.Spec() }

func (n node[In, Out]) RunJSON(ctx context.Context, env Env, in []byte) ([]byte, error) {
	var v In
	if err := DecodeStrict(in, &v); err != nil {
		return nil, &Error{Op: "kernel.RunJSON", Kind: Invalid, Stage: n.s.Spec().ID, What: "input is not what the stage takes", Err: err}
	}
	out, err := n.s.Run(ctx, env, v)
	if err != nil {
		return nil, err
	}
	return Canonical(out)
}

// GetObject reads a pack and decodes it strictly.
func GetObject[T any](ctx context.Context, p Packs, d Digest) (T, error) {
	var v T
	b, err := p.Get(ctx, d)
	if err != nil {
		return v, err
	}
	if err := DecodeStrict(b, &v); err != nil {
		return v, E("kernel.GetObject", Corrupt, err, "pack %s has the wrong shape", d)
	}
	return v, nil
}

// PutObject stores v as a canonical pack.
func PutObject(ctx context.Context, p Packs, kind string, v any) (Digest, error) {
	b, err := Canonical(v)
	if err != nil {
		return Digest{}, err
	}
	return p.Put(ctx, kind, b)
}

// Invoker is what drives one agent: adapters implement it. Invoke runs one turn
// from its delivery to its end. It returns the reply, or a *Failure whose
// Partial is the Reply so far. Close ends what it kept (processes, sessions).
type Invoker interface {
	Invoke(ctx context.Context, env Env, req InvokeRequest) (Reply, error)
	io.Closer
}

// InvokeRequest is a delivery with everything resolved.
type InvokeRequest struct {
	Agent        AgentID
	Conversation ConversationID
	Delivery     Delivery
	DeliveryHash Digest
	Turn         Turn
	Prompt       []byte      // the exact bytes of Delivery.Prompt, checked
	Owner        AgentID     // of the native session; "" = none is kept
	Workspace    string      // working directory of the turn
	Deny         []string    // operations that nobody may do here, as policy.ParseRule reads them
	MCP          []MCPServer // tool servers that the agent is offered, where it takes any
	Waiting      func() bool // a person is being asked through one of them, so nobody is silent; nil: never
	State        string      // folder for the agent's files of this turn (TMPDIR and output below it)
}

// SessionOwner is who a conversation's native session of an agent belongs to:
// the agent in direct, the agent in one run where several work over several
// turns (SPEC A3).
func SessionOwner(plan string, a AgentID, r RunID) AgentID {
	if plan == "direct" {
		return a
	}
	return a + "@" + AgentID(r)
}

// MCPServer is a tool server of one turn, started by the agent over stdio.
type MCPServer struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
}
