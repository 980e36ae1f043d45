package acp

import (
	"context"
	"encoding/json"
	"fmt"

	"witan/kernel"
	"witan/kernel/policy"
	"witan/stages/invoke/turn"
)

// request is what an agent asks for. Some show a tool call only here.
type request struct {
	Call struct {
		ID    string `json:"toolCallId"`
		Title string `json:"title"`
		Kind  string `json:"kind"`
		Input struct {
			Command any `json:"command"` // one line, or a list of words
			Dir     any `json:"cwd"`     // where it runs, as some say
			Workdir any `json:"workdir"` // as others do
		} `json:"rawInput"`
		Locations []struct {
			Path string `json:"path"`
		} `json:"locations"`
	} `json:"toolCall"`
	Options []struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"options"`
}

var cancelled = map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}

// permission answers a request.
func (j *job) permission(ctx context.Context, params json.RawMessage) (any, error) {
	var p request
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, errMalformed
	}
	q := turn.Question{Key: kernel.Sum(params), Tool: turn.Tool{ID: p.Call.ID, Kind: p.Call.Kind, Title: p.Call.Title, Status: "pending"}}
	q.Op, q.Asked = j.operation(p)
	for _, o := range p.Options {
		q.Offered = append(q.Offered, policy.Option{ID: o.ID, Kind: o.Kind, Name: o.Name})
	}
	option := j.desk.Ask(ctx, q)
	if option == "" {
		return cancelled, nil
	}
	return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": option}}, nil
}

// operation normalises a request, and says what was asked for in the agent's words.
func (j *job) operation(p request) (op policy.Operation, asked string) {
	op = policy.Operation{Kind: p.Call.Kind, Title: p.Call.Title}
	asked = p.Call.Title
	for _, l := range p.Call.Locations {
		asked = l.Path
		op.Asked = append(op.Asked, l.Path)
		op.Paths = append(op.Paths, turn.Resolve(j.req.Workspace, l.Path))
	}
	for _, d := range []any{p.Call.Input.Workdir, p.Call.Input.Dir} {
		if dir, ok := d.(string); ok && dir != "" {
			op.Dir = turn.Resolve(j.req.Workspace, dir)
		}
	}
	switch c := p.Call.Input.Command.(type) {
	case string:
		op.Command = c
	case []any:
		var words []string
		for _, w := range c {
			words = append(words, fmt.Sprint(w))
		}
		op.Command = policy.Join(words)
	}
	if op.Command != "" {
		asked = op.Command
	}
	return op, asked
}
