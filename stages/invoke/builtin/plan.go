package builtin

import (
	"encoding/json"
	"fmt"
	"slices"

	"witan/kernel"
	"witan/kernel/plans"
	"witan/kernel/receipts"
	"witan/stages/invoke/builtin/inspector"
)

// ours are the built-in agents by id, in the order in which they are preferred
// to integrate.
var ours = []kernel.AgentID{inspector.ID, "runner", "scout"}

// finalizer is who integrates if it is one of us.
func finalizer(members []kernel.AgentID) kernel.AgentID {
	for _, id := range ours {
		if slices.Contains(members, id) {
			return id
		}
	}
	return ""
}

// tasks are what each of us does in a plan, and what comes of it.
var tasks = map[kernel.AgentID][2]string{
	inspector.ID: {"Check every file: merge conflicts, secrets, links, data files, and what the tool chains report", "Findings with file and line, and their evidence"},
	"runner":     {"Find the project's own tests and run them in a copy", "How each suite ended, failing tests with file and line, the recorded run"},
	"scout":      {"Map the workspace: languages, entry points, dependencies, recent change", "A map of the workspace, with the list of its files as evidence"},
}

// derive makes the plan that follows from a turn block alone, so that all of us
// put forward the same one: every member but the finalizer works and verifies.
func derive(b block) plans.WorkPlan {
	members := slices.Sorted(slices.Values(b.Members))
	members = slices.Compact(members)
	inputs := append([]string{}, b.Inputs...)
	slices.Sort(inputs)
	inputs = inputs[:min(len(inputs), receipts.MaxList)]
	p := plans.WorkPlan{Finalizer: finalizer(members)}
	worked := []string{}
	n := 0
	for _, m := range members {
		if m == p.Finalizer {
			continue
		}
		n++
		task, ok := tasks[m]
		if !ok {
			task = [2]string{"Do the part of the task that you proposed", "What you proposed to hand over, with the evidence for it"}
		}
		id := fmt.Sprintf("W%02d", n)
		worked = append(worked, id)
		p.Items = append(p.Items,
			plans.Item{ID: id, Owner: m, Role: "worker", Objective: task[0], ExpectedOutput: task[1], Inputs: inputs, DependsOn: []string{}},
			plans.Item{ID: fmt.Sprintf("X%02d", n), Owner: m, Role: "verifier", Objective: "Check the candidate", ExpectedOutput: "A verdict, with findings if it contradicts",
				Inputs: []string{}, DependsOn: []string{"S"}})
	}
	p.Items = append(p.Items, plans.Item{ID: "S", Owner: p.Finalizer, Role: "integrator", Objective: "Bring the results together and mend what needs no judgement",
		ExpectedOutput: "The result of the task, every change in it listed", Inputs: []string{}, DependsOn: worked[:min(len(worked), receipts.MaxList)]})
	return p
}

// stance is how a challenge answers the question for a plan: the key of the
// receipt and its value. In the first round all put forward what they derive;
// in the second each supports that if it was taken, else the first by hash; and
// then all go through the plans by hash, so that they meet whoever holds on to
// one.
func stance(b block) (key string, value any) {
	own := derive(b)
	fresh := map[string]any{"items": own.Items, "finalizer": own.Finalizer}
	valid := validPlans(b)
	if b.Round < 2 || len(valid) == 0 {
		return "plan", fresh
	}
	if b.Round == 2 {
		if p, err := own.Normalise(snapshotOf(b), b.Members, b.Inputs); err == nil && slices.Contains(valid, p.Hash) {
			return "support_plan", p.Hash.String()
		}
		return "support_plan", valid[0].String()
	}
	return "support_plan", valid[(b.Round-3)%len(valid)].String()
}

// validPlans are the hashes of the plans that keep every rule and have the hash
// they are listed under, in order.
func validPlans(b block) []kernel.Digest {
	var out []kernel.Digest
	for _, raw := range b.Plans {
		var p plans.WorkPlan
		if json.Unmarshal(raw, &p) != nil {
			continue
		}
		n, err := p.Normalise(snapshotOf(b), b.Members, b.Inputs)
		if err == nil && n.Hash == p.Hash {
			out = append(out, n.Hash)
		}
	}
	slices.SortFunc(out, func(x, y kernel.Digest) int { return slices.Compare(x[:], y[:]) })
	return out
}

func snapshotOf(b block) kernel.Digest {
	d, _ := kernel.ParseDigest(b.Snapshot) // zero: no plan has the right hash then
	return d
}
