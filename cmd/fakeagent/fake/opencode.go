package fake

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// opencode speaks the events of "opencode run --format json".
type opencode struct {
	session string
	parts   int
	tools   map[string]object // by call
}

func newOpencode(a *agent, flags []string) (dialect, int) {
	o := &opencode{session: fmt.Sprintf("ses_%d", os.Getpid()), tools: map[string]object{}}
	if len(flags) < 3 || flags[0] != "run" || flag(flags, "--format") != "json" {
		fmt.Fprintln(os.Stderr, "opencode run [message..]")
		return nil, 1
	}
	if id := flag(flags, "--session"); id != "" {
		o.session = id
		if !a.Load || strings.Contains(id, "gone") {
			fmt.Fprint(os.Stderr, "\x1b[91m\x1b[1mError: \x1b[0mSession not found\n")
			return nil, 1
		}
	}
	a.whole = true
	return o, 0
}

func (o *opencode) sessionID() string { return o.session }

func (o *opencode) begin() []byte { return o.event("step_start", object{"type": "step-start"}) }

func (o *opencode) end(t *turn) []byte {
	if t.fail != nil {
		var e struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(t.fail, &e)
		return encode(object{"type": "error", "sessionID": o.session, "error": object{"name": "APIError", "data": object{"message": e.Message, "statusCode": e.Code}}})
	}
	done := object{"type": "step-finish", "reason": "stop"}
	if t.usage != nil {
		done["tokens"] = t.usage
	}
	return o.event("step_finish", done)
}

func (o *opencode) event(typ string, part object) []byte {
	o.parts++
	part["id"], part["sessionID"] = fmt.Sprintf("prt_%d", o.parts), o.session
	return encode(object{"type": typ, "timestamp": o.parts, "sessionID": o.session, "part": part})
}

func (o *opencode) lines(u map[string]any) []byte {
	switch u["sessionUpdate"] {
	case "agent_message_chunk":
		return o.event("text", object{"type": "text", "text": textOf(u)})
	case "agent_thought_chunk":
		return o.event("reasoning", object{"type": "reasoning", "text": textOf(u)})
	case "tool_call", "tool_call_update":
		return o.tool(u)
	}
	return encode(object{"type": "session.status", "sessionID": o.session})
}

// opencodeTools are its names for tools of a kind.
var opencodeTools = map[string]string{"read": "read", "search": "grep", "edit": "write", "execute": "bash", "fetch": "webfetch"}

func (o *opencode) tool(u map[string]any) []byte {
	id, title := str(u, "toolCallId"), str(u, "title")
	part := o.tools[id]
	if part == nil {
		name := opencodeTools[str(u, "kind")]
		if name == "" {
			name = "scripted"
		}
		part = object{"type": "tool", "tool": name, "callID": id, "state": object{"title": title, "input": object{}}}
		o.tools[id] = part
	}
	state := part["state"].(object)
	state["status"] = map[string]string{"": "pending", "in_progress": "running", "completed": "completed", "failed": "error"}[str(u, "status")]
	state["output"] = str(u, "rawOutput")
	return o.event("tool_use", part)
}

// ask: nobody can be asked.
func (o *opencode) ask(*turn, string, any, string) json.RawMessage {
	return json.RawMessage("null")
}

func (o *opencode) heard([]byte) {}
