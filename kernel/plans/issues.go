package plans

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"witan/kernel"
)

// issue is something that keeps a candidate from being accepted.
type issue struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`

	check bool // raised by a check, which the next candidate passes or not
}

// issues folds syntheses and verifications: an issue is raised by a verifier
// that contradicts, by a check that failed and by a claim that is contradicted.
// One of a check is closed by the next candidate, if that does not raise it
// again; one of a verifier when the finalizer says that it is resolved.
func issues(s *kernel.State) []issue {
	var open []issue
	n := 0
	raise := func(summary string, check bool) {
		if slices.ContainsFunc(open, func(i issue) bool { return i.Summary == summary }) {
			return
		}
		n++
		open = append(open, issue{"I" + strconv.Itoa(n), summary, check})
	}
	for _, ph := range s.Phases {
		if ph.Name != PhaseSynthesis && ph.Name != PhaseVerification {
			continue
		}
		for _, sl := range ph.Slots {
			at := sl.Last()
			if at == nil || at.Finished == nil {
				continue
			}
			r := receipt(at)
			if ph.Name == PhaseSynthesis {
				open = slices.DeleteFunc(open, func(i issue) bool { return i.check || slices.Contains(r.Resolved, i.ID) })
			}
			for _, what := range failures(at) {
				raise(what, true)
			}
			for _, what := range objections(ph, sl, r) {
				raise(what, false)
			}
		}
	}
	return open
}

// failures are what the checks of an attempt hold against the candidate.
func failures(at *kernel.Attempt) []string {
	var out []string
	for _, c := range at.Claims {
		if c.Verdict == "contradicted" {
			out = append(out, "contradicted: "+c.Claim)
		}
	}
	if len(out) == 0 && at.Finished.Reason == kernel.ReasonVerifyFailed {
		out = append(out, "the checks did not pass")
	}
	return out
}

// objections are what a verifier holds against the candidate. A verdict that is
// missing is not a pass.
func objections(ph *kernel.Phase, sl *kernel.Slot, r *said) []string {
	if ph.Name != PhaseVerification || r.Verdict == "support" {
		return nil
	}
	var out []string
	titles := contradicting(r)
	if len(titles) == 0 {
		titles = []string{cmp.Or(r.Summary, "no verdict")}
	}
	for _, t := range titles {
		out = append(out, string(sl.Agent)+": "+t)
	}
	return out
}

func contradicting(r *said) []string {
	var out []string
	for _, f := range r.Findings {
		if f.Stance != "support" {
			out = append(out, f.Title)
		}
	}
	return out
}

func summaries(is []issue) string {
	const shown = 5
	var out []string
	for _, i := range is[:min(shown, len(is))] {
		out = append(out, i.ID+" "+i.Summary)
	}
	if n := len(is) - shown; n > 0 {
		out = append(out, "and "+strconv.Itoa(n)+" more")
	}
	return strings.Join(out, "; ")
}

func digits(n int) string { return strconv.Itoa(n) }
