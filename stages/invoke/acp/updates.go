package acp

import (
	"context"
	"encoding/json"

	"witan/kernel"
	"witan/stages/invoke/jsonrpc"
	"witan/stages/invoke/turn"
)

// Notify implements jsonrpc.Handler: updates of the running turn. Unknown ones
// are ignored, and so is what belongs to another session and everything outside
// of a turn (a loaded session repeats its past).
func (c *conn) Notify(method string, params json.RawMessage) {
	j := c.current()
	if j == nil {
		return
	}
	switch method {
	case "session/update":
		var p struct {
			Session string `json:"sessionId"`
			Update  update `json:"update"`
		}
		if json.Unmarshal(params, &p) == nil && (p.Session == "" || p.Session == c.session) {
			j.update(p.Update)
		}
	case "_witan/outcome":
		var p struct {
			Outcome kernel.Outcome `json:"outcome"`
			Content *string        `json:"content"`
		}
		if json.Unmarshal(params, &p) == nil {
			j.r.Outcome(p.Outcome, p.Content, c.t.Confined() == turn.InProcessText)
		}
	}
}

// update holds the fields of the kinds that matter.
type update struct {
	Kind    string          `json:"sessionUpdate"`
	Content json.RawMessage `json:"content"`
	ToolID  string          `json:"toolCallId"`
	Title   string          `json:"title"`
	Tool    string          `json:"kind"`
	Status  string          `json:"status"`
}

func (j *job) update(u update) {
	switch u.Kind {
	case "agent_message_chunk":
		var b struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(u.Content, &b) == nil {
			j.r.Text(b.Text)
		}
	case "tool_call", "tool_call_update":
		j.r.Tool(turn.Tool{ID: u.ToolID, Kind: u.Tool, Title: u.Title, Status: u.Status})
	case "agent_thought_chunk", "plan":
		j.r.Moved() // thinking is progress; its text stays with the agent
	}
	// A usage_update is a sign of life and no more: what it counts is the context.
}

// Request implements jsonrpc.Handler.
func (c *conn) Request(ctx context.Context, method string, params json.RawMessage) (any, error) {
	j := c.current()
	switch method {
	case "session/request_permission":
		if j == nil {
			return cancelled, nil
		}
		return j.permission(ctx, params)
	case "fs/read_text_file", "fs/write_text_file":
		if j == nil || j.ctx.Err() != nil {
			return nil, &jsonrpc.Error{Code: codeInvalid, Message: "no turn is running"}
		}
		if method == "fs/read_text_file" {
			return j.readFile(params)
		}
		return j.writeFile(params)
	}
	return nil, jsonrpc.NotFound(method)
}

// Error codes of JSON-RPC.
const (
	codeInvalid = -32600 // the request has no place here
	codeParams  = -32602
)

var errMalformed = &jsonrpc.Error{Code: codeParams, Message: "the request is malformed"}
