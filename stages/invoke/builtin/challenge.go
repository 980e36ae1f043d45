package builtin

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// citation is a place that a text names.
var citation = regexp.MustCompile("`([^`:\\s]+\\.[A-Za-z0-9]+):(\\d+)`")

// maxCited bounds the places that are looked up.
const maxCited = 200

// challenge checks what can be checked of a proposal, that the places it names
// are there, and answers the question for a plan.
func (m *member) challenge(t task) (answer, error) {
	wrong, n, err := m.cited(t)
	if err != nil {
		return answer{}, err
	}
	kind, value := stance(t.b)
	verdict, text := "support", fmt.Sprintf("**Review of %s.** ", work.Show(string(t.b.ReviewOf)))
	switch {
	case len(wrong) > 0:
		verdict = "contradict"
		text += work.Count(len(wrong), "place that it names is", "places that it names are") + " not there:\n"
		for _, o := range wrong {
			text += "- " + work.ShowLines(o.Detail) + "\n"
		}
	case n > 0:
		text += work.Count(n, "place that it names is", "places that it names are") + " there.\n"
	default:
		text += "It names no place that could be looked up; nothing speaks against it.\n"
	}
	summary := "Supports the proposal"
	if verdict == "contradict" {
		summary = "Contradicts the proposal"
	}
	keys := map[string]any{"verdict": verdict, "findings": findingsOf(wrong, "contradict"), kind: value}
	if kind == "plan" {
		text += fmt.Sprintf("\n**Plan.** %s integrates; every other member works on one item and verifies.\n", work.Show(string(finalizer(t.b.Members))))
		summary += " and puts forward a plan."
	} else {
		text += fmt.Sprintf("\n**Plan.** Supports %v.\n", value)
		summary += " and supports a plan."
	}
	return answer{text: text, summary: summary, keys: keys}, nil
}

// cited looks up the places that the proposal under review names, and returns
// those that are not there and how many there were.
func (m *member) cited(t task) (wrong []kernel.Outcome, n int, err error) {
	f, err := work.Open(t.ctx, t.turn.Workspace, m.run)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	seen := map[string]bool{}
	for _, w := range t.words {
		if w.agent != t.b.ReviewOf || w.phase != "proposal" {
			continue
		}
		for _, c := range citation.FindAllStringSubmatch(w.text, -1) {
			if n == maxCited || t.ctx.Err() != nil {
				break
			}
			if seen[c[0]] || !filepath.IsLocal(filepath.FromSlash(c[1])) {
				continue
			}
			seen[c[0]] = true
			n++
			line, _ := strconv.Atoi(c[2])
			if why := lookUp(f, c[1], line); why != "" {
				wrong = append(wrong, kernel.Outcome{Severity: "medium", Title: "the proposal names a place that is not there: " + c[1] + ":" + c[2],
					Detail: strings.ReplaceAll(c[1], "`", "'") + ":" + c[2] + ": " + why, Path: c[1], Line: line})
			}
		}
	}
	if t.ctx.Err() != nil {
		return nil, 0, t.ctx.Err()
	}
	return wrong, n, nil
}

// lookUp says why a place is not there; "" if it is, or cannot be read.
func lookUp(f *work.Folder, name string, line int) string {
	if !f.Exists(name) {
		return "there is no such file"
	}
	b, err := f.Read(name)
	if err != nil {
		return ""
	}
	lines := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		lines++
	}
	if line > max(lines, 1) {
		return "the file has " + work.Count(lines, "line", "lines")
	}
	return ""
}
