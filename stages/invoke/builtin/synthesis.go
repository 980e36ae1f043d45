package builtin

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"witan/stages/invoke/builtin/mend"
	"witan/stages/invoke/builtin/work"
)

// synthesise mends what needs no judgement, where it may write, looks at the
// result itself and brings it together with what the others found.
func (m *member) synthesise(t task) (answer, error) {
	h := &held{Emit: t.emit}
	rep, err := m.Run(t.ctx, t.turn, h)
	if err != nil {
		return answer{}, err
	}
	said := []string{rep.Text}
	for _, w := range t.words {
		said = append(said, w.text)
	}
	changes, notes, err := m.mendable(t, said...)
	if err != nil {
		return answer{}, err
	}
	var made []mend.Change
	if t.b.Write && len(changes) > 0 {
		var more []string
		if made, more, err = m.apply(t, changes); err != nil {
			return answer{}, err
		}
		notes = append(notes, more...)
	}
	if len(made) > 0 { // what it saw is no longer what there is
		h.all = nil
		if rep, err = m.Run(t.ctx, t.turn, h); err != nil {
			return answer{}, err
		}
	}
	left := len(h.findings())
	h.release(none)
	text, summary := result(t, rep, made, changes, left)
	if others := m.others(t, ""); len(others) > 0 {
		text += "\n**What the others found.**\n" + bullets(others)
	}
	resolved := addressed(t.b.Issues, made)
	if len(t.b.Issues) > 0 {
		text += "\n**Issues.**\n" + bullets(issueLines(t.b, resolved))
	}
	for _, n := range notes {
		text += "\n" + n + "\n"
	}
	text += "\n" + rep.Text
	return answer{text: text, summary: summary, keys: map[string]any{
		"resolved": refs(resolved), "artifacts": refs(pathsOf(made)), "claims": claimsOf(rep)}}, nil
}

// apply changes the files of the turn's folder.
func (m *member) apply(t task, changes []mend.Change) (made []mend.Change, notes []string, err error) {
	end := t.emit.Tool("edit", "Mend "+work.Count(len(changes), "file", "files"))
	defer func() { end(err == nil) }()
	f, err := work.Open(t.ctx, t.turn.Workspace, m.run)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if t.ctx.Err() != nil {
		return nil, nil, context.Cause(t.ctx)
	}
	return mend.Apply(f, changes)
}

// result says what was done, or could be, and what there is left.
func result(t task, rep work.Report, made, changes []mend.Change, left int) (text, summary string) {
	n := 0
	for _, c := range made {
		n += len(c.Fixes)
	}
	switch {
	case len(made) > 0:
		summary = fmt.Sprintf("Mended %s in %s", work.Count(n, "fault", "faults"), work.Count(len(made), "file", "files"))
		text = "**Result.** " + summary + ".\n" + bullets(fixLines(made))
		summary += ". " + rep.Summary
	case len(changes) > 0 && !t.b.Write:
		summary = fmt.Sprintf("Changed nothing, as this run is read-only; %s can be mended without judgement", work.Count(len(changes), "file", "files"))
		text = "**Result.** " + summary + ":\n" + bullets(fixLines(changes))
		summary += ". " + rep.Summary
	case left == 0 && len(t.b.Issues) == 0 && len(changes) == 0:
		summary = "Nothing to do: nothing to mend was found. " + rep.Summary
		text = "**Result.** Nothing to do: nothing to mend was found.\n"
	default:
		summary = "Changed nothing: what was found cannot be mended without judgement. " + rep.Summary
		text = "**Result.** Changed nothing: what was found cannot be mended without judgement.\n"
	}
	return text, summary
}

// addressed are the ids of the issues that the changes are about: those that
// name a changed file, and failures of tests, checks and builds after a change
// of what they read.
func addressed(issues []openIssue, made []mend.Change) []string {
	out := []string{}
	for _, i := range issues {
		about := func(c mend.Change) bool {
			if names(i.Summary, c.Path) || names(i.Summary, path.Base(c.Path)) {
				return true
			}
			check := slices.ContainsFunc([]string{"failing test", "checks did not pass", "contradicted:", "does not compile"},
				func(s string) bool { return strings.Contains(i.Summary, s) })
			return check && slices.ContainsFunc(c.Fixes, func(f mend.Fix) bool { return f.Kind != mend.Link })
		}
		if slices.ContainsFunc(made, about) {
			out = append(out, i.ID)
		}
	}
	return out
}

func issueLines(b block, resolved []string) []string {
	var out []string
	for _, i := range b.Issues {
		end := "open: it needs judgement"
		switch {
		case slices.Contains(resolved, i.ID):
			end = "addressed by the changes above"
		case !b.Write:
			end = "open: this run is read-only"
		}
		out = append(out, fmt.Sprintf("%s (%s): %s", work.Show(i.ID), work.Clip(work.Show(i.Summary), 200), end))
	}
	return out
}
