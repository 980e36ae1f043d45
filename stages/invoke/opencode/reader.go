package opencode

import (
	"encoding/json"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/stream"
	"witan/stages/invoke/turn"
)

// reader understands the events of one turn.
type reader struct {
	t          *stream.Turn
	session    string
	used       kernel.Usage
	stop       string   // why the last step ended; "" while one is under way
	failed     *failure // what the program has not got over
	compacting bool     // it makes room; what it says is a summary for itself
	rejected   bool     // a tool of this step was refused, so there is no further one
}

// event is a line of the stream.
type event struct {
	Type    string          `json:"type"`
	Session string          `json:"sessionID"`
	Part    part            `json:"part"`
	Error   json.RawMessage `json:"error"`
}

type part struct {
	Text      string `json:"text"`
	Synthetic bool   `json:"synthetic"` // nobody said it
	Metadata  struct {
		Continue bool `json:"compaction_continue"`
	} `json:"metadata"`
	Reason string  `json:"reason"`
	Tokens *counts `json:"tokens"`
	Tool   string  `json:"tool"`
	Call   string  `json:"callID"`
	State  state   `json:"state"`
}

// known are the events that must be understood.
var known = map[string]bool{"step_start": true, "text": true, "reasoning": true, "tool_use": true, "step_finish": true, "error": true}

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
	if r.session == "" && e.Session != "" {
		r.session = e.Session
		if err := r.t.Session(e.Session); err != nil {
			return err
		}
	}
	if e.Session != r.session { // of a sub-agent
		r.folded(e)
		return nil
	}
	if e.Type == "error" {
		r.error(e.Error)
		return nil
	}
	r.t.Taken()
	r.part(e.Type, e.Part)
	r.t.R.Moved()
	return nil
}

func (r *reader) part(typ string, p part) {
	switch typ {
	case "step_start":
		r.stop, r.rejected = "", false
	case "text":
		switch {
		case p.Metadata.Continue:
			r.compacting = false
		case !p.Synthetic && !r.compacting:
			r.t.Message(p.Text)
		}
	case "tool_use":
		r.tool(p)
	case "step_finish":
		r.finished(p)
	}
}

func (r *reader) finished(p part) {
	r.stop = p.Reason
	if r.stop == "" {
		r.stop = "unknown"
	}
	if !r.compacting {
		r.failed = nil // it got over it
	}
	if p.Tokens != nil {
		if u := p.Tokens.usage(); r.used == (kernel.Usage{}) {
			r.used = u
		} else {
			r.used = r.used.Add(u)
		}
		soFar := r.used
		soFar.Complete = false
		r.t.R.Usage(soFar)
	}
}

func (r *reader) error(raw json.RawMessage) {
	f := &failure{}
	_ = json.Unmarshal(raw, f) // it is an error, whatever can be read of it
	r.failed = f
	r.compacting = f.Name == "ContextOverflowError"
}

// folded takes what a sub-agent does: that it works, and whether it may have
// changed anything.
func (r *reader) folded(e event) {
	if e.Type == "tool_use" && !harmless[kinds[e.Part.Tool]] {
		r.t.R.Changed()
	}
	r.t.R.Moved()
}

// ends are the reasons of a last step that are an end, in the words of a reply.
var ends = map[string]string{"stop": "end_turn", "length": "max_tokens"}

// End implements stream.Reader. Whether the turn is good is what the last step
// and the errors before it say: the exit code is 1 also after a turn that went on
// with less context.
func (r *reader) End(e turn.Exit) error {
	stop, ended := ends[r.stop]
	switch {
	case r.failed != nil:
		return r.failed.failure()
	case ended:
	case r.stop == "tool-calls" && r.rejected && e.Itself && e.Code == 0:
		stop = "end_turn"
	case r.stop == "content-filter":
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "refused", Text: "the agent's provider refused to answer"}
	case r.t.Resume != "" && strings.Contains(e.Stderr, "Session not found"):
		return stream.Gone()
	default:
		return r.t.Died(e)
	}
	r.used.Complete = r.used.Input != nil && r.used.Output != nil
	r.t.R.Usage(r.used)
	r.t.R.Ended(stop)
	return nil
}
