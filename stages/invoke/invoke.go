package invoke

import (
	"context"
	"fmt"

	"witan/kernel"
)

// Lookup finds the adapter of an agent.
type Lookup func(kernel.AgentID) (kernel.Invoker, bool)

type stage struct {
	look  Lookup
	state func(kernel.Turn) string
}

// New returns "invoke/agent". state names the folder for an agent's files of a turn.
func New(look Lookup, state func(kernel.Turn) string) kernel.Invoke { return stage{look, state} }

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
	agent, ok := s.look(t.Agent)
	if !ok {
		return kernel.Reply{}, &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "unknown_agent",
			Text: fmt.Sprintf("agent %q is not configured any more; see witan agents", t.Agent)}
	}
	return agent.Invoke(ctx, env, kernel.InvokeRequest{Agent: t.Agent, Conversation: task.Conversation, Delivery: d,
		DeliveryHash: kernel.Sum(raw), Turn: t, Prompt: prompt, Workspace: snap.Workspace.Path, State: s.state(t)})
}
