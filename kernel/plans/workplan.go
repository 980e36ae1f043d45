package plans

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"witan/kernel"
)

// Roles of work items.
const (
	roleWorker     = "worker"
	roleIntegrator = "integrator"
	roleVerifier   = "verifier"
)

// Item is one item of work of a council's plan.
type Item struct {
	ID             string         `json:"id"`
	Owner          kernel.AgentID `json:"owner"`
	Role           string         `json:"role"`
	Objective      string         `json:"objective"`
	ExpectedOutput string         `json:"expected_output"`
	Inputs         []string       `json:"inputs"`
	DependsOn      []string       `json:"depends_on"`
}

// WorkPlan is who does what in a council. Normalised, its hash names it.
type WorkPlan struct {
	Hash      kernel.Digest  `json:"hash"`
	Items     []Item         `json:"items"`
	Finalizer kernel.AgentID `json:"finalizer"`
}

// maxItems of a plan.
const maxItems = 64

// Normalise sorts, removes what is double and inputs that are not known, checks
// the plan and names it. The hash covers the snapshot, so that the same plan on
// another snapshot is another one. The error says which rule is broken.
func (p WorkPlan) Normalise(snapshot kernel.Digest, members []kernel.AgentID, inputs []string) (WorkPlan, error) {
	if n := len(p.Items); n < 1 || n > maxItems {
		return p, fmt.Errorf("%d items, not 1 to %d", n, maxItems)
	}
	items := make([]Item, len(p.Items))
	for i, it := range p.Items {
		it.Inputs = slices.DeleteFunc(unique(it.Inputs), func(in string) bool { return !slices.Contains(inputs, in) })
		it.DependsOn = unique(it.DependsOn)
		items[i] = it
	}
	slices.SortStableFunc(items, func(a, b Item) int { return strings.Compare(a.ID, b.ID) })
	p.Items = items
	if err := p.check(members); err != nil {
		return p, err
	}
	b, err := kernel.Canonical(struct {
		Version   int            `json:"version"`
		Snapshot  kernel.Digest  `json:"snapshot"`
		Items     []Item         `json:"items"`
		Finalizer kernel.AgentID `json:"finalizer"`
	}{1, snapshot, p.Items, p.Finalizer})
	p.Hash = kernel.SumDomain("plan/1", b)
	return p, err
}

func unique(in []string) []string {
	out := append([]string{}, in...)
	slices.Sort(out)
	return slices.Compact(out)
}

func (p WorkPlan) check(members []kernel.AgentID) error {
	byID := map[string]Item{}
	owns := map[kernel.AgentID]bool{}
	integrators := 0
	for _, it := range p.Items {
		if it.ID == "" {
			return fmt.Errorf("an item has no id")
		}
		if _, double := byID[it.ID]; double {
			return fmt.Errorf("item %q is there twice", it.ID)
		}
		if !slices.Contains(members, it.Owner) {
			return fmt.Errorf("item %q is owned by %q, who is no member", it.ID, it.Owner)
		}
		if it.Role == roleIntegrator {
			if it.Owner != p.Finalizer {
				return fmt.Errorf("item %q integrates, and %q is not the finalizer", it.ID, it.Owner)
			}
			integrators++
		}
		byID[it.ID], owns[it.Owner] = it, true
	}
	switch {
	case !slices.Contains(members, p.Finalizer):
		return fmt.Errorf("the finalizer %q is no member", p.Finalizer)
	case integrators == 0:
		return fmt.Errorf("the finalizer %q has no integrator item", p.Finalizer)
	}
	for _, m := range members {
		if !owns[m] {
			return fmt.Errorf("%q has no item", m)
		}
	}
	return acyclic(p.Items, byID)
}

// acyclic checks that dependencies exist, have no cycle, and that no worker
// waits for what comes after all work.
func acyclic(items []Item, byID map[string]Item) error {
	const (
		open = iota + 1
		done
	)
	state := map[string]int{}
	var visit func(it Item) error
	visit = func(it Item) error {
		state[it.ID] = open
		for _, id := range it.DependsOn {
			dep, ok := byID[id]
			switch {
			case !ok:
				return fmt.Errorf("item %q depends on %q, which is not there", it.ID, id)
			case it.Role == roleWorker && dep.Role != roleWorker:
				return fmt.Errorf("work item %q depends on %q, which comes after all work", it.ID, id)
			case state[id] == open:
				return fmt.Errorf("items %q and %q depend on each other", it.ID, id)
			case state[id] == done:
				continue
			}
			if err := visit(dep); err != nil {
				return err
			}
		}
		state[it.ID] = done
		return nil
	}
	for _, it := range items {
		if state[it.ID] == 0 {
			if err := visit(it); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifiers are all members but the finalizer.
func (p WorkPlan) verifiers(members []kernel.AgentID) []kernel.AgentID {
	return slices.DeleteFunc(slices.Clone(members), func(a kernel.AgentID) bool { return a == p.Finalizer })
}

// wave are the worker items that can be worked on now: one an owner, those whose
// dependencies are done.
func (p WorkPlan) wave(done map[string]bool) []Item {
	var out []Item
	busy := map[kernel.AgentID]bool{}
	for _, it := range p.Items {
		if it.Role != roleWorker || done[it.ID] || busy[it.Owner] {
			continue
		}
		if slices.ContainsFunc(it.DependsOn, func(id string) bool { return !done[id] }) {
			continue
		}
		busy[it.Owner] = true
		out = append(out, it)
	}
	return out
}

// agreedPlan is the plan that the run works on.
func agreedPlan(s *kernel.State) WorkPlan {
	return kernel.Derived(s, "plan", func() (p WorkPlan) {
		p.Hash, p.Finalizer = s.Agreed.PlanHash, s.Agreed.Finalizer
		_ = json.Unmarshal(s.Agreed.Items, &p.Items) // written by this package
		return p
	})
}
