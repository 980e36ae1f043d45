package verify

import (
	"context"
	"fmt"

	"witan/kernel"
)

// Verdicts, from best to worst.
const (
	Verified     = "verified"
	Unverified   = "unverified"
	Invalid      = "invalid"
	Contradicted = "contradicted"
)

// Reasons of verdicts; docs/cli.md lists them.
const (
	ReasonNoRecord   = "no_record"          // no run of the named command is on record
	ReasonNoCommand  = "no_command"         // the claim names no command
	ReasonNoExit     = "no_exit"            // the run on record was killed
	ReasonOldContent = "before_last_change" // what was checked is older than the answer
	ReasonContent    = "other_content"      // the file has other content than the claim says
	ReasonExit       = "exit"               // the command ended otherwise than it should
	ReasonTime       = "time_limit"         // the command was ended by its time limit
)

// base is the verdict before anything was checked: every claim stands unverified.
func base(c kernel.Claim) (kernel.Verdict, error) {
	raw, err := kernel.Canonical(c)
	v := kernel.Verdict{Version: kernel.ObjectVersion, Scope: "attempt", Turn: c.Turn, Claim: kernel.Sum(raw), Text: c.Text,
		Status: "completed", Results: []kernel.ClaimVerdict{}, Outcomes: c.Outcomes}
	if v.Outcomes == nil {
		v.Outcomes = []kernel.Outcome{}
	}
	for _, cl := range c.Claims {
		reason := ReasonNoRecord
		if cl.Command == "" {
			reason = ReasonNoCommand
		}
		v.Results = append(v.Results, kernel.ClaimVerdict{Claim: cl.Text, Source: "agent", Verdict: Unverified, Reason: reason, Evidence: []kernel.OutcomeID{}})
	}
	return v, err
}

// refuse gives the i-th claim a verdict worse than unverified, and makes a
// finding of it that says why.
func refuse(v *kernel.Verdict, i int, verdict, reason, detail string, evidence ...kernel.OutcomeID) {
	f := kernel.Outcome{Type: "finding", Severity: "high", Stance: "contradict", Title: "A claim does not hold", Detail: detail,
		ID: kernel.OutcomeID(kernel.DeriveID(kernel.FindingPrefix, v.Claim.String(), fmt.Sprint(i), verdict, reason)), Evidence: append([]kernel.OutcomeID{}, evidence...)}
	if verdict == Invalid {
		f.Severity, f.Title = "low", "A claim cannot be checked"
	}
	res := &v.Results[i]
	res.Verdict, res.Reason, res.Evidence = verdict, reason, f.Evidence
	v.Outcomes = append(v.Outcomes, f)
}

type none struct{}

// None returns "verify/none": nothing is checked, and says so.
func None() kernel.Verify { return none{} }

func (none) Spec() kernel.Spec {
	return kernel.Spec{ID: "verify/none", Version: 1, Class: kernel.Pure, Parallel: true, Touches: []string{}, Doc: "Checks nothing; every claim stays unverified",
		Options: kernel.NoOptions, In: kernel.Schema[kernel.Claim](), Out: kernel.Schema[kernel.Verdict]()}
}

type agents struct{}

// Agents returns "verify/agents": the other members check the candidate. They do
// it in a phase of their own, which only a plan with one has; the stage leaves
// every claim as unverified as it finds it.
func Agents() kernel.Verify { return agents{} }

func (agents) Spec() kernel.Spec {
	return kernel.Spec{ID: "verify/agents", Version: 1, Class: kernel.Pure, Parallel: true, Touches: []string{}, Doc: "Leaves the verdict to the other members, in the verification phase of a council",
		Options: kernel.NoOptions, In: kernel.Schema[kernel.Claim](), Out: kernel.Schema[kernel.Verdict]()}
}

func (agents) Run(ctx context.Context, env kernel.Env, c kernel.Claim) (kernel.Verdict, error) {
	return base(c)
}

func (none) Run(ctx context.Context, env kernel.Env, c kernel.Claim) (kernel.Verdict, error) {
	return base(c)
}
