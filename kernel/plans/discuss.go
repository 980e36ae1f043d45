package plans

import (
	"encoding/json"

	"witan/kernel"
)

// PhaseDiscuss is the phase of every turn of a discussion.
const PhaseDiscuss = "discuss"

// Forms of a discussion.
const (
	FormSequential = "sequential" // each member once a round, in member order
	FormAgentLed   = "agent-led"  // all at once, then whom the owner names
)

// MaxRounds bounds the rounds of a discussion or council; 0 is unlimited, after
// confirmation.
const MaxRounds = 10

// Discuss is the plan in which members talk until the owner, the first target,
// decides (SPEC P3).
type Discuss struct{}

var _ kernel.Guide = Discuss{}

func (Discuss) Name() string { return "discuss" }

func (Discuss) Check(c kernel.CreatedBody) error {
	if n := len(c.Agents); n < 2 || n > MaxAgents {
		return kernel.E("plans.Discuss", kernel.Invalid, nil, "plan discuss takes 2 to %d agents, not %d", MaxAgents, n).
			WithNext("name them with --agents a,b")
	}
	if c.Form != FormSequential && c.Form != FormAgentLed {
		return kernel.E("plans.Discuss", kernel.Invalid, nil, "form %q is unknown", c.Form).WithNext("use --form sequential or --form agent-led")
	}
	return checkRounds("discuss", c.MaxRounds)
}

func checkRounds(plan string, n int) error {
	if n < 0 || n > MaxRounds {
		return kernel.E("plans.Check", kernel.Invalid, nil, "max_rounds %d of plan %s is not 1 to %d", n, plan, MaxRounds).
			WithNext("use 1 to %d, or 0 for no limit", MaxRounds)
	}
	return nil
}

// confirmUnlimited asks before a run without a round limit; ok is false while or
// unless it may not begin.
func confirmUnlimited(s *kernel.State) (kernel.Step, bool) {
	if s.Created.MaxRounds > 0 {
		return kernel.Step{}, true
	}
	b := kernel.GateBody{Gate: kernel.NewGateID(s.Run, kernel.GateDecision, "unlimited"), Kind: kernel.GateDecision,
		Summary: "This run has no round limit: it goes on until it is decided, stopped or out of budget", Options: kernel.ContinueOrStop}
	g := s.Gate(b.Gate)
	switch {
	case g == nil:
		return kernel.Step{Gate: &b}, false
	case g.Decision == nil:
		return kernel.Step{Wait: true}, false
	case g.Decision.Option != "continue":
		return kernel.Step{Status: kernel.RunStopped, Reason: "stopped_by_person"}, false
	}
	return kernel.Step{}, true
}

// Next implements kernel.Plan.
func (d Discuss) Next(s *kernel.State) kernel.Step {
	if step, ok := confirmUnlimited(s); !ok {
		return step
	}
	t := talk(s)
	ph := s.Phase()
	if ph == nil {
		return d.first(s, t)
	}
	if step, ok := d.decided(s, t, ph); ok {
		return step
	}
	if s.Created.Form == FormSequential {
		return d.sequential(s, t, ph)
	}
	return d.led(s, t, ph)
}

func (d Discuss) first(s *kernel.State, t *conversation) kernel.Step {
	if s.Created.Form == FormSequential {
		return t.turn(1, 0, t.members[0])
	}
	return phase(s, PhaseDiscuss, 1, slots(reading(s.Created))) // read-only proposals
}

