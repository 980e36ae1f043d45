package fake

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

var geminiTools = map[string]tool{"read": {"read_file", "Read"}, "search": {"grep_search", "Search"}, "edit": {"write_file", "Write"},
	"execute": {"run_shell_command", "Run"}, "fetch": {"web_fetch", "Fetch"}}

// sessionOf is the session that the flags name.
func sessionOf(flags []string) string {
	if id := flag(flags, "--resume"); id != "" {
		return id
	}
	return flag(flags, "--session-id")
}

// starts checks the flags of a program that takes one prompt, and whether it has
// the session that it is to go on in.
func (a *agent) starts(flags []string, gone string, code int) (exit int, ok bool) {
	if flag(flags, "-o") != "stream-json" || flag(flags, "--approval-mode") == "" || sessionOf(flags) == "" {
		fmt.Fprintln(os.Stderr, "fakeagent: these are not the flags of a stream")
		return 1, false
	}
	if id := flag(flags, "--resume"); id != "" && (!a.Load || strings.Contains(id, "gone")) {
		fmt.Fprintf(os.Stderr, gone+"\n", id)
		return code, false
	}
	return 0, true
}

// gemini speaks the stream of Gemini CLI.
type gemini struct {
	session string
	seen    map[string]bool
}

func newGemini(a *agent, flags []string) (dialect, int) {
	if exit, ok := a.starts(flags, `Error resuming session: Invalid session identifier "%s".`, 42); !ok {
		return nil, exit
	}
	return &gemini{sessionOf(flags), map[string]bool{}}, 0
}

func (g *gemini) sessionID() string { return g.session }

func (g *gemini) heard([]byte) {}

func (g *gemini) ask(*turn, string, any, string) json.RawMessage { return json.RawMessage("null") }

func (g *gemini) begin() []byte {
	return encode(object{"type": "init", "session_id": g.session, "model": "fake"}, object{"type": "message", "role": "user", "content": "…"})
}

func (g *gemini) lines(u map[string]any) []byte {
	id := str(u, "toolCallId")
	name, input := call(geminiTools, u)
	use := object{"type": "tool_use", "tool_name": name, "tool_id": id, "parameters": input}
	switch status := str(u, "status"); {
	case u["sessionUpdate"] == "agent_message_chunk":
		return encode(object{"type": "message", "role": "assistant", "content": textOf(u), "delta": true})
	case id == "":
		return nil
	case status == "completed" || status == "failed":
		done := object{"type": "tool_result", "tool_id": id, "status": map[bool]string{true: "success", false: "error"}[status == "completed"], "output": str(u, "rawOutput")}
		if g.seen[id] || name == "" {
			return encode(done)
		}
		g.seen[id] = true
		return encode(use, done)
	}
	g.seen[id] = true
	return encode(use)
}

func (g *gemini) end(t *turn) []byte {
	res := object{"type": "result", "status": "success", "stats": t.usage}
	if t.fail != nil {
		res["status"], res["error"] = "error", t.fail
	}
	return encode(res)
}

// qwen speaks the stream of Qwen Code, which has the shape of Claude Code's.
type qwen struct{ *claude }

func newQwen(a *agent, flags []string) (dialect, int) {
	if exit, ok := a.starts(flags, "No saved session found with ID %s.", 1); !ok {
		return nil, exit
	}
	return &qwen{&claude{a: a, session: sessionOf(flags), id: "msg_1", seen: map[string]bool{}, tools: geminiTools}}, 0
}

func (q *qwen) sessionID() string { return q.session }

func (q *qwen) ask(*turn, string, any, string) json.RawMessage { return json.RawMessage("null") }

func (q *qwen) begin() []byte {
	return encode(object{"type": "system", "subtype": "init", "session_id": q.session}, q.event(object{"type": "message_start", "message": object{"id": q.id}}))
}

func (q *qwen) end(t *turn) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	res := object{"type": "result", "subtype": "success", "session_id": q.session, "is_error": false, "usage": t.usage}
	if t.fail != nil {
		res["subtype"], res["is_error"], res["error"] = "error_during_execution", true, t.fail
	}
	return append(q.closeBlock(), encode(res)...)
}
