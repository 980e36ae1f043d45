package invoke

import (
	"context"
	"errors"
	"fmt"

	"witan/kernel"
)

// Lookup finds the adapter of an agent.
type Lookup func(kernel.AgentID) (kernel.Invoker, bool)

// Config is what the stage needs of its host.
type Config struct {
	Look   Lookup
	State  func(kernel.Turn) string                                                       // folder for an agent's files of a turn
	Deny   []string                                                                       // rules that beat every permission
	Places Places                                                                         // nil: every turn works in the workspace itself
	Forget func(ctx context.Context, c kernel.ConversationID, owner kernel.AgentID) error // a session of one turn
	Tools  func(ctx context.Context, env kernel.Env, t kernel.Turn) (Tools, error)
}

type stage struct{ cfg Config }

// New returns "invoke/agent".
func New(c Config) kernel.Invoke { return stage{c} }

func (stage) Spec() kernel.Spec {
	return kernel.Spec{ID: "invoke/agent", Version: 1, Class: kernel.Once, Parallel: true, Touches: []string{"process", "network", "workspace-read", "workspace-write"},
		Doc: "Gives the delivery to its agent and brings the reply back", Options: kernel.NoOptions,
		In: kernel.Schema[kernel.Delivery](), Out: kernel.Schema[kernel.Reply]()}
}

func (s stage) Run(ctx context.Context, env kernel.Env, d kernel.Delivery) (kernel.Reply, error) {
	raw, err := kernel.Canonical(d)
	if err != nil {
		return kernel.Reply{}, err
	}
	t, err := kernel.GetObject[kernel.Turn](ctx, env.Packs, d.Turn)
	if err != nil {
		return kernel.Reply{}, err
	}
	snap, err := kernel.GetObject[kernel.Snapshot](ctx, env.Packs, t.Snapshot)
	if err != nil {
		return kernel.Reply{}, err
	}
	task, err := kernel.GetObject[kernel.Task](ctx, env.Packs, snap.Task)
	if err != nil {
		return kernel.Reply{}, err
	}
	prompt, err := env.Packs.Get(ctx, d.Prompt)
	if err != nil {
		return kernel.Reply{}, err
	}
	if kernel.Fingerprint(prompt) != d.Fingerprint {
		return kernel.Reply{}, kernel.E("invoke", kernel.Corrupt, nil, "the delivery does not match its fingerprint")
	}
	agent, ok := s.cfg.Look(t.Agent)
	if !ok {
		return kernel.Reply{}, &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "unknown_agent",
			Text: fmt.Sprintf("agent %q is not configured any more; see witan agents", t.Agent)}
	}
	p, err := s.place(ctx, env, t, snap)
	if err != nil {
		return kernel.Reply{}, err
	}
	req := kernel.InvokeRequest{Agent: t.Agent, Conversation: task.Conversation, Delivery: d, DeliveryHash: kernel.Sum(raw), Turn: t,
		Prompt: prompt, Owner: owner(t, p, env.Attempt), Workspace: p.Dir, State: s.cfg.State(t), Deny: s.cfg.Deny}
	r, err := s.turn(ctx, env, agent, req)
	if req.Owner == ownTurn(t.Agent, env.Attempt) && s.cfg.Forget != nil {
		if ferr := s.cfg.Forget(context.WithoutCancel(ctx), req.Conversation, req.Owner); ferr != nil && !kernel.IsKind(ferr, kernel.NotFound) {
			env.Log.Error("session not forgotten", "err", ferr)
		}
	}
	if err != nil {
		var left kernel.Reply
		lerr := s.leave(ctx, p, agent, &left)
		if lerr != nil {
			env.Log.Error("folder of a turn not given back", "err", lerr)
		}
		var f *kernel.Failure
		if errors.As(err, &f) && t.Write && (len(left.Changed) > 0 || lerr != nil) {
			f.Effects = true // whatever the agent told of it
		}
		return kernel.Reply{}, err
	}
	return r, s.leave(ctx, p, agent, &r)
}

// turn runs the turn with its tools, asks once more for a receipt that lacks,
// and takes in what was handed over.
func (s stage) turn(ctx context.Context, env kernel.Env, agent kernel.Invoker, req kernel.InvokeRequest) (kernel.Reply, error) {
	take := func(*kernel.Reply) {}
	if s.cfg.Tools != nil {
		tools, err := s.cfg.Tools(ctx, env, req.Turn)
		if err != nil {
			return kernel.Reply{}, err
		}
		defer tools.Close()
		req.MCP, req.Waiting = tools.Servers, tools.Waiting
		taken := 0
		take = func(r *kernel.Reply) {
			receipt, found := tools.Collect()
			if len(receipt) > 0 {
				r.Receipt = receipt
			}
			r.Outcomes = append(r.Outcomes, found[taken:]...)
			taken = len(found)
		}
	}
	r, err := agent.Invoke(ctx, env, req)
	if err != nil {
		return r, err
	}
	take(&r)
	if req.Turn.Repair != "" {
		if r, err = s.repair(ctx, env, agent, req, r, take); err != nil {
			return r, err
		}
	}
	r.Files, err = output(ctx, env.Packs, req.Turn.OutputDir)
	return r, err
}
