package plans

import (
	"encoding/json"
	"slices"

	"witan/kernel"
)

// Phases of a council.
const (
	PhaseProposal     = "proposal"
	PhaseChallenge    = "challenge"
	PhaseWork         = "work"
	PhaseSynthesis    = "synthesis"
	PhaseVerification = "verification"
)

// Council is the plan of independent proposals, challenge, one agreed plan,
// work in waves, one writer, and verification by the others (SPEC P4).
type Council struct{}

var _ kernel.Guide = Council{}

func (Council) Name() string { return "council" }

func (Council) Check(c kernel.CreatedBody) error {
	if n := len(c.Agents); n < 2 || n > MaxAgents {
		return kernel.E("plans.Council", kernel.Invalid, nil, "plan council takes 2 to %d agents, not %d", MaxAgents, n).
			WithNext("name them with --agents a,b,c")
	}
	return checkRounds("council", c.MaxRounds)
}

// Next implements kernel.Plan.
func (Council) Next(s *kernel.State) kernel.Step {
	if step, ok := confirmUnlimited(s); !ok {
		return step
	}
	ph := s.Phase()
	if ph == nil {
		return phase(s, PhaseProposal, 1, slots(reading(s.Created)))
	}
	switch ph.Name {
	case PhaseProposal:
		if len(survivors(s)) < 2 {
			return kernel.Step{Status: kernel.RunPartial, Reason: reason(ph, "too_few_members")}
		}
		return phase(s, PhaseChallenge, 1, seats(survivors(s), "member"))
	case PhaseChallenge:
		return afterChallenge(s, ph)
	case PhaseWork:
		return nextWork(s, ph)
	case PhaseSynthesis:
		return afterSynthesis(s, ph)
	}
	return afterVerification(s, ph)
}

// reading is the submission with nobody able to write: only a finalizer does.
func reading(c kernel.CreatedBody) kernel.CreatedBody {
	c.Permission = "read-only"
	return c
}

func phase(s *kernel.State, name string, round int, sl []kernel.SlotBody) kernel.Step {
	return kernel.Step{Phase: &kernel.PhaseStartedBody{Phase: name, Round: round, Slots: sl}}
}

func seats(agents []kernel.AgentID, role string) []kernel.SlotBody {
	out := make([]kernel.SlotBody, len(agents))
	for i, a := range agents {
		out[i] = kernel.SlotBody{Agent: a, Role: role}
	}
	return out
}

// survivors are the members whose proposal is there: the council from then on.
func survivors(s *kernel.State) []kernel.AgentID {
	var out []kernel.AgentID
	for _, sl := range s.Phases[0].Slots {
		if completed(sl) != nil {
			out = append(out, sl.Agent)
		}
	}
	return out
}

// afterChallenge starts the work once all support one plan, or another round.
func afterChallenge(s *kernel.State, ph *kernel.Phase) kernel.Step {
	if s.Agreed != nil {
		return nextWork(s, ph)
	}
	v := view(s)
	if p, ok := v.agreed(); ok {
		items, err := kernel.Canonical(p.Items)
		if err != nil {
			return kernel.Step{Status: kernel.RunFailed, Reason: "internal_error"}
		}
		return kernel.Step{Agreed: &kernel.AgreedBody{Finalizer: p.Finalizer, Items: items, PlanHash: p.Hash, Verifiers: p.verifiers(v.members)}}
	}
	if limit(s, ph.Round) {
		return kernel.Step{Status: kernel.RunRoundLimit, Reason: "no_agreement"}
	}
	return phase(s, PhaseChallenge, ph.Round+1, seats(v.members, "member"))
}

// limit reports whether no further round is allowed.
func limit(s *kernel.State, round int) bool {
	return s.Created.MaxRounds > 0 && round >= s.Created.MaxRounds
}

// nextWork starts the next wave, or the synthesis when all work is done.
func nextWork(s *kernel.State, ph *kernel.Phase) kernel.Step {
	p := agreedPlan(s)
	done, round := map[string]bool{}, 0
	for _, w := range s.Phases {
		if w.Name != PhaseWork {
			continue
		}
		round = w.Round
		for _, sl := range w.Slots {
			if completed(sl) == nil {
				return kernel.Step{Status: kernel.RunPartial, Reason: reason(w, "work_not_done")}
			}
			done[sl.Item] = true
		}
	}
	wave := p.wave(done)
	if len(wave) == 0 {
		return synthesis(s, p.Finalizer, 1)
	}
	sl := make([]kernel.SlotBody, len(wave))
	for i, it := range wave {
		sl[i] = kernel.SlotBody{Agent: it.Owner, Role: roleWorker, Item: it.ID}
	}
	return phase(s, PhaseWork, round+1, sl)
}

