package codex

import (
	"path/filepath"
	"strings"

	"witan/stages/invoke/turn"
)

// item is one thing that the agent did or said.
type item struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Status  string `json:"status"`
	Text    string `json:"text"`
	Message string `json:"message"`
	Command string `json:"command"`
	Server  string `json:"server"`
	Tool    string `json:"tool"`
	Query   string `json:"query"`
	Changes []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"changes"`
}

func (r *reader) item(event string, i item) {
	if i.Type == "error" { // a warning; what ends a turn is an event of its own
		r.t.Diagnostic(i.Message)
		return
	}
	r.trying = "" // it got over it
	if r.began {
		r.t.Taken()
	}
	switch i.Type {
	case "agent_message":
		if event == "item.completed" {
			r.t.Message(i.Text)
		}
	case "command_execution":
		r.tool(event, i, "execute", command(i.Command))
	case "file_change":
		r.tool(event, i, "edit", r.changes(i))
	case "mcp_tool_call":
		r.tool(event, i, "other", strings.TrimPrefix(i.Server+": "+i.Tool, ": "))
	case "collab_tool_call": // of the agent with its sub-agents
		r.tool(event, i, "other", i.Tool)
	case "web_search":
		r.tool(event, i, "search", i.Query)
	case "reasoning", "todo_list":
	default: // who knows what it did
		r.t.R.Changed()
	}
	r.t.R.Moved()
}

func (r *reader) tool(event string, i item, kind, title string) {
	status := i.Status
	switch {
	case status == "declined":
		status = "failed"
	case status == "" && event == "item.completed":
		status = "completed"
	}
	r.t.R.Tool(turn.Tool{ID: i.ID, Kind: kind, Title: title, Status: status})
}

// command is a command without the shell around it, where that can be told.
func command(s string) string {
	_, inner, ok := strings.Cut(s, " -lc '")
	inner, closed := strings.CutSuffix(inner, "'")
	if !ok || !closed || strings.Contains(inner, "'") {
		return s
	}
	return inner
}

// changes names the changed files as seen from the workspace.
func (r *reader) changes(i item) string {
	var all []string
	for _, c := range i.Changes {
		path := c.Path
		if rel, err := filepath.Rel(r.t.Req.Workspace, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
		all = append(all, path)
	}
	return strings.Join(all, ", ")
}
