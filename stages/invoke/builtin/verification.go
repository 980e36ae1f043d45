package builtin

import (
	"fmt"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// verify checks the candidate in the turn's folder: it is contradicted by every
// fault of high severity that was not there before. A failing test counts as
// new once anything has changed.
func (m *member) verify(t task) (answer, error) {
	h := &held{Emit: t.emit}
	rep, err := m.review.Run(t.ctx, t.turn, h)
	if err != nil {
		return answer{}, err
	}
	old, known := loadBefore(beforeFile(t, m.kind))
	same := false
	if known {
		print, err := m.print(t)
		if err != nil {
			return answer{}, err
		}
		same = print == old.Print
	}
	against := func(o kernel.Outcome) bool {
		if o.Severity != "high" || same {
			return false
		}
		return m.kind == reviewTests || !old.had(o)
	}
	var wrong []kernel.Outcome
	high := 0
	for _, o := range h.findings() {
		if o.Severity == "high" {
			high++
		}
		if against(o) {
			wrong = append(wrong, o)
		}
	}
	h.release(against) // the receipt reports the others
	verdict, text := "support", "**Verification.** Supports the candidate"
	switch {
	case len(wrong) > 0:
		verdict, text = "contradict", "**Verification.** Contradicts the candidate: "+work.Count(len(wrong), "fault", "faults")+" of high severity"
		if !known {
			text += ", counting what may have been there before the work, which is not known here"
		}
		text += ":\n"
		for _, o := range wrong {
			text += "- " + at(o) + "\n"
		}
	case high > 0:
		text += fmt.Sprintf(": %s of high severity, none of them new.\n", work.Count(high, "fault", "faults"))
	case m.kind == reviewTests && len(rep.Claims) == 0:
		text += ": no test has ended, so no test speaks against it.\n"
	default:
		text += ": nothing speaks against it.\n"
	}
	return answer{text: text + "\n" + rep.Text, summary: rep.Summary, keys: map[string]any{
		"candidate": t.b.Candidate, "verdict": verdict, "findings": findingsOf(wrong, "contradict"), "claims": claimsOf(rep)}}, nil
}
