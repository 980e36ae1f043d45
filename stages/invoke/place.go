package invoke

import (
	"context"

	"witan/kernel"
)

// Place is the folder of a turn.
type Place struct {
	Dir   string
	Brief bool // made for this turn: no session and no process of an agent outlives it
	// Capture says what the turn left: the content of a writing turn (zero for
	// another), and what changed.
	Capture func(context.Context) (kernel.Digest, []kernel.Change, error)
	Close   func(context.Context) error
}

// Places gives a turn its folder; nil is the workspace itself.
type Places func(ctx context.Context, env kernel.Env, t kernel.Turn, s kernel.Snapshot) (Place, error)

// Tools are the tool servers that a turn is offered. Collect gives what came
// through them so far; Waiting, if set, says whether a person is being asked
// through them; Close ends the turn for them.
type Tools struct {
	Servers []kernel.MCPServer
	Waiting func() bool
	Collect func() (receipt kernel.ReceiptBytes, found []kernel.Outcome)
	Close   func()
}

// releaser is an adapter that keeps processes; those of a folder that goes away
// are ended.
type releaser interface{ Release(workspace string) }

func (s stage) place(ctx context.Context, env kernel.Env, t kernel.Turn, snap kernel.Snapshot) (Place, error) {
	if s.cfg.Places == nil {
		return Place{Dir: snap.Workspace.Path}, nil
	}
	return s.cfg.Places(ctx, env, t, snap)
}

// leave takes what a turn left in its folder into the reply and gives the folder
// back. An agent's processes in it end first.
func (s stage) leave(ctx context.Context, p Place, agent kernel.Invoker, r *kernel.Reply) error {
	ctx = context.WithoutCancel(ctx)
	if p.Brief {
		if a, ok := agent.(releaser); ok {
			a.Release(p.Dir)
		}
	}
	var err error
	if p.Capture != nil && r != nil {
		var changed []kernel.Change
		if r.Candidate, changed, err = p.Capture(ctx); len(changed) > 0 {
			r.Changed = changed
		}
	}
	if p.Close != nil {
		if cerr := p.Close(ctx); err == nil {
			err = cerr
		}
	}
	return err
}

// owner is who the turn's native session belongs to. A turn that may be asked
// once more has one of its own if there is no other.
func owner(t kernel.Turn, p Place, at kernel.AttemptID) kernel.AgentID {
	switch {
	case t.Plan != "batch" && !p.Brief:
		return kernel.SessionOwner(t.Plan, t.Agent, t.Run)
	case t.Repair != "":
		return ownTurn(t.Agent, at)
	}
	return ""
}

// ownTurn owns a session that ends with its turn.
func ownTurn(a kernel.AgentID, at kernel.AttemptID) kernel.AgentID {
	return a + "@" + kernel.AgentID(at)
}
