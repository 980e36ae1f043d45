package turn

import (
	"context"
	"os"
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
	if c.Why == withdrawn {
		word = "cancelled"
	}
	if c.Allow && c.Option != "" {
		word = "allow"
	}
	body := kernel.PermissionBody{Asked: d.r.Line(q.Asked), Resolved: d.r.Line(strings.Join(q.Op.Paths, ", ")), Decision: word, By: c.By, Gate: kernel.GateID(c.Gate), Kind: d.r.Line(q.Op.Kind)}
	if err := d.r.env.Note(context.WithoutCancel(ctx), kernel.PermissionRec, body); err != nil || d.over.Err() != nil {
		return ""
	}
	return c.Option
}

// choose decides by policy, or asks who decides; nobody is asked longer than the
// turn lasts.
func (d *Desk) choose(ctx context.Context, q Question) policy.Decision {
	if d.decide == nil {
		return d.byPolicy(ctx, q)
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

// withdrawn is a question that nobody answered before its turn was over or parked.
const withdrawn = "withdrawn"

// byPolicy decides by the rules, and asks the person where they say so. Where
// nobody can be asked, that is a rejection.
func (d *Desk) byPolicy(ctx context.Context, q Question) policy.Decision {
	t := d.r.req.Turn
	mode := policy.Mode(t.Mode)
	if t.Write && mode == "" {
		mode = policy.Full
	}
	home, _ := os.UserHomeDir() // without one, ~ is nothing that is known
	req := policy.Request{Mode: mode, Write: t.Write, Workspace: Resolve(d.r.req.Workspace, "."), Home: home, Op: q.Op}
	if t.OutputDir != "" {
		req.Output = []string{Resolve(t.OutputDir, ".")}
	}
	for _, text := range d.r.req.Deny {
		rule, err := policy.ParseRule(text)
		if err != nil { // a rule that says nothing readable denies everything
			return pick(policy.Decision{Why: "bad_rule", By: "policy"}, q.Offered)
		}
		req.Deny = append(req.Deny, rule)
	}
	v := policy.Decide(req)
	if v.Outcome == policy.AskFor && d.r.env.Ask != nil {
		return d.byPerson(ctx, q, v)
	}
	return pick(policy.Decision{Allow: v.Outcome == policy.Allow, Why: v.Why, By: "policy"}, q.Offered)
}

// byPerson opens a gate and takes its answer. A question that was withdrawn is
// answered with nothing.
func (d *Desk) byPerson(ctx context.Context, q Question, v policy.Verdict) policy.Decision {
	key, err := kernel.ParseDigest(v.Key)
	if err != nil {
		return pick(policy.Decision{Why: v.Why, By: "policy"}, q.Offered)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.over, cancel)()
	defer d.r.Ask()()
	a, err := d.r.env.Ask(ctx, kernel.Question{Kind: kernel.GatePermission, Key: key, Request: q.Key.String(),
		Summary: d.r.Line(v.Summary), Target: d.r.Line(v.Target), Options: kernel.PermissionOptions})
	if err != nil || ctx.Err() != nil {
		return policy.Decision{Why: withdrawn, By: "policy"}
	}
	c := policy.Decision{Allow: a.Option != "reject", Why: v.Why, By: a.By, Gate: string(a.Gate)}
	if got := pick(c, q.Offered); got.Option != "" || !c.Allow {
		return got
	}
	// The agent has no way to allow once, and the person has allowed it.
	var ok bool
	c.Option, ok = policy.Pick(policy.Allow, q.Offered)
	c.Allow = ok
	return c
}

// pick takes the offered option that says what was decided. One that allows for
// ever is not taken: it would keep later questions from the policy.
func pick(c policy.Decision, offered []policy.Option) policy.Decision {
	outcome := policy.Reject
	if c.Allow {
		outcome = policy.Allow
	}
	var ok bool
	c.Option, ok = policy.Pick(outcome, offered)
	if c.Allow && slices.ContainsFunc(offered, func(o policy.Option) bool { return o.ID == c.Option && o.Kind == "allow_always" }) {
		c.Option, ok = "", false
	}
	c.Allow = c.Allow && ok
	return c
}
