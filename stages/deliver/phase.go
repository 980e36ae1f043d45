package deliver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"witan/kernel"
)

// givenChars bounds what others said in this run; the latest of it is kept.
const givenChars = 48_000

// given adds what others said in this run, as far as the phase allows.
func (w *writer) given(ctx context.Context) error {
	if len(w.turn.Given) == 0 {
		return nil
	}
	texts := make([]string, len(w.turn.Given))
	for i, g := range w.turn.Given {
		said := g.Said
		if !g.Text.IsZero() {
			raw, err := w.packs.Get(ctx, g.Text)
			if err != nil {
				return err
			}
			said = string(raw)
		}
		texts[i] = w.said(g, said)
	}
	first, left := len(texts), givenChars
	for first > 0 && (first == len(texts) || utf8.RuneCountInString(texts[first-1]) <= left) {
		first--
		left -= utf8.RuneCountInString(texts[first])
	}
	w.add("\n# What was said in this run\n")
	if first > 0 {
		w.add("(%d earlier left out)\n", first)
		w.complete = false
	}
	for _, t := range texts[first:] {
		w.WriteString(t)
	}
	return nil
}

// said quotes one answer; the person's words are told apart from all others.
func (w *writer) said(g kernel.Given, text string) string {
	if g.Agent == "" {
		return w.quote(kernel.HistoryEntry{Role: "user"}, text)
	}
	who := fmt.Sprintf("%s, %s %d", g.Agent, g.Phase, g.Round)
	if g.Item != "" {
		who += ", item " + strings.Join(strings.Fields(g.Item), " ")
	}
	return w.quote(kernel.HistoryEntry{Role: "agent", Agent: kernel.AgentID(who)}, text)
}

// extra is what the prose tells of the plan's part of the turn block.
type extra struct {
	ReviewOf string `json:"review_of"`
	Plans    []any  `json:"plans"`
	Item     *struct {
		ID             string `json:"id"`
		Objective      string `json:"objective"`
		ExpectedOutput string `json:"expected_output"`
	} `json:"item"`
	Candidate string `json:"candidate"`
	Issues    []struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"issues"`
}

// phase says what this turn is for.
func (w *writer) phase() error {
	var x extra
	if len(w.turn.Extra) > 0 {
		if err := json.Unmarshal(w.turn.Extra, &x); err != nil {
			return kernel.E("deliver", kernel.Invalid, err, "the turn's extra fields are not those of its phase")
		}
	}
	text := ""
	switch w.turn.Phase {
	case "proposal":
		text = "Propose how you would do the task: what you can do, what you would work on, what you would hand over. The others propose at the same time; nothing is changed yet."
	case "challenge":
		text = fmt.Sprintf("Review the proposal of %q above: support it, or contradict it with findings that can be checked. ", x.ReviewOf) +
			"Then put forward a plan of work, or support one by its hash. Work begins only when all support the same plan. " +
			"A plan has 1 to 64 items; every member owns at least one; one finalizer owns an item with the role integrator; the others verify. " +
			"An item may name as inputs only the ids under inputs in the block below."
		if len(x.Plans) > 0 {
			text += fmt.Sprintf(" %d plans are put forward so far; they are under plans in the block below.", len(x.Plans))
		}
	case "work":
		text = "Do your item of the agreed plan, and no other."
	case "synthesis":
		text = "All work is done. Bring it together into the result of the task."
	case "verification":
		text = "Check the candidate against the task. The folder you are in holds it. Support it only if you find nothing that must be changed; otherwise contradict it, with findings."
	case "discuss":
		text = discussion(w.turn)
	}
	if text == "" {
		return nil
	}
	w.add("\n# This turn: %s, round %d\n%s\n", w.turn.Phase, w.turn.Round, text)
	if x.Item != nil {
		w.add("Item %s: %s\nExpected: %s\n", line(x.Item.ID), line(x.Item.Objective), line(x.Item.ExpectedOutput))
	}
	if len(x.Issues) > 0 {
		w.add("Open issues:\n")
		for _, i := range x.Issues {
			w.add("- %s: %s\n", i.ID, line(i.Summary))
		}
	}
	return nil
}

func discussion(t kernel.Turn) string {
	s := "You discuss the task with the others. Say what is new; do not repeat what was said."
	if t.Repair == "decision" {
		s += " You own the discussion: close with a decision. completed needs at least one deliverable; continue may name the members whose turn is next; " +
			"blocked when nobody here can go on; needs-human when only the person can answer."
	}
	return s
}

// line keeps words of an agent on one line.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }

// keys says what else a receipt of the turn holds.
func keys(t kernel.Turn) string {
	const (
		claims   = "claims: a list of {text, command, exit, path, hash}"
		findings = "findings: a list of {severity (high, medium, low, info), stance (support, contradict), title, detail, path, line}"
		item     = "{id, owner, role (worker, integrator, verifier), objective, expected_output, inputs, depends_on}"
	)
	switch t.Phase {
	case "respond":
		return " and, if you claim something that can be checked, " + claims
	case "discuss":
		if t.Repair == "decision" {
			return ", decision: {status (completed, continue, blocked, needs-human), reason, deliverables, handoff, next}"
		}
	case "proposal":
		return ", capabilities, intended_work, deliverables (lists of at least one sentence), depends_on (a list)"
	case "challenge":
		return ", verdict (support or contradict, of the proposal under review), " + findings + ", and either plan: {items, finalizer}, an item being " + item + ", or support_plan: a hash"
	case "work":
		return ", item (its id), artifacts (paths of files you hand over), " + claims + ", findings (optional)"
	case "synthesis":
		return ", resolved (ids of the open issues that are dealt with), artifacts (paths), " + claims
	case "verification":
		return ", candidate (the hash in the block below), verdict (support or contradict), " + findings + ", " + claims
	}
	return ""
}
