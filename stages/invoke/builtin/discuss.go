package builtin

import (
	"fmt"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// discuss says what the agent found. The owner calls that completed once the
// others have spoken; nobody here has a reason to go on for ever.
func (m *member) discuss(t task) (answer, error) {
	rep, found, err := m.analyse(t)
	if err != nil {
		return answer{}, err
	}
	owner := t.b.Role == "owner" || len(t.b.Members) > 0 && t.b.Members[0] == m.Info().ID
	if !owner || t.b.Round < 2 {
		return answer{text: rep.Text, summary: rep.Summary, keys: map[string]any{
			"decision": map[string]any{"status": "continue", "reason": clean(rep.Summary)}}}, nil
	}
	results := []string{rep.Summary}
	for _, o := range found {
		results = append(results, at(o))
	}
	text := rep.Text
	if others := m.others(t, ""); len(others) > 0 {
		text += "\n**What the others say.**\n" + bullets(others)
		results = append(others, results...)
	}
	return answer{text: text, summary: rep.Summary, keys: map[string]any{"decision": map[string]any{
		"status": "completed", "reason": "Every member has said what it found.", "deliverables": list(results)}}}, nil
}

// others is a line for each other member: the beginning of the last thing it
// said in a phase, "" being any.
func (m *member) others(t task, phase string) []string {
	last := map[kernel.AgentID]string{}
	var order []kernel.AgentID
	for _, w := range t.words {
		if w.agent == m.Info().ID || phase != "" && w.phase != phase {
			continue
		}
		if _, ok := last[w.agent]; !ok {
			order = append(order, w.agent)
		}
		last[w.agent] = w.text
	}
	var out []string
	for _, id := range order {
		out = append(out, fmt.Sprintf("%s: %s", work.Show(string(id)), beginning(last[id])))
	}
	return out
}

// beginning is the first line of a text that says something, without its
// emphasis.
func beginning(text string) string {
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(strings.ReplaceAll(strings.TrimLeft(l, "# "), "**", "")); l != "" {
			return work.Clip(work.Show(l), 300)
		}
	}
	return "no words"
}

// maxBullets bounds a list that a person reads.
const maxBullets = 200

func bullets(lines []string) string {
	var b strings.Builder
	for _, l := range lines[:min(len(lines), maxBullets)] {
		fmt.Fprintf(&b, "- %s\n", l)
	}
	if n := len(lines) - maxBullets; n > 0 {
		fmt.Fprintf(&b, "- and %d more\n", n)
	}
	return b.String()
}