// decided is what ends the discussion, or parks it, after a phase.
func (d Discuss) decided(s *kernel.State, t *conversation, ph *kernel.Phase) (kernel.Step, bool) {
	if t.paused[t.owner] {
		return kernel.Step{Status: kernel.RunPartial, Reason: "owner_lost"}, true
	}
	dec, at := t.decision(ph)
	switch {
	case dec == nil:
	case dec.Status == "completed" && at.Finished.Status == "partial": // its checks did not pass
		return kernel.Step{Status: kernel.RunPartial, Reason: at.Finished.Reason}, true
	case dec.Status == "completed" && len(t.paused) > 0:
		return kernel.Step{Status: kernel.RunPartial, Reason: "some_agents_failed"}, true
	case dec.Status == "completed":
		return kernel.Step{Status: kernel.RunCompleted}, true
	case dec.Status == "blocked":
		return kernel.Step{Status: kernel.RunBlocked, Reason: "owner_blocked"}, true
	case dec.Status == "needs-human":
		b := inputGate(s, at, dec)
		g := s.Gate(b.Gate)
		switch {
		case g == nil:
			return kernel.Step{Gate: &b}, true
		case g.Decision == nil:
			return kernel.Step{Wait: true}, true
		case g.Decision.Option != "reply":
			return kernel.Step{Status: kernel.RunStopped, Reason: "stopped_by_person"}, true
		}
	}
	return kernel.Step{}, false
}

func inputGate(s *kernel.State, at *kernel.Attempt, dec *decision) kernel.GateBody {
	why := dec.Reason
	if why == "" {
		why = "The discussion needs your word"
	}
	return kernel.GateBody{Gate: kernel.NewGateID(s.Run, kernel.GateInput, string(at.ID)), Kind: kernel.GateInput, Summary: why, Options: kernel.ReplyOrStop}
}

// sequential gives the next member of the round its turn, or begins the next round.
func (d Discuss) sequential(s *kernel.State, t *conversation, ph *kernel.Phase) kernel.Step {
	for i := ph.First + 1; i < len(t.members); i++ {
		if !t.paused[t.members[i]] {
			return t.turn(ph.Round, i, t.members[i])
		}
	}
	if step, over := t.over(ph.Round); over {
		return step
	}
	for i, m := range t.members {
		if !t.paused[m] {
			return t.turn(ph.Round+1, i, m)
		}
	}
	return kernel.Step{Status: kernel.RunFailed, Reason: "no_agent_answered"}
}

// led gives the owner its turn after the others', and the others theirs as the
// owner's decision names them.
func (d Discuss) led(s *kernel.State, t *conversation, ph *kernel.Phase) kernel.Step {
	if step, over := t.over(ph.Round); over {
		return step
	}
	if ph.Round == 1 || ph.Slots[0].Agent != t.owner || len(ph.Slots) > 1 {
		return phase(s, PhaseDiscuss, ph.Round+1, t.seats(t.owner))
	}
	dec, _ := t.decision(ph)
	if next := t.named(dec); len(next) > 0 {
		return phase(s, PhaseDiscuss, ph.Round+1, t.seats(next...))
	}
	return phase(s, PhaseDiscuss, ph.Round+1, t.seats(t.owner))
}

// Brief implements kernel.Guide: a turn is told everything said so far.
func (Discuss) Brief(s *kernel.State, ph *kernel.Phase, sl *kernel.Slot) (json.RawMessage, []kernel.Given) {
	return nil, talk(s).transcript()
}

// Members implements kernel.Guide.
func (Discuss) Members(s *kernel.State) []kernel.AgentID { return s.Created.Agents }

// Verifies implements kernel.Guide: checks are about what the owner calls completed.
func (Discuss) Verifies(s *kernel.State, ph *kernel.Phase, sl *kernel.Slot, at *kernel.Attempt) bool {
	dec := receipt(at).Decision
	return sl.Agent == s.Created.Agents[0] && dec != nil && dec.Status == "completed" && !(s.Created.Form == FormAgentLed && ph.Round == 1)
}

// Repair implements kernel.Guide: an owner that forgot its decision is asked once.
func (Discuss) Repair(s *kernel.State, ph *kernel.Phase, sl *kernel.Slot) string {
	if sl.Agent == s.Created.Agents[0] && !(s.Created.Form == FormAgentLed && ph.Round == 1) {
		return "decision"
	}
	return ""
}
