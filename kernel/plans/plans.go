// Package plans holds the plans a submission can be worked on with. Each is a
// pure decider over the folded run: it names the next phase or the end and does
// nothing else. Adding a plan touches its own file and the list in cmd.
package plans

import (
	"fmt"
	"slices"

	"witan/kernel"
)

// PhaseRespond is the one phase of direct and batch.
const PhaseRespond = "respond"

// MaxAgents bounds the members of one run.
const MaxAgents = 16

// Direct is the plan with one agent.
type Direct struct{}

func (Direct) Name() string { return "direct" }

func (Direct) Check(c kernel.CreatedBody) error {
	if len(c.Agents) != 1 {
		return kernel.E("plans.Direct", kernel.Invalid, nil, "plan direct takes one agent, not %d", len(c.Agents)).
			WithNext("name one with --agents, or use --plan batch")
	}
	return nil
}

func (Direct) Next(s *kernel.State) kernel.Step { return respondOnce(s) }

// Batch is the plan in which all agents answer at once from one snapshot.
type Batch struct{}

func (Batch) Name() string { return "batch" }

func (Batch) Check(c kernel.CreatedBody) error {
	if n := len(c.Agents); n < 1 || n > MaxAgents {
		return kernel.E("plans.Batch", kernel.Invalid, nil, "plan batch takes 1 to %d agents, not %d", MaxAgents, n).
			WithNext("name them with --agents a,b")
	}
	return nil
}

func (Batch) Next(s *kernel.State) kernel.Step { return respondOnce(s) }

// respondOnce is one phase in which every agent answers, and then the end.
func respondOnce(s *kernel.State) kernel.Step {
	ph := s.Phase()
	if ph == nil {
		return kernel.Step{Phase: &kernel.PhaseStartedBody{Phase: PhaseRespond, Round: 1, Slots: slots(s.Created)}}
	}
	switch ph.Status {
	case "completed":
		return kernel.Step{Status: kernel.RunCompleted}
	case "partial":
		return kernel.Step{Status: kernel.RunPartial, Reason: reason(ph, "some_agents_failed")}
	case "stopped":
		return kernel.Step{Status: kernel.RunStopped, Reason: "stopped_by_person"}
	}
	return kernel.Step{Status: kernel.RunFailed, Reason: reason(ph, "no_agent_answered")}
}

// slots gives every agent its place; with writing on, the first agent able to
// write is the one writer.
func slots(c kernel.CreatedBody) []kernel.SlotBody {
	out := make([]kernel.SlotBody, len(c.Agents))
	writer := c.Permission == "read-only"
	for i, a := range c.Agents {
		out[i] = kernel.SlotBody{Agent: a, Role: "member"}
		if !writer && slices.Contains(c.Writable, a) {
			out[i].Write, writer = true, true
		}
	}
	return out
}

// reason is the one reason all failed slots share, or otherwise.
func reason(ph *kernel.Phase, otherwise string) string {
	var found string
	for _, sl := range ph.Slots {
		a := sl.Last()
		if a == nil || a.Finished == nil {
			continue
		}
		r := a.Finished.Reason
		if a.Finished.Status == "completed" && a.Commit.Failed {
			r = a.Commit.End.Reason
		}
		if r == "" {
			continue
		}
		if found != "" && found != r {
			return otherwise
		}
		found = r
	}
	if found == "" {
		return otherwise
	}
	return found
}

// List is a set of plans by name.
type List []kernel.Plan

// Find returns the plan called name, or an Invalid error that names the others.
func (l List) Find(name string) (kernel.Plan, error) {
	var names []string
	for _, p := range l {
		if p.Name() == name {
			return p, nil
		}
		names = append(names, p.Name())
	}
	return nil, kernel.E("plans.Find", kernel.Invalid, nil, "plan %q is unknown", name).
		WithNext(fmt.Sprintf("use one of %v", names))
}
