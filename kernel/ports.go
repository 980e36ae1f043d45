package kernel

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"time"
)

// The ports are what the kernel needs of the world. Each has a conformance
// suite in kernel/kerneltest that every implementation and every decorator runs.

// Batch is one atomic append to a run's ledger.
type Batch struct {
	Run     RunID
	Expect  Head       // the caller's head; another head is a Conflict
	Records []Record   // V, Seq and Prev are filled in by the ledger
	Summary RunSummary // the run's row in lists, replaced in the same transaction
	Key     string     // idempotency key, claimed with the first record; taken by another run = Exists
}

// Ledger is the append-only record of every run.
//
// Append is atomic and durable when it returns nil. It fails with Conflict
// (head moved), Exists (key taken), NoSpace, ReadOnly; after any error nothing
// of the batch is visible. Read verifies hashes and chain and stops with a
// Corrupt error at the first record that does not hold, or at a chain shorter
// than its witness. An unknown run is NotFound.
type Ledger interface {
	Append(ctx context.Context, b Batch) (Head, []Record, error)
	Read(ctx context.Context, run RunID, from uint64) iter.Seq2[Record, error]
	Head(ctx context.Context, run RunID) (Head, error)
	// Summaries yields the rows of all runs, newest first.
	Summaries(ctx context.Context) iter.Seq2[RunSummary, error]
	Summary(ctx context.Context, run RunID) (RunSummary, error)
	// ByKey finds the run that claimed an idempotency key.
	ByKey(ctx context.Context, key string) (RunID, error)
	// Witness makes the current heads durable outside the database; every Append writes them there already.
	Witness(ctx context.Context) error
}

// Packs is the content-addressed store. Get returns bytes whose digest was
// checked, or Corrupt, or NotFound; the bytes belong to the caller. Put is
// durable when it returns and idempotent; kind is a hint for listing ("task",
// "reply", "text", "blob", "tree" …) and not part of the name.
type Packs interface {
	Put(ctx context.Context, kind string, b []byte) (Digest, error)
	Get(ctx context.Context, d Digest) ([]byte, error)
	Stat(ctx context.Context, d Digest) (PackInfo, error)
	List(ctx context.Context) iter.Seq2[PackInfo, error]
	// Begin opens a bulk writer: many packs, few syncs.
	Begin(ctx context.Context) (PackWriter, error)
}

// PackInfo describes a stored pack. Bytes is its length, Stored what it takes
// on disk.
type PackInfo struct {
	Hash   Digest `json:"hash"`
	Kind   string `json:"kind"`
	Bytes  int64  `json:"bytes"`
	Stored int64  `json:"stored"`
	Refs   int    `json:"refs"`
}

// PackWriter stores many packs with few syncs. It may be used by several
// goroutines. Nothing is promised before Seal returns nil; then everything is
// durable and found by Get. After the first error only Abort works. One of Seal
// and Abort must be called; Abort after Seal does nothing, so it can be deferred.
type PackWriter interface {
	// Add stores b unless the store has it; b may be reused after the call.
	Add(kind string, b []byte) (Digest, error)
	// AddReader streams size bytes (size -1 = until EOF) with bounded memory.
	AddReader(kind string, r io.Reader, size int64) (Digest, int64, error)
	// Has reports whether the store or this writer holds d.
	Has(d Digest) bool
	Seal() error
	Abort()
}

// StatCache keeps one opaque blob a workspace, so that an unchanged folder is
// cheap to freeze. It is a cache: losing it costs time only.
type StatCache interface {
	LoadStat(ctx context.Context, workspace string) ([]byte, error) // NotFound when there is none
	SaveStat(ctx context.Context, workspace string, b []byte) error
}

// Conversation is a thread with a workspace folder, members and defaults.
type Conversation struct {
	ID         ConversationID `json:"conversation"`
	Title      string         `json:"title"`
	Workspace  string         `json:"workspace"`
	Agents     []AgentID      `json:"agents"`
	Plan       string         `json:"plan"`
	Permission string         `json:"permission"`
	Archived   bool           `json:"archived"`
	Messages   int            `json:"messages"` // filled in on reading
	Created    time.Time      `json:"created"`
	Updated    time.Time      `json:"updated"`
}

