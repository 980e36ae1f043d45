package plans

import (
	"slices"

	"witan/kernel"
)

// conversation is a discussion as its phases tell it.
type conversation struct {
	s       *kernel.State
	members []kernel.AgentID
	owner   kernel.AgentID
	writer  kernel.AgentID          // the one frozen writer; "" when nothing is written
	paused  map[kernel.AgentID]bool // whose turn failed for good
}

func talk(s *kernel.State) *conversation {
	t := &conversation{s: s, members: s.Created.Agents, owner: s.Created.Agents[0], paused: map[kernel.AgentID]bool{}}
	for _, sl := range slots(s.Created) {
		if sl.Write {
			t.writer = sl.Agent
		}
	}
	for _, ph := range s.Phases {
		for _, sl := range ph.Slots {
			at := sl.Last()
			if ph.Finished && (at == nil || at.Finished == nil || at.Finished.Status == "failed" || at.Finished.Status == "stalled") {
				t.paused[sl.Agent] = true
			}
		}
	}
	return t
}

func (t *conversation) seats(agents ...kernel.AgentID) []kernel.SlotBody {
	out := make([]kernel.SlotBody, len(agents))
	for i, a := range agents {
		out[i] = kernel.SlotBody{Agent: a, Role: "member", Write: a == t.writer}
		if a == t.owner {
			out[i].Role = "owner"
		}
	}
	return out
}

// turn is one member's place in a round of a sequential discussion.
func (t *conversation) turn(round, place int, agent kernel.AgentID) kernel.Step {
	return kernel.Step{Phase: &kernel.PhaseStartedBody{Phase: PhaseDiscuss, Round: round, First: place, Slots: t.seats(agent)}}
}

// decision is the owner's word in a phase; nil when it gave none, or could not yet.
func (t *conversation) decision(ph *kernel.Phase) (*decision, *kernel.Attempt) {
	if t.s.Created.Form == FormAgentLed && ph.Round == 1 {
		return nil, nil
	}
	for _, sl := range ph.Slots {
		at := sl.Last()
		if sl.Agent != t.owner || at == nil || at.Finished == nil || len(at.Said) == 0 {
			continue
		}
		if st := at.Finished.Status; st == "completed" || st == "partial" {
			return receipt(at).Decision, at
		}
	}
	return nil, nil
}

// named are the members that a decision routes to. Who is absent, paused or
// named twice is left out.
func (t *conversation) named(d *decision) []kernel.AgentID {
	if d == nil || d.Status != "continue" {
		return nil
	}
	var out []kernel.AgentID
	for _, n := range append(slices.Clone(d.Next), d.Handoff) {
		a := kernel.AgentID(n)
		if slices.Contains(t.members, a) && !t.paused[a] && !slices.Contains(out, a) && a != t.owner {
			out = append(out, a)
		}
	}
	return out
}

// over ends a discussion that goes in circles, or is at its limit.
func (t *conversation) over(round int) (kernel.Step, bool) {
	window := max(4, 2*len(t.members))
	if round >= window+2 && t.repeats(round-window) {
		return kernel.Step{Status: kernel.RunPartial, Reason: "stalled"}, true
	}
	if limit(t.s, round) {
		return kernel.Step{Status: kernel.RunRoundLimit, Reason: "round_limit"}, true
	}
	return kernel.Step{}, false
}

// repeats reports whether the latest text of every member that has spoken after
// the round is one it has said before, but for case, spaces and signs. Whoever
// was not asked any more for so long keeps no discussion going.
func (t *conversation) repeats(after int) bool {
	said, speaks := map[kernel.AgentID][]kernel.Digest{}, map[kernel.AgentID]bool{}
	for _, ph := range t.s.Phases {
		for _, sl := range ph.Slots {
			if at := sl.Last(); at != nil && !at.Invoke.End.Norm.IsZero() {
				said[sl.Agent] = append(said[sl.Agent], at.Invoke.End.Norm)
				speaks[sl.Agent] = speaks[sl.Agent] || ph.Round > after
			}
		}
	}
	spoke := 0
	for _, m := range t.members {
		if t.paused[m] || !speaks[m] {
			continue
		}
		texts := said[m]
		if n := len(texts); n > 0 {
			spoke++
			if n < 2 || !slices.Contains(texts[:n-1], texts[n-1]) {
				return false
			}
		}
	}
	return spoke > 0
}

// transcript is everything said so far, in order, the person's replies included.
func (t *conversation) transcript() []kernel.Given {
	var out []kernel.Given
	for _, ph := range t.s.Phases {
		if !ph.Finished {
			continue
		}
		for _, sl := range ph.Slots {
			if g, ok := given(ph, sl); ok {
				out = append(out, g)
			}
			at := sl.Last()
			if at == nil {
				continue
			}
			if g := t.s.Gate(kernel.NewGateID(t.s.Run, kernel.GateInput, string(at.ID))); g != nil && g.Decision != nil && g.Decision.Text != "" {
				out = append(out, kernel.Given{Phase: ph.Name, Round: ph.Round, Said: g.Decision.Text})
			}
		}
	}
	return out
}
