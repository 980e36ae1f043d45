package builtin

import (
	"fmt"
	"strings"

	"witan/stages/invoke/builtin/mend"
	"witan/stages/invoke/builtin/work"
)

// propose does the agent's own analysis and says what follows from it.
func (m *member) propose(t task) (answer, error) {
	rep, found, err := m.first(t)
	if err != nil {
		return answer{}, err
	}
	id := m.Info().ID
	can := []string{m.Info().Doc}
	do, give := []string{}, []string{tasks[id][1] + ". " + rep.Summary}
	if finalizer(t.b.Members) == id {
		can = append(can, "Mends what needs no judgement: Go files as gofmt writes them, links whose target is elsewhere, commas too many in JSON")
		changes, _, err := m.mendable(t, rep.Text)
		if err != nil {
			return answer{}, err
		}
		for _, l := range fixLines(changes) {
			do = append(do, "Mend "+l)
		}
		if len(changes) > 0 {
			give = append(give, "Corrected: "+strings.Join(pathsOf(changes), ", "))
		}
	}
	for _, o := range found {
		do = append(do, "Report "+at(o))
	}
	switch {
	case len(do) > 0:
	case m.review != m.Agent: // what it does finds no faults, so it is always to be done
		do = append(do, tasks[id][0])
	default:
		do = append(do, "Nothing to do was found: "+rep.Summary)
	}
	return answer{text: rep.Text + "\n**Proposal.**\n" + bullets(do), summary: rep.Summary, keys: map[string]any{
		"capabilities": list(can), "intended_work": list(do), "deliverables": list(give), "depends_on": []string{}}}, nil
}

// work does one item of the plan: the agent's own analysis.
func (m *member) work(t task) (answer, error) {
	rep, _, err := m.first(t)
	if err != nil {
		return answer{}, err
	}
	// Its findings are reported with their evidence; the receipt does not repeat them.
	return answer{text: rep.Text, summary: rep.Summary, keys: map[string]any{
		"item": t.b.Item.ID, "artifacts": []string{}, "claims": claimsOf(rep)}}, nil
}

// fixLines is a line for each correction, with its place.
func fixLines(changes []mend.Change) []string {
	var out []string
	for _, c := range changes {
		for _, f := range c.Fixes {
			out = append(out, fmt.Sprintf("%s: %s", work.Code(fmt.Sprintf("%s:%d", c.Path, f.Line)), f.What))
		}
	}
	return out
}

func pathsOf(changes []mend.Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Path)
	}
	return out
}
