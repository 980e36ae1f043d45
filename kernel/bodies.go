package kernel

import (
	"encoding/json"
	"time"
)

// Bodies of records. Field names are those of the NDJSON stream, so that a
// line of `run --json` is the body with type, run, seq and at.

// StageRef is a pipeline's choice for one stage.
type StageRef struct {
	Use     string          `json:"use"`
	Class   string          `json:"class"`
	Options json.RawMessage `json:"options,omitempty"`
}

// CreatedBody opens a run and holds everything a plan may ask about it.
type CreatedBody struct {
	Agents       []AgentID           `json:"agents"`
	Attachments  []string            `json:"attachments,omitempty"` // ids
	Attempts     int                 `json:"attempts"`              // circuit breaker
	Budget       map[string]Limit    `json:"budget,omitempty"`      // by name, see BudgetNames
	CommitGate   bool                `json:"commit_gate,omitempty"` // ask before unverified claims are committed
	Concurrency  int                 `json:"concurrency"`
	Conversation ConversationID      `json:"conversation"`
	Engine       int                 `json:"engine"`             // version of the deciding code
	Form         string              `json:"form,omitempty"`     // of discuss: sequential, agent-led
	InPlace      bool                `json:"in_place,omitempty"` // writers work in the workspace itself, with consent
	MaxRounds    int                 `json:"max_rounds"`         // 0: unlimited, after confirmation
	Message      MessageID           `json:"message"`            // the person's
	OnGate       string              `json:"on_gate,omitempty"`  // wait (also ""), exit, deny
	Output       string              `json:"output"`             // folder below which each slot has its output folder
	Permission   string              `json:"permission"`
	Plan         string              `json:"plan"`
	Routing      string              `json:"routing,omitempty"` // why these agents, when they were picked
	Stages       map[string]StageRef `json:"stages"`
	Task         Digest              `json:"task"`
	Title        string              `json:"title"`
	TurnSeq      uint64              `json:"turn_seq"` // of the person's message
	Workspace    string              `json:"workspace"`
	Writable     []AgentID           `json:"writable"`
}

// EngineVersion is recorded in every run; a change of Next's behaviour bumps it.
const EngineVersion = 1

// SlotBody is one agent's place in a phase. TurnSeq is reserved before the agent starts.
type SlotBody struct {
	Agent   AgentID `json:"agent"`
	Item    string  `json:"item,omitempty"` // of work
	Role    string  `json:"role"`
	TurnSeq uint64  `json:"turn_seq"`
	Write   bool    `json:"write"`
}

// PhaseStartedBody opens a phase. First is the place of its first slot in the
// round, where a round has several phases of one name.
type PhaseStartedBody struct {
	First int        `json:"first,omitempty"`
	Phase string     `json:"phase"`
	Round int        `json:"round"`
	Slots []SlotBody `json:"slots"`
}

type PhaseFinishedBody struct {
	Phase  string `json:"phase"`
	Round  int    `json:"round"`
	Status string `json:"status"`
}

// AttemptBody is the body of attempt.queued and attempt.started.
type AttemptBody struct {
	Agent     AgentID    `json:"agent"`
	Continue  bool       `json:"continue,omitempty"` // the native session goes on
	NotBefore *time.Time `json:"not_before,omitempty"`
	Phase     string     `json:"phase"`
	Rebuilt   bool       `json:"rebuilt,omitempty"`
	Round     int        `json:"round"`
	Seen      uint64     `json:"seen,omitempty"`
	Slot      int        `json:"slot"`
	Item      string     `json:"item,omitempty"` // of work
	Try       int        `json:"try"`
}

type AttemptFinishedBody struct {
	Agent  AgentID `json:"agent"`
	Class  string  `json:"class,omitempty"`
	Item   string  `json:"item,omitempty"`
	Phase  string  `json:"phase"`
	Reason string  `json:"reason,omitempty"`
	Round  int     `json:"round"`
	Status string  `json:"status"`
	Try    int     `json:"try"`
	Usage  Usage   `json:"usage"`
}

type StageStartedBody struct {
	Impl    string `json:"impl"`
	In      Digest `json:"in"`
	Version int    `json:"version"`
}

