package model

import (
	"context"
	"encoding/json"
)

// Source is where the window gets its data and sends what a person decides: a
// host, in process or over its socket. Its methods may be called from several
// goroutines; ending a context ends the call and never a run.
type Source interface {
	// Lists reads conversations, agents, waiting gates and summaries of runs. A
	// list that could not be read is nil.
	Lists(ctx context.Context) (Lists, error)
	// Attach gives the lines of a conversation: a snapshot, then what happens,
	// until ctx ends or the host goes away.
	Attach(ctx context.Context, conversation string, emit func(json.RawMessage) error) error
	// Detail gives the lines of one run from its beginning to now.
	Detail(ctx context.Context, run string, emit func(json.RawMessage) error) error
	// Queue reads the messages that wait in a conversation.
	Queue(ctx context.Context, conversation string) ([]Entry, error)
	// Pack reads at most limit bytes of a pack.
	Pack(ctx context.Context, hash string, limit int) ([]byte, error)
	// Do carries out an action and says what came of it.
	Do(ctx context.Context, a Action) (Done, error)
}

// Done is what came of an action: the ids it made, if it made any.
type Done struct{ Conversation, Run string }

// Action is something a person asks for. The types below are all there are.
type Action interface{ action() }

// Submit sends a message: to a conversation, or with none to a new one.
type Submit struct {
	Conversation, Workspace string
	Text                    string
	Plan, Permission        string
	Agents                  []string
	Queue                   bool // behind the run that is active
}

// StopRun stops a run, or one agent of it.
type StopRun struct{ Run, Agent string }

// Resume goes on with a run that waits or was interrupted.
type Resume struct{ Run string }

// Retry works on a run again, or on the part of one agent.
type Retry struct{ Run, Agent string }

// Answer decides a gate.
type Answer struct{ Gate, Option, Text string }

// Adopt gives a finding a word: accept, reject or reopen.
type Adopt struct{ Finding, Word string }

// Rename gives a conversation a title.
type Rename struct{ Conversation, Title string }

// Archive puts a conversation away, or takes it out again.
type Archive struct {
	Conversation string
	Archived     bool
}

// CheckAgents looks for agents again.
type CheckAgents struct{}

// QueueEdit changes the queue of a conversation: remove, hold, release, or move to a place.
type QueueEdit struct {
	Entry, Word string
	Place       int
}

func (Submit) action()      {}
func (StopRun) action()     {}
func (Resume) action()      {}
func (Retry) action()       {}
func (Answer) action()      {}
func (Adopt) action()       {}
func (Rename) action()      {}
func (Archive) action()     {}
func (CheckAgents) action() {}
func (QueueEdit) action()   {}
