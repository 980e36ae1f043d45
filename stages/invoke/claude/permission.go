package claude

import (
	"context"
	"encoding/json"

	"witan/kernel"
	"witan/kernel/policy"
	"witan/stages/invoke/turn"
)

// request is what the agent asks for.
type request struct {
	Subtype string          `json:"subtype"`
	Tool    string          `json:"tool_name"`
	Input   json.RawMessage `json:"input"`
	ToolUse string          `json:"tool_use_id"`
}

// The answers that the agent takes. It also suggests rules to keep, some of them
// in the person's own settings: those are not offered.
var offered = []policy.Option{{ID: "allow", Kind: "allow_once", Name: "Allow"}, {ID: "deny", Kind: "reject_once", Name: "Deny"}}

func deny(why string) any { return map[string]any{"behavior": "deny", "message": why} }

// permission answers a request.
func (j *job) permission(ctx context.Context, r request) any {
	raw, err := json.Marshal([]any{r.Tool, r.ToolUse, r.Input})
	if err != nil {
		return deny("the request is malformed")
	}
	q := turn.Question{Key: kernel.Sum(raw), Offered: offered}
	q.Op, q.Asked = j.operation(r)
	q.Tool = turn.Tool{ID: r.ToolUse, Kind: q.Op.Kind, Title: q.Op.Title, Status: "pending"}
	j.mu.Lock()
	j.asked[r.ToolUse] = true
	j.mu.Unlock()
	switch j.desk.Ask(ctx, q) {
	case "allow":
		in := r.Input
		if len(in) == 0 {
			in = json.RawMessage("{}")
		}
		return map[string]any{"behavior": "allow", "updatedInput": in}
	case "deny":
		return deny("this is not allowed here; go on without it")
	}
	return deny("nobody answered; go on without it")
}

// operation normalises a request, and says what was asked for in the agent's words.
func (j *job) operation(r request) (op policy.Operation, asked string) {
	in := readInput(r.Input)
	op = policy.Operation{Kind: kindOf(r.Tool), Title: title(r.Tool, r.Input)}
	asked = op.Title
	if op.Kind == "execute" && in.Command != "" {
		op.Command, asked = in.Command, in.Command
	}
	for _, p := range []string{in.File, in.Notebook, in.Path} {
		if p != "" && op.Kind != "execute" {
			asked = p
			op.Asked = append(op.Asked, p)
			op.Paths = append(op.Paths, turn.Resolve(j.req.Workspace, p))
		}
	}
	return op, asked
}
