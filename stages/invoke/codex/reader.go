package codex

import (
	"encoding/json"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/stream"
	"witan/stages/invoke/turn"
)

// reader understands the events of one turn.
type reader struct {
	t      *stream.Turn
	totals *totals
	before *counts // of the thread; nil = not known
	thread string
	began  bool
	done   bool
	failed string // why the turn failed
	trying string // an error that may yet turn out to be none
}

// event is a line of the stream.
type event struct {
	Type    string          `json:"type"`
	Thread  string          `json:"thread_id"`
	Message string          `json:"message"`
	Usage   *counts         `json:"usage"`
	Item    json.RawMessage `json:"item"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
}

// known are the events that must be understood.
var known = map[string]bool{"thread.started": true, "turn.started": true, "turn.completed": true, "turn.failed": true, "error": true,
	"item.started": true, "item.updated": true, "item.completed": true}

// Value implements stream.Reader.
func (r *reader) Value(v json.RawMessage) error {
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(v, &kind) != nil || !known[kind.Type] {
		return nil
	}
	var e event
	if err := json.Unmarshal(v, &e); err != nil {
		return err
	}
	switch e.Type {
	case "thread.started":
		r.thread = e.Thread
		return r.t.Session(e.Thread)
	case "turn.started":
		r.began = true
		r.t.R.Moved()
	case "turn.completed":
		r.completed(e.Usage)
	case "turn.failed":
		r.failed = e.Error.Message
		if r.failed == "" {
			r.failed = "the agent's turn failed"
		}
		r.t.Over()
	case "error":
		r.trying = e.Message
		if strings.HasPrefix(e.Message, "Reconnecting") {
			r.t.Retry(e.Message)
		}
	default:
		var i item
		// What a tool was given may have any shape; an answer may not.
		if err := json.Unmarshal(e.Item, &i); err != nil && (i.Type == "" || i.Type == "agent_message") {
			return err
		}
		r.item(e.Type, i)
	}
	return nil
}

func (r *reader) completed(u *counts) {
	r.done = true
	if u != nil {
		r.totals.put(r.thread, *u)
		r.t.R.Usage(u.since(r.before))
	}
	r.t.R.Ended("end_turn")
	r.t.Over()
}

// End implements stream.Reader. A turn that completed is good, whatever the exit code.
func (r *reader) End(e turn.Exit) error {
	switch {
	case r.failed != "":
		return failure(r.failed)
	case r.done:
		return nil
	case r.t.Resume != "" && lost(e.Stderr):
		return stream.Gone()
	case r.trying != "" && e.Itself && e.Code == 1: // what it gave up on
		return failure(r.trying)
	case usageError(e):
		return &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "cannot_start", Text: turn.Clean("the agent does not know how it is called: " + e.Text)}
	}
	return r.t.Died(e)
}
