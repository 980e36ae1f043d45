package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// question is a request that was asked, once or again.
type question struct {
	done   chan struct{}
	answer any // after done
}

var cancelled = map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}

// permission answers a request. The same request of the same tool call is one
// question with one decision, however often it arrives.
func (j *job) permission(ctx context.Context, params json.RawMessage) (any, error) {
	var p request
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, errMalformed
	}
	key := kernel.Sum(params)
	j.mu.Lock()
	q, again := j.asked[key]
	if !again {
		q = &question{done: make(chan struct{})}
		j.asked[key] = q
	}
	j.mu.Unlock()
	if !again {
		q.answer = j.decide(ctx, p)
		close(q.done)
	}
	select {
	case <-q.done:
		return q.answer, nil
	case <-ctx.Done():
		return cancelled, nil
	}
}

// decide makes one decision; it is on record before its answer leaves.
func (j *job) decide(ctx context.Context, p request) any {
	if j.ctx.Err() != nil {
		return cancelled
	}
	j.r.Tool(turn.Tool{ID: p.Call.ID, Kind: p.Call.Kind, Title: p.Call.Title, Status: "pending"})
	op, asked := j.operation(p)
	var offered []policy.Option
	for _, o := range p.Options {
		offered = append(offered, policy.Option{ID: o.ID, Kind: o.Kind, Name: o.Name})
	}
	d := j.choose(ctx, op, offered)
	if d.Option != "" && !slices.ContainsFunc(offered, func(o policy.Option) bool { return o.ID == d.Option }) {
		d.Allow, d.Option = false, ""
	}
	word := "reject"
	if d.Allow && d.Option != "" {
		word = "allow"
	}
	body := kernel.PermissionBody{Asked: j.r.Line(asked), Resolved: j.r.Line(strings.Join(op.Paths, ", ")), Decision: word, By: d.By, Kind: j.r.Line(op.Kind)}
	if err := j.env.Note(context.WithoutCancel(ctx), kernel.PermissionRec, body); err != nil || d.Option == "" || j.ctx.Err() != nil {
		return cancelled
	}
	return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": d.Option}}
}

// choose decides by policy, or asks who decides; nobody is asked longer than the
// turn lasts.
func (j *job) choose(ctx context.Context, op policy.Operation, offered []policy.Option) policy.Decision {
	if j.a.cfg.Decide == nil {
		return j.byPolicy(op, offered)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(j.ctx, cancel)()
	defer j.r.Ask()()
	d := j.a.cfg.Decide(ctx, j.env, j.req.Turn, op, offered)
	if ctx.Err() != nil {
		d = policy.Decision{}
	}
	if d.By == "" {
		d.By = "policy"
	}
	return d
}

// byPolicy decides without a person: what one would be asked about is rejected.
// An option that allows for ever is not taken: it would keep later questions from
// the policy.
func (j *job) byPolicy(op policy.Operation, offered []policy.Option) policy.Decision {
	mode := policy.ReadOnly
	if j.req.Turn.Write {
		mode = policy.Full
	}
	v := policy.Decide(policy.Request{Mode: mode, Write: j.req.Turn.Write, Workspace: turn.Resolve(j.req.Workspace, "."), Op: op})
	d := policy.Decision{Allow: v.Outcome == policy.Allow, Why: v.Why, By: "policy"}
	outcome := policy.Reject
	if d.Allow {
		outcome = policy.Allow
		offered = slices.DeleteFunc(slices.Clone(offered), func(o policy.Option) bool { return o.Kind == "allow_always" })
	}
	var ok bool
	d.Option, ok = policy.Pick(outcome, offered)
	d.Allow = d.Allow && ok
	return d
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
