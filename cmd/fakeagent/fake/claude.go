package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// claude speaks the duplex stream of Claude Code.
type claude struct {
	a       *agent
	session string

	mu     sync.Mutex
	cancel context.CancelFunc // of the running turn
	next   int
	id     string          // of the message under way
	piece  strings.Builder // its open block of text
	open   bool
	seen   map[string]bool // tools
	tools  map[string]tool
}

var claudeTools = map[string]tool{"read": {"Read", "Read"}, "search": {"Grep", "Grep"}, "edit": {"Write", "Write"}, "execute": {"Bash", "Bash"}, "fetch": {"WebFetch", "WebFetch"}}

func newClaude(a *agent, flags []string) (dialect, int) {
	c := &claude{a: a, session: flag(flags, "--session-id"), seen: map[string]bool{}, tools: claudeTools}
	if flag(flags, "--input-format") != "stream-json" || flag(flags, "--output-format") != "stream-json" || flag(flags, "--permission-prompt-tool") != "stdio" {
		fmt.Fprintln(os.Stderr, "fakeagent: these are not the flags of the duplex stream")
		return nil, 1
	}
	if id := flag(flags, "--resume"); id != "" {
		if !a.Load || strings.Contains(id, "gone") {
			why := "No conversation found with session ID: " + id
			fmt.Fprintln(os.Stderr, why)
			a.print(string(encode(object{"type": "result", "subtype": "error_during_execution", "is_error": true, "session_id": id, "errors": []string{why}})))
			return nil, 1
		}
		c.session = id
	}
	return c, 0
}

func (c *claude) print(values ...any) { c.a.print(string(encode(values...))) }

func (c *claude) heard(line []byte) {
	var m struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
		Request   struct {
			Subtype string `json:"subtype"`
		} `json:"request"`
		Response struct {
			RequestID string          `json:"request_id"`
			Response  json.RawMessage `json:"response"`
			Error     string          `json:"error"`
		} `json:"response"`
		Message struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &m) != nil {
		return
	}
	switch m.Type {
	case "control_request":
		c.control(m.RequestID, m.Request.Subtype)
	case "control_response":
		c.a.mu.Lock()
		ch := c.a.answers[m.Response.RequestID]
		c.a.mu.Unlock()
		if m.Response.Response == nil {
			m.Response.Response, _ = json.Marshal(object{"error": m.Response.Error})
		}
		if ch != nil {
			ch <- m.Response.Response
		}
	case "user":
		ctx, cancel := context.WithCancel(context.Background())
		text := ""
		for _, b := range m.Message.Content {
			text += b.Text
		}
		c.mu.Lock()
		c.cancel = cancel
		c.next++
		c.id = fmt.Sprintf("msg_%d", c.next)
		c.mu.Unlock()
		go c.prompt(ctx, text)
	}
}

func (c *claude) control(id, subtype string) {
	if subtype == "initialize" && c.a.NoInit {
		return
	}
	c.print(object{"type": "control_response", "response": object{"subtype": "success", "request_id": id, "response": object{}}})
	switch subtype {
	case "initialize":
		if c.a.Blind {
			forever()
		}
	case "interrupt":
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.cancel != nil {
			c.cancel()
		}
	}
}

func (c *claude) prompt(ctx context.Context, text string) {
	c.a.record(c.session, text)
	c.print(object{"type": "system", "subtype": "init", "session_id": c.session, "tools": []string{"Read"}},
		c.event(object{"type": "message_start", "message": object{"id": c.id, "role": "assistant"}}))
	if c.a.Replay != "" {
		c.print(object{"type": "user", "message": object{"role": "user", "content": c.a.Replay}})
	}
	t := &turn{a: c.a, ctx: ctx, asked: ctx, session: c.session, prompt: text, stop: "end_turn"}
	t.steps(c.a.stepsFor(text))
	if t.mute {
		return
	}
	c.mu.Lock()
	end := append(c.closeBlock(), encode(c.event(object{"type": "message_stop"}))...)
	c.mu.Unlock()
	end = append(end, encode(c.result(t)...)...)
	if t.late {
		end = append(end, encode(c.result(t)...)...)
	}
	c.a.print(string(end))
}

// result is how a turn ends.
func (c *claude) result(t *turn) []any {
	res := object{"type": "result", "subtype": "success", "is_error": false, "session_id": c.session, "stop_reason": t.stop, "terminal_reason": "completed"}
	if t.usage != nil {
		res["usage"] = t.usage
	}
	var fail struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	switch {
	case t.fail != nil:
		_ = json.Unmarshal(t.fail, &fail)
		res["is_error"], res["terminal_reason"], res["result"], res["api_error_status"] = true, "api_error", fail.Message, fail.Code
		return []any{object{"type": "assistant", "is_api_error_message": true, "message": object{"id": "synthetic", "model": "<synthetic>",
			"content": []any{object{"type": "text", "text": fail.Message}}}}, res}
	case t.ctx.Err() != nil:
		res["subtype"], res["is_error"], res["stop_reason"], res["terminal_reason"] = "error_during_execution", true, nil, "aborted_streaming"
	}
	return []any{res}
}