// StageEndBody is the body of stage.finished and stage.failed. A failed stage
// may have an Out too: what could be kept. Text is the text an invoke stage
// left behind.
type StageEndBody struct {
	Class      string `json:"class,omitempty"`
	Bytes      int64  `json:"bytes,omitempty"` // of a deliver stage: what is sent
	Effects    bool   `json:"effects,omitempty"`
	Impl       string `json:"impl"`
	In         Digest `json:"in"`
	Ms         int64  `json:"ms"`
	Out        Digest `json:"out,omitzero"`
	Reason     string `json:"reason,omitempty"`
	RetryAfter int64  `json:"retry_after_ms,omitempty"`
	Started    uint64 `json:"started"`            // seq of the stage.started record
	Candidate  Digest `json:"candidate,omitzero"` // content an invoke stage left behind
	Status     string `json:"status,omitempty"`
	Text       Digest `json:"text,omitzero"`
	Norm       Digest `json:"norm,omitzero"`   // of the text without case, space and signs; in a discussion
	Tools      int    `json:"tools,omitempty"` // calls an invoke stage saw
	Usage      *Usage `json:"usage,omitempty"`
	Version    int    `json:"version"`
	Why        string `json:"why,omitempty"` // one sentence
}

type SnapshotBody struct {
	Snapshot Digest `json:"snapshot"`
}

// StopBody asks the run, or one agent of it, to stop.
type StopBody struct {
	Agent AgentID `json:"agent,omitempty"`
	By    string  `json:"by"`
}

// ResumedBody reopens a run: By is resume, retry or start-up. Agents limits a
// retry; empty means every slot without a completed reply. OnGate, if set, is
// what happens at gates from now on.
type ResumedBody struct {
	Agents []AgentID `json:"agents,omitempty"`
	By     string    `json:"by"`
	OnGate string    `json:"on_gate,omitempty"`
}

type InterruptedBody struct {
	Reason string `json:"reason"`
}

type FinishedBody struct {
	Reason string    `json:"reason,omitempty"`
	Status RunStatus `json:"status"`
	Usage  Usage     `json:"usage"`
}

// MessageBody announces a stored message; Text is a pack.
type MessageBody struct {
	Agent   AgentID   `json:"agent,omitempty"`
	Message MessageID `json:"message"`
	Role    string    `json:"role"`
	Status  string    `json:"status"`
	Text    Digest    `json:"text"`
	TurnSeq uint64    `json:"turn_seq"`
}

// ReceiptBody announces a receipt that was read.
type ReceiptBody struct {
	Phase   string          `json:"phase"`
	Receipt json.RawMessage `json:"receipt"`
	Source  string          `json:"source"`
}

// RejectedBody announces a receipt that was not read.
type RejectedBody struct {
	Code    string          `json:"code"`
	Receipt json.RawMessage `json:"receipt"`
}

type CommitBody struct {
	Commit  string `json:"commit"`
	Content Digest `json:"content"`
	Impl    string `json:"impl"`
	Target  string `json:"target"`
}

// DeliverySentBody is the intent of an invocation: durable before the prompt leaves.
type DeliverySentBody struct {
	Agent       AgentID `json:"agent"`
	Fingerprint Digest  `json:"fingerprint"`
	Repair      bool    `json:"repair,omitempty"` // asks for a proper receipt once more
	Session     string  `json:"session"`          // new, resume, rebuilt
}

// PermissionBody is one decision on an agent's request.
type PermissionBody struct {
	Asked    string `json:"asked"`
	By       string `json:"by"`
	Decision string `json:"decision"`
	Gate     GateID `json:"gate,omitempty"`
	Kind     string `json:"kind"`
	Resolved string `json:"resolved"`
}

// AdoptionBody says what became of an outcome, and through whom. State is
// accepted, rejected, reopened, applied, committed or exported.
type AdoptionBody struct {
	By    string    `json:"by"`
	ID    OutcomeID `json:"id"`
	State string    `json:"state"`
}

type NoticeBody struct {
	Code string `json:"code"`
	Text string `json:"text"`
}
