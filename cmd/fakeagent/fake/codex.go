package fake

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// codex speaks the events of "codex exec --json".
type codex struct {
	a       *agent
	session string
	next    int
	items   map[string]object // tools by id
}

func newCodex(a *agent, flags []string) (dialect, int) {
	c := &codex{a: a, session: fmt.Sprintf("thread-%d", os.Getpid()), items: map[string]object{}}
	n := len(flags)
	if n < 3 || flags[0] != "exec" || !slices.Contains(flags, "--json") || flags[n-1] != "-" {
		fmt.Fprintln(os.Stderr, "error: unexpected argument")
		return nil, 2
	}
	if flags[1] == "resume" {
		c.session = flags[n-2]
		if !a.Load || strings.Contains(c.session, "gone") {
			fmt.Fprintf(os.Stderr, "Error: thread/resume: thread/resume failed: no rollout found for thread id %s (code -32600)\n", c.session)
			return nil, 1
		}
	}
	a.whole = true
	return c, 0
}

func (c *codex) sessionID() string { return c.session }

func (c *codex) begin() []byte {
	return encode(object{"type": "thread.started", "thread_id": c.session},
		c.item("item.completed", object{"type": "error", "message": "Model metadata for `scripted` not found."}), object{"type": "turn.started"})
}

func (c *codex) end(t *turn) []byte {
	if t.fail != nil {
		var e struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(t.fail, &e)
		return encode(object{"type": "error", "message": e.Message}, object{"type": "turn.failed", "error": object{"message": e.Message}})
	}
	done := object{"type": "turn.completed"}
	if t.usage != nil {
		done["usage"] = t.usage
	}
	return encode(done)
}

// item is an event of one thing that it did.
func (c *codex) item(event string, of object) object {
	if of["id"] == nil {
		c.next++
		of["id"] = fmt.Sprintf("item_%d", c.next)
	}
	return object{"type": event, "item": of}
}

func (c *codex) lines(u map[string]any) []byte {
	switch u["sessionUpdate"] {
	case "agent_message_chunk":
		return encode(c.item("item.completed", object{"type": "agent_message", "text": textOf(u)}))
	case "agent_thought_chunk":
		return encode(c.item("item.completed", object{"type": "reasoning", "text": textOf(u)}))
	case "tool_call", "tool_call_update":
		return encode(c.tool(u))
	}
	return encode(c.item("item.updated", object{"type": "todo_list", "items": []any{}}))
}

func (c *codex) tool(u map[string]any) object {
	id, status, title := str(u, "toolCallId"), str(u, "status"), str(u, "title")
	of := c.items[id]
	if of == nil {
		switch str(u, "kind") {
		case "execute":
			of = object{"type": "command_execution", "command": title, "aggregated_output": ""}
		case "edit":
			of = object{"type": "file_change", "changes": []any{object{"path": title, "kind": "update"}}}
		case "search":
			of = object{"type": "web_search", "query": title}
		default:
			of = object{"type": "mcp_tool_call", "server": "scripted", "tool": title, "arguments": object{}, "result": str(u, "rawOutput")}
		}
		of["id"] = id
		c.items[id] = of
	}
	delete(of, "status")
	if status != "" {
		of["status"] = status
	}
	event := "item.started"
	if status == "completed" || status == "failed" {
		event = "item.completed"
	}
	return c.item(event, of)
}

// ask: nobody can be asked.
func (c *codex) ask(*turn, string, any, string) json.RawMessage { return json.RawMessage("null") }

func (c *codex) heard([]byte) {}
