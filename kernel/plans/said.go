package plans

import (
	"encoding/json"

	"witan/kernel"
)

// said is what the plans read of receipts.
type said struct {
	Summary     string        `json:"summary"`
	Verdict     string        `json:"verdict"`
	Plan        *WorkPlan     `json:"plan"`
	SupportPlan string        `json:"support_plan"`
	Candidate   string        `json:"candidate"`
	Resolved    []string      `json:"resolved"`
	Findings    []saidFinding `json:"findings"`
	Decision    *decision     `json:"decision"`

	looked bool
	normal *WorkPlan
}

type saidFinding struct {
	Severity string `json:"severity"`
	Stance   string `json:"stance"`
	Title    string `json:"title"`
}

// decision closes a turn of a discussion.
type decision struct {
	Status       string   `json:"status"`
	Reason       string   `json:"reason"`
	Deliverables []string `json:"deliverables"`
	Handoff      string   `json:"handoff"`
	Next         []string `json:"next"`
}

// receipt reads the receipt of an attempt, once; without one it is empty.
func receipt(at *kernel.Attempt) *said {
	if at == nil || len(at.Said) == 0 {
		return &said{}
	}
	r, ok := at.Read.(*said)
	if !ok {
		r = &said{}
		_ = json.Unmarshal(at.Said, r) // checked when it was recorded
		at.Read = r
	}
	return r
}

// plan is the plan of a receipt in normal form, made once: the members and the
// inputs do not change after the proposals. It is nil without one, or with one
// that breaks a rule.
func (r *said) plan(s *kernel.State) *WorkPlan {
	if r.Plan == nil || r.looked {
		return r.normal
	}
	r.looked = true
	if p, err := r.Plan.Normalise(s.Snapshot, survivors(s), inputs(s)); err == nil {
		r.normal = &p
	}
	return r.normal
}

// completed is the slot's attempt if it completed, or nil.
func completed(sl *kernel.Slot) *kernel.Attempt {
	if at := sl.Last(); at != nil && at.Finished != nil && at.Finished.Status == "completed" && !at.Commit.Failed {
		return at
	}
	return nil
}

// given tells of a slot's answer; ok is false when there is none.
func given(ph *kernel.Phase, sl *kernel.Slot) (g kernel.Given, ok bool) {
	at := sl.Last()
	if at == nil || at.Invoke.End.Text.IsZero() {
		return g, false
	}
	return kernel.Given{Agent: sl.Agent, Phase: ph.Name, Round: ph.Round, Item: sl.Item, Message: sl.Message, Text: at.Invoke.End.Text}, true
}
