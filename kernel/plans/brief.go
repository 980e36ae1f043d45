package plans

import (
	"encoding/json"
	"slices"

	"witan/kernel"
)

// block is what a council adds to the turn block; absent fields are left out.
type block struct {
	ReviewOf  kernel.AgentID  `json:"review_of,omitempty"`
	Plans     json.RawMessage `json:"plans,omitempty"`
	Inputs    []string        `json:"inputs,omitempty"`
	Item      *Item           `json:"item,omitempty"`
	Candidate *kernel.Digest  `json:"candidate,omitempty"`
	Issues    []issue         `json:"issues,omitempty"`
}

// Brief implements kernel.Guide: what each phase lets a member see.
func (Council) Brief(s *kernel.State, ph *kernel.Phase, sl *kernel.Slot) (json.RawMessage, []kernel.Given) {
	var b block
	var told []kernel.Given
	switch ph.Name {
	case PhaseProposal:
		return nil, nil
	case PhaseChallenge:
		who, g, ok := reviewOf(s, sl.Agent, ph.Round)
		if ok {
			told = append(told, g)
		}
		b.ReviewOf, b.Inputs = who, inputs(s)
		if ph.Round > 1 {
			b.Plans = kernel.Derived(s, "plans", func() json.RawMessage { return plansRaw(view(s)) })
		}
	case PhaseWork:
		it := item(s, sl.Item)
		b.Item = &it
		told = append(proposalsOf(s, it.Inputs), results(s, it.DependsOn)...)
	case PhaseSynthesis:
		b.Issues = issues(s)
		told = append(results(s, nil), last(s, PhaseVerification)...)
		if it, ok := integrator(s); ok {
			b.Item = &it
		}
	case PhaseVerification:
		d := candidate(s)
		b.Candidate, b.Issues = &d, issues(s)
		told = last(s, PhaseSynthesis)
	}
	return raw(b), told
}

// plansRaw is the list as the block has it; nil when nobody put one forward.
func plansRaw(v agreement) json.RawMessage {
	if len(v.plans) == 0 {
		return nil
	}
	return raw(v.list())
}

// candidate names what is verified: the content that the writer left, or the
// answer where nothing is written.
func candidate(s *kernel.State) kernel.Digest {
	for _, p := range slices.Backward(s.Phases) {
		if p.Name != PhaseSynthesis {
			continue
		}
		at := p.Slots[0].Last()
		if c := at.Invoke.End.Candidate; !c.IsZero() {
			return c
		}
		return at.Invoke.End.Out
	}
	return kernel.Digest{}
}

func item(s *kernel.State, id string) Item {
	for _, it := range agreedPlan(s).Items {
		if it.ID == id {
			return it
		}
	}
	return Item{}
}

func integrator(s *kernel.State) (Item, bool) {
	for _, it := range agreedPlan(s).Items {
		if it.Role == roleIntegrator {
			return it, true
		}
	}
	return Item{}, false
}

// results are the answers of work items; of all with ids nil.
func results(s *kernel.State, ids []string) []kernel.Given {
	var out []kernel.Given
	for _, ph := range s.Phases {
		if ph.Name != PhaseWork {
			continue
		}
		for _, sl := range ph.Slots {
			if g, ok := given(ph, sl); ok && (ids == nil || slices.Contains(ids, sl.Item)) {
				out = append(out, g)
			}
		}
	}
	return out
}

// proposalsOf are the proposals that an item names as inputs.
func proposalsOf(s *kernel.State, ids []string) []kernel.Given {
	var out []kernel.Given
	ph := s.Phases[0]
	for _, sl := range ph.Slots {
		if g, ok := given(ph, sl); ok && sl.Message != "" && slices.Contains(ids, string(sl.Message)) {
			out = append(out, g)
		}
	}
	return out
}

// last are the answers of the latest phase of a name.
func last(s *kernel.State, name string) []kernel.Given {
	var out []kernel.Given
	for _, ph := range slices.Backward(s.Phases) {
		if ph.Name != name {
			continue
		}
		for _, sl := range ph.Slots {
			if g, ok := given(ph, sl); ok {
				out = append(out, g)
			}
		}
		return out
	}
	return nil
}