func (c *claude) event(e object) object {
	return object{"type": "stream_event", "session_id": c.session, "parent_tool_use_id": nil, "event": e}
}

func (c *claude) message(kind string, blocks ...any) object {
	return object{"type": kind, "session_id": c.session, "parent_tool_use_id": nil, "message": object{"id": c.id, "role": kind, "content": blocks}}
}

// closeBlock ends an open block of text: the whole comes behind its pieces. mu is held.
func (c *claude) closeBlock() []byte {
	if !c.open {
		return nil
	}
	text := c.piece.String()
	c.open = false
	c.piece.Reset()
	return encode(c.message("assistant", object{"type": "text", "text": text}), c.event(object{"type": "content_block_stop"}))
}

func (c *claude) lines(u map[string]any) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch u["sessionUpdate"] {
	case "agent_message_chunk":
		var out []byte
		if !c.open {
			c.open = true
			out = encode(c.event(object{"type": "content_block_start", "content_block": object{"type": "text", "text": ""}}))
		}
		c.piece.WriteString(textOf(u))
		return append(out, encode(c.event(object{"type": "content_block_delta", "delta": object{"type": "text_delta", "text": textOf(u)}}))...)
	case "agent_thought_chunk":
		return append(c.closeBlock(), encode(c.event(object{"type": "content_block_delta", "delta": object{"type": "thinking_delta", "thinking": textOf(u)}}),
			c.message("assistant", object{"type": "thinking", "thinking": textOf(u)}))...)
	case "tool_call", "tool_call_update":
		return append(c.closeBlock(), c.tool(u)...)
	}
	return encode(object{"type": "system", "subtype": "status", "status": "requesting", "session_id": c.session})
}

// tool is a call on its way, one that runs, or the end of one. mu is held.
func (c *claude) tool(u map[string]any) (out []byte) {
	id, status := str(u, "toolCallId"), str(u, "status")
	name, input := call(c.tools, u)
	known := c.seen[id]
	c.seen[id] = true
	done := status == "completed" || status == "failed"
	switch {
	case done && !known && name != "":
		out = encode(c.message("assistant", object{"type": "tool_use", "id": id, "name": name, "input": input}))
	case !done && status == "in_progress":
		return encode(c.message("assistant", object{"type": "tool_use", "id": id, "name": name, "input": input}))
	case !done:
		return encode(c.event(object{"type": "content_block_start", "content_block": object{"type": "tool_use", "id": id, "name": name, "input": object{}}}))
	}
	return append(out, encode(c.message("user", object{"type": "tool_result", "tool_use_id": id, "is_error": status == "failed", "content": str(u, "rawOutput")}))...)
}

// ask asks for permission; any other method is one that no client knows.
func (c *claude) ask(t *turn, method string, params any, id string) json.RawMessage {
	p, _ := params.(object)
	asked, _ := p["toolCall"].(object)
	request := object{"subtype": method}
	if method == "session/request_permission" {
		name, input := call(c.tools, asked)
		if raw, ok := asked["rawInput"].(object); ok {
			input = raw
		}
		if at, ok := asked["locations"].([]any); ok {
			input["file_path"] = at[0].(object)["path"]
		}
		request = object{"subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": asked["toolCallId"]}
	}
	if id == "" {
		id = strconv.FormatInt(1000+c.a.next.Add(1), 10)
	}
	ch := make(chan json.RawMessage, 2)
	c.a.mu.Lock()
	c.a.answers[id] = ch
	c.a.mu.Unlock()
	c.print(object{"type": "control_request", "request_id": id, "request": request})
	select {
	case r := <-ch:
		return asACP(r, p["options"])
	case <-t.ctx.Done():
		c.print(object{"type": "control_cancel_request", "request_id": id})
		return json.RawMessage("null")
	}
}

// asACP names the option that an answer stands for.
func asACP(answer json.RawMessage, options any) json.RawMessage {
	var r struct {
		Behavior string `json:"behavior"`
	}
	if json.Unmarshal(answer, &r) != nil || r.Behavior == "" {
		return answer
	}
	want := "reject_once"
	if r.Behavior == "allow" {
		want = "allow_once"
	}
	var all []struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
	}
	raw, _ := json.Marshal(options)
	_ = json.Unmarshal(raw, &all)
	for _, o := range all {
		if o.Kind == want {
			return json.RawMessage(fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, o.ID))
		}
	}
	return json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`)
}
