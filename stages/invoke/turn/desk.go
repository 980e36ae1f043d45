package turn

import (
	"context"
	"slices"
	"strings"
	"sync"

	"witan/kernel"
	"witan/kernel/policy"
)

// Decide answers a permission request of a turn. It may wait for a person: the
// watchdog does not count that time, and ctx ends with the turn.
type Decide func(ctx context.Context, env kernel.Env, t kernel.Turn, op policy.Operation, offered []policy.Option) policy.Decision

// Question is a permission request, normalised.
type Question struct {
	Key     kernel.Digest // of what the agent sent: the same again is the same question
	Tool    Tool          // what is shown of it
	Op      policy.Operation
	Asked   string // in the agent's words
	Offered []policy.Option
}

// Desk is where the permission requests of one turn are answered. The same
// question is decided once, however often it is asked, and the decision is on
// record before anybody learns of it. What the agent did not offer is never
// chosen.
type Desk struct {
	r      *Recorder
	decide Decide          // nil: by policy
	over   context.Context // ends with the turn, and open questions with it

	mu    sync.Mutex
	asked map[kernel.Digest]*asked // guarded by mu
}

type asked struct {
	done   chan struct{}
	option string // after done
}

// NewDesk returns the desk of the turn that r records.
func NewDesk(over context.Context, r *Recorder, decide Decide) *Desk {
	return &Desk{r: r, decide: decide, over: over, asked: map[kernel.Digest]*asked{}}
}

// Ask returns the option that answers q: "" when none is given, as the turn or
// ctx is over, nothing offered fits, or the decision could not be recorded.
func (d *Desk) Ask(ctx context.Context, q Question) string {
	d.mu.Lock()
	a, again := d.asked[q.Key]
	if !again {
		a = &asked{done: make(chan struct{})}
		d.asked[q.Key] = a
	}
	d.mu.Unlock()
	if !again {
		a.option = d.answer(ctx, q)
		close(a.done)
	}
	select {
	case <-a.done:
		return a.option
	case <-ctx.Done():
		return ""
	}
}

func (d *Desk) answer(ctx context.Context, q Question) string {
	if d.over.Err() != nil {
		return ""
	}
	d.r.Tool(q.Tool)
	c := d.choose(ctx, q)
	if c.Option != "" && !slices.ContainsFunc(q.Offered, func(o policy.Option) bool { return o.ID == c.Option }) {
		c.Allow, c.Option = false, ""
	}
	word := "reject"
	if c.Allow && c.Option != "" {
		word = "allow"
	}
	body := kernel.PermissionBody{Asked: d.r.Line(q.Asked), Resolved: d.r.Line(strings.Join(q.Op.Paths, ", ")), Decision: word, By: c.By, Kind: d.r.Line(q.Op.Kind)}
	if err := d.r.env.Note(context.WithoutCancel(ctx), kernel.PermissionRec, body); err != nil || d.over.Err() != nil {
		return ""
	}
	return c.Option
}

// choose decides by policy, or asks who decides; nobody is asked longer than the
// turn lasts.
func (d *Desk) choose(ctx context.Context, q Question) policy.Decision {
	if d.decide == nil {
		return d.byPolicy(q)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.over, cancel)()
	defer d.r.Ask()()
	c := d.decide(ctx, d.r.env, d.r.req.Turn, q.Op, slices.Clone(q.Offered))
	if ctx.Err() != nil {
		c = policy.Decision{}
	}
	if c.By == "" {
		c.By = "policy"
	}
	return c
}

// byPolicy decides without a person: what one would be asked about is rejected.
// An option that allows for ever is not taken: it would keep later questions from
// the policy.
func (d *Desk) byPolicy(q Question) policy.Decision {
	t, mode, offered := d.r.req.Turn, policy.ReadOnly, q.Offered
	if t.Write {
		mode = policy.Full
	}
	v := policy.Decide(policy.Request{Mode: mode, Write: t.Write, Workspace: Resolve(d.r.req.Workspace, "."), Op: q.Op})
	c := policy.Decision{Allow: v.Outcome == policy.Allow, Why: v.Why, By: "policy"}
	outcome := policy.Reject
	if c.Allow {
		outcome = policy.Allow
		offered = slices.DeleteFunc(slices.Clone(offered), func(o policy.Option) bool { return o.Kind == "allow_always" })
	}
	var ok bool
	c.Option, ok = policy.Pick(outcome, offered)
	c.Allow = c.Allow && ok
	return c
}
