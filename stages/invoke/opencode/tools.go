package opencode

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"witan/stages/invoke/turn"
)

// state is how a tool call stands, and what it was given.
type state struct {
	Status string          `json:"status"`
	Title  string          `json:"title"`
	Error  string          `json:"error"`
	Input  json.RawMessage `json:"input"`
}

// input are what the program's own tools are given; others have what they like.
type input struct {
	Path        any `json:"filePath"`
	Command     any `json:"command"`
	Pattern     any `json:"pattern"`
	URL         any `json:"url"`
	Query       any `json:"query"`
	Description any `json:"description"`
}

// kinds are those of the program's own tools.
var kinds = map[string]string{"read": "read", "skill": "read", "lsp": "read", "glob": "search", "grep": "search", "list": "search", "codesearch": "search",
	"edit": "edit", "write": "edit", "multiedit": "edit", "patch": "edit", "apply_patch": "edit", "bash": "execute", "webfetch": "fetch", "websearch": "fetch",
	"todowrite": "think", "todoread": "think", "invalid": "think"}

// harmless are kinds that change nothing.
var harmless = map[string]bool{"read": true, "search": true, "fetch": true, "think": true}

// statuses in the words of a reply.
var statuses = map[string]string{"running": "in_progress", "error": "failed"}

// rejection is in the error of a tool that nobody allowed.
const rejection = "rejected permission"

func (r *reader) tool(p part) {
	status := p.State.Status
	if s, ok := statuses[status]; ok {
		status = s
	}
	if status == "failed" && strings.Contains(p.State.Error, rejection) {
		r.rejected = true
	}
	kind := kinds[p.Tool]
	if kind == "" {
		kind = "other"
	}
	r.t.R.Tool(turn.Tool{ID: p.Call, Kind: kind, Title: r.title(p), Status: status})
}

// title is what a call is about.
func (r *reader) title(p part) string {
	var in input
	_ = json.Unmarshal(p.State.Input, &in) // of any shape
	if path, ok := in.Path.(string); ok {
		if rel, err := filepath.Rel(r.t.Req.Workspace, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
		return p.Tool + " " + path
	}
	if s, ok := in.Command.(string); ok {
		return s
	}
	for _, v := range []any{in.Pattern, in.URL, in.Query, in.Description} {
		if s, ok := v.(string); ok && s != "" {
			return p.Tool + " " + s
		}
	}
	if p.State.Title != "" {
		return p.State.Title
	}
	return p.Tool
}