// synthesis seats the finalizer alone, who alone may write.
func synthesis(s *kernel.State, finalizer kernel.AgentID, round int) kernel.Step {
	write := s.Created.Permission != "read-only" && slices.Contains(s.Created.Writable, finalizer)
	return phase(s, PhaseSynthesis, round, []kernel.SlotBody{{Agent: finalizer, Role: roleIntegrator, Write: write}})
}

func afterSynthesis(s *kernel.State, ph *kernel.Phase) kernel.Step {
	sl := ph.Slots[0]
	at := sl.Last()
	switch {
	case s.WriterDecision(ph) == "next-writer":
		return nextWriter(s, ph)
	case s.WriterDecision(ph) == "stop":
		return kernel.Step{Status: kernel.RunStopped, Reason: "stopped_by_person"}
	case at == nil || at.Finished == nil:
		return kernel.Step{Status: kernel.RunPartial, Reason: "no_synthesis"}
	case at.Finished.Reason == kernel.ReasonVerifyFailed:
		return again(s, ph) // the checks have answered already
	case at.Finished.Status != "completed":
		return kernel.Step{Status: kernel.RunPartial, Reason: reason(ph, "no_synthesis")}
	}
	members := slices.DeleteFunc(survivors(s), func(a kernel.AgentID) bool { return a == sl.Agent })
	return phase(s, PhaseVerification, ph.Round, seats(members, roleVerifier))
}

// nextWriter lets the next member that can write integrate instead.
func nextWriter(s *kernel.State, ph *kernel.Phase) kernel.Step {
	var able []kernel.AgentID
	for _, a := range survivors(s) {
		if slices.Contains(s.Created.Writable, a) {
			able = append(able, a)
		}
	}
	i := slices.Index(able, ph.Slots[0].Agent)
	if len(able) < 2 {
		return kernel.Step{Status: kernel.RunPartial, Reason: "no_other_writer"}
	}
	return synthesis(s, able[(i+1)%len(able)], ph.Round+1)
}

// afterVerification accepts the candidate, or sends it back.
func afterVerification(s *kernel.State, ph *kernel.Phase) kernel.Step {
	for _, sl := range ph.Slots {
		if at := sl.Last(); completed(sl) == nil && (at == nil || at.Finished == nil || at.Finished.Reason != kernel.ReasonVerifyFailed) {
			return kernel.Step{Status: kernel.RunPartial, Reason: reason(ph, "not_verified")}
		}
	}
	if len(issues(s)) == 0 {
		return kernel.Step{Status: kernel.RunCompleted}
	}
	return again(s, ph)
}

// again starts another synthesis with the open issues; at the round limit the
// person decides.
func again(s *kernel.State, ph *kernel.Phase) kernel.Step {
	writer := lastWriter(s)
	if limit(s, ph.Round) {
		b := kernel.GateBody{Gate: kernel.NewGateID(s.Run, kernel.GateDecision, "not-accepted", digits(ph.Round), ph.Name), Kind: kernel.GateDecision,
			Summary: "The candidate is not accepted after the last round: " + summaries(issues(s)), Options: kernel.ContinueOrStop}
		g := s.Gate(b.Gate)
		switch {
		case g == nil:
			return kernel.Step{Gate: &b}
		case g.Decision == nil:
			return kernel.Step{Wait: true}
		case g.Decision.Option != "continue":
			return kernel.Step{Status: kernel.RunRoundLimit, Reason: "not_accepted"}
		}
	}
	return synthesis(s, writer, ph.Round+1)
}

// lastWriter is who integrated last: a replaced finalizer stays replaced.
func lastWriter(s *kernel.State) kernel.AgentID {
	for _, p := range slices.Backward(s.Phases) {
		if p.Name == PhaseSynthesis {
			return p.Slots[0].Agent
		}
	}
	return s.Agreed.Finalizer
}

// Members implements kernel.Guide: after the proposals those who made one.
func (Council) Members(s *kernel.State) []kernel.AgentID {
	if ph := s.Phase(); ph == nil || ph.Name == PhaseProposal {
		return s.Created.Agents
	}
	return survivors(s)
}

// Verifies implements kernel.Guide: checks are about a candidate.
func (Council) Verifies(s *kernel.State, ph *kernel.Phase, sl *kernel.Slot, at *kernel.Attempt) bool {
	return ph.Name == PhaseSynthesis || ph.Name == PhaseVerification
}

// Repair implements kernel.Guide: without its receipt no turn of a council counts.
func (Council) Repair(s *kernel.State, ph *kernel.Phase, sl *kernel.Slot) string {
	if s.Created.Stages["receipt"].Use == "receipt/strict" {
		return "receipt"
	}
	return ""
}

// raw encodes what becomes part of an object that is made canonical as a whole.
func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