// Message is a user, agent or system entry. Text is the digest of a pack.
type Message struct {
	ID           MessageID      `json:"message"`
	Conversation ConversationID `json:"conversation"`
	Run          RunID          `json:"run"`
	Attempt      AttemptID      `json:"attempt,omitempty"`
	Role         string         `json:"role"` // user, agent, system
	Agent        AgentID        `json:"agent,omitempty"`
	TurnSeq      uint64         `json:"turn_seq"`
	Text         Digest         `json:"text"`
	Status       string         `json:"status"`
	At           time.Time      `json:"at"`
	Attachments  []Attachment   `json:"attachments,omitempty"`
}

// Attachment is a file copied read-only when it was selected.
type Attachment struct {
	ID      string `json:"id"`
	Name    string `json:"name"`    // original, metadata only
	Display string `json:"display"` // invisible characters made visible
	Stored  string `json:"stored"`  // safe file name
	MIME    string `json:"mime"`
	Bytes   int64  `json:"bytes"`
	Hash    Digest `json:"hash"`
}

// Conversations stores threads and their messages; every write is durable when
// it returns. PutMessage replaces a message with the same id (a resumed slot
// replaces its partial text), so repeating it is harmless.
type Conversations interface {
	PutConversation(ctx context.Context, c Conversation) error
	Conversation(ctx context.Context, id ConversationID) (Conversation, error)
	Conversations(ctx context.Context) iter.Seq2[Conversation, error] // newest first
	PutMessage(ctx context.Context, m Message) error
	// Messages yields in order of TurnSeq, from the given one on.
	Messages(ctx context.Context, id ConversationID, from uint64) iter.Seq2[Message, error]
	// ReserveTurns hands out n consecutive dispatch numbers; the same claim gets the same numbers again.
	ReserveTurns(ctx context.Context, id ConversationID, claim string, n int) (first uint64, err error)
	Session(ctx context.Context, id ConversationID, agent AgentID) (Session, error) // NotFound when there is none
	PutSession(ctx context.Context, id ConversationID, agent AgentID, s Session) error
	ForgetSession(ctx context.Context, id ConversationID, agent AgentID) error
}

// Session is an agent's native session; Native never leaves the host.
type Session struct {
	Native    string `json:"native"`
	Workspace string `json:"workspace"`
	Seen      uint64 `json:"seen"`           // highest TurnSeq the agent has acknowledged
	Host      string `json:"host,omitempty"` // the only host that has it, for agents that cannot load one
}

// QueueEntry is a message that waits in a conversation until it is its turn.
type QueueEntry struct {
	ID           EntryID         `json:"entry"`
	Conversation ConversationID  `json:"conversation"`
	Text         string          `json:"text"`
	Options      json.RawMessage `json:"options,omitempty"` // the submission's other choices
	Held         bool            `json:"held"`              // keeps its place and is passed over
	Taken        bool            `json:"taken"`             // on its way: fixed until it is delivered or returned
	Key          string          `json:"key,omitempty"`     // idempotency key of the addition
	At           time.Time       `json:"at"`
}

// QueueState says whether a queue is paused, and why.
type QueueState struct {
	Paused bool   `json:"paused"`
	Reason string `json:"reason"` // a code of docs/cli.md
	Why    string `json:"why"`    // one clause for a person
}

