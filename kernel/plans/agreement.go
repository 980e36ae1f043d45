package plans

import (
	"cmp"
	"encoding/json"
	"slices"

	"witan/kernel"
)

// agreement is who supports which plan, as the challenges so far tell it.
type agreement struct {
	members []kernel.AgentID
	plans   map[kernel.Digest]WorkPlan
	support map[kernel.AgentID]kernel.Digest // the latest word of each member
}

// view folds the challenges that are over. A plan that breaks a rule is no plan.
func view(s *kernel.State) agreement {
	return kernel.Derived(s, "agreement", func() agreement { return agree(s) })
}

func agree(s *kernel.State) agreement {
	v := agreement{members: survivors(s), plans: map[kernel.Digest]WorkPlan{}, support: map[kernel.AgentID]kernel.Digest{}}
	for _, ph := range s.Phases {
		if ph.Name != PhaseChallenge || !ph.Finished {
			continue
		}
		for _, sl := range ph.Slots {
			if p := receipt(completed(sl)).plan(s); p != nil {
				v.plans[p.Hash], v.support[sl.Agent] = *p, p.Hash
			}
		}
		for _, sl := range ph.Slots {
			r := receipt(completed(sl))
			if h, err := kernel.ParseDigest(r.SupportPlan); err == nil && r.Plan == nil {
				if _, known := v.plans[h]; known {
					v.support[sl.Agent] = h
				}
			}
		}
	}
	return v
}

// agreed is the plan that every member supports.
func (v agreement) agreed() (WorkPlan, bool) {
	first, ok := v.support[v.members[0]]
	if !ok {
		return WorkPlan{}, false
	}
	for _, m := range v.members {
		if h, ok := v.support[m]; !ok || h != first {
			return WorkPlan{}, false
		}
	}
	return v.plans[first], true
}

// list is all plans, ordered by hash.
func (v agreement) list() []WorkPlan {
	out := []WorkPlan{}
	for _, p := range v.plans {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b WorkPlan) int { return cmp.Compare(a.Hash.String(), b.Hash.String()) })
	return out
}

// inputs are the ids that a plan may name: the person's message, earlier ones
// are part of it, and the proposals.
func inputs(s *kernel.State) []string {
	out := []string{string(s.Created.Message)}
	for _, sl := range s.Phases[0].Slots {
		if sl.Message != "" {
			out = append(out, string(sl.Message))
		}
	}
	return append(out, s.Created.Attachments...)
}

// reviewOf is whose proposal a member reviews: another one's every round, by an
// order that the proposals' hashes give.
func reviewOf(s *kernel.State, agent kernel.AgentID, round int) (kernel.AgentID, kernel.Given, bool) {
	type seat struct {
		key kernel.Digest
		sl  *kernel.Slot
	}
	ph := s.Phases[0]
	var all []seat
	for _, sl := range ph.Slots {
		if at := completed(sl); at != nil {
			all = append(all, seat{kernel.SumDomain("seat/1", append(at.Invoke.End.Text[:], sl.Agent...)), sl})
		}
	}
	slices.SortFunc(all, func(a, b seat) int { return cmp.Compare(a.key.String(), b.key.String()) })
	me := slices.IndexFunc(all, func(x seat) bool { return x.sl.Agent == agent })
	if me < 0 || len(all) < 2 {
		return "", kernel.Given{}, false
	}
	other := all[(me+1+(round-1)%(len(all)-1))%len(all)].sl
	g, ok := given(ph, other)
	return other.Agent, g, ok
}

// Remark says what of a challenge could not be used.
func (Council) Remark(s *kernel.State, at kernel.AttemptID, receipt json.RawMessage) (n kernel.NoticeBody, ok bool) {
	var r said
	a := s.Attempt(at)
	if a == nil || a.Body.Phase != PhaseChallenge || json.Unmarshal(receipt, &r) != nil {
		return n, false
	}
	if r.Plan != nil {
		if _, err := r.Plan.Normalise(s.Snapshot, survivors(s), inputs(s)); err != nil {
			return kernel.NoticeBody{Code: "plan_invalid", Text: "the plan of " + string(a.Body.Agent) + " is no plan: " + err.Error()}, true
		}
	}
	return n, false
}