// Queue keeps, in order, the messages that wait in each conversation; every
// write is durable when it returns. Texts are checked with CheckQueueText, and a
// queue has at most MaxQueue entries (Invalid). An unknown conversation or entry
// is NotFound; a taken entry cannot be changed (Conflict). An empty queue is
// never paused.
//
// Delivery is exactly once together with an idempotent submission: take, submit
// under a key made of the entry's id, mark as delivered. After a crash the taken
// entry is still there, and the key tells whether it was submitted.
type Queue interface {
	// AddEntry puts e at the end. A key that the conversation has seen gives the
	// earlier entry and true, even when that has left the queue; with another
	// text it is Invalid.
	AddEntry(ctx context.Context, e QueueEntry) (QueueEntry, bool, error)
	// Entries gives a queue in order. Entries that cannot be read are left out
	// and named by a Corrupt error that comes with the others.
	Entries(ctx context.Context, id ConversationID) ([]QueueEntry, QueueState, error)
	// Entry finds a waiting entry by its id alone.
	Entry(ctx context.Context, e EntryID) (QueueEntry, error)
	EditEntry(ctx context.Context, id ConversationID, e EntryID, text string) error
	RemoveEntry(ctx context.Context, id ConversationID, e EntryID) error
	// MoveEntry puts e at a place, counted from 1; behind the last means last.
	MoveEntry(ctx context.Context, id ConversationID, e EntryID, place int) error
	HoldEntry(ctx context.Context, id ConversationID, e EntryID, held bool) error
	// TakeEntry gives the taken entry, else takes the first that is not held;
	// NotFound when there is none or the queue is paused.
	TakeEntry(ctx context.Context, id ConversationID) (QueueEntry, error)
	// ReturnEntry makes a taken entry wait again in its place.
	ReturnEntry(ctx context.Context, id ConversationID, e EntryID) error
	// EntryDelivered removes an entry, taken or not; one that is gone is no error.
	EntryDelivered(ctx context.Context, id ConversationID, e EntryID) error
	// PauseQueue pauses a queue that has entries; the first reason stays.
	PauseQueue(ctx context.Context, id ConversationID, reason, why string) error
	ResumeQueue(ctx context.Context, id ConversationID) error
	// Queues yields the conversations that have entries.
	Queues(ctx context.Context) iter.Seq2[ConversationID, error]
}

// Streams keeps the text of running attempts until it becomes a pack: chunks
// are durable when Append returns. Drop after the attempt's reply is a pack.
type Streams interface {
	AppendStream(ctx context.Context, a AttemptID, chunk []byte) error
	ReadStream(ctx context.Context, a AttemptID) ([]byte, error) // all chunks, in order; empty when there are none
	DropStream(ctx context.Context, a AttemptID) error
}

// Signal is a hint that something happened; receivers re-read the ledger, so
// losing, repeating or re-ordering one is harmless. Body carries digests and
// states, never content.
type Signal struct {
	Topic string          `json:"topic"`
	Run   RunID           `json:"run"`
	Seq   uint64          `json:"seq"`
	Key   string          `json:"key,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// Bus carries signals. Publish never returns nil for a signal it did not
// accept. Handler calls are sequential per subscription, in publish order.
type Bus interface {
	Publish(ctx context.Context, s Signal) error
	Subscribe(topic string, h func(context.Context, Signal)) (stop func(), err error)
	Close(ctx context.Context) (undelivered int, err error)
}

// Command is a program that a stage runs: git, or a check that the person
// named. It is never an agent.
type Command struct {
	Argv    []string
	Dir     string
	Env     []string // complete environment; nil = the allow-listed one
	Stdin   []byte
	Timeout time.Duration // 0 = until ctx ends
	Write   []string      // folders that may be written; with Confine, nothing else
	Confine bool          // where the system can (Landlock)
	Limit   int64         // bytes kept of each stream, head and tail; 0 = 1 MiB
}

// CommandResult is how a Command ended. Exit is -1 when it was killed.
type CommandResult struct {
	Exit     int
	Stdout   []byte
	Stderr   []byte
	Cut      int64 // bytes left out of both streams
	TimedOut bool
}

// Runner runs commands in a supervised process tree: nothing of it outlives the call.
// A command that ran and failed is not an error; one that could not start is (NotFound, Invalid).
type Runner interface {
	Run(ctx context.Context, c Command) (CommandResult, error)
}

// Clock is the time; tests replace it.
type Clock interface {
	Now() time.Time
	// After sends once after d; stop releases it. Used only while a run is active.
	After(d time.Duration) (c <-chan time.Time, stop func())
}
