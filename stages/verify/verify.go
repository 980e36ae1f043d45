// Package verify says what holds of a claim. Words never verify anything: a
// claim is verified only by a recorded run of the command it names, on the
// candidate's exact content. Missing is never pass.
package verify

import (
	"context"
	"encoding/json"

	"witan/kernel"
)

// Verdicts, from best to worst.
const (
	Verified     = "verified"
	Unverified   = "unverified"
	Invalid      = "invalid"
	Contradicted = "contradicted"
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
		reason := "no_record"
		if cl.Command == "" {
			reason = "no_command"
		}
		v.Results = append(v.Results, kernel.ClaimVerdict{Claim: cl.Text, Source: "agent", Verdict: Unverified, Reason: reason, Evidence: []kernel.OutcomeID{}})
	}
	return v, err
}

type none struct{}

// None returns "verify/none": nothing is checked, and says so.
func None() kernel.Verify { return none{} }

func (none) Spec() kernel.Spec {
	return kernel.Spec{ID: "verify/none", Version: 1, Class: kernel.Pure, Parallel: true, Touches: []string{}, Doc: "Checks nothing; every claim stays unverified",
		Options: kernel.NoOptions, In: kernel.Schema[kernel.Claim](), Out: kernel.Schema[kernel.Verdict]()}
}

func (none) Run(ctx context.Context, env kernel.Env, c kernel.Claim) (kernel.Verdict, error) {
	return base(c)
}

// Lookup finds another verify stage by id, for all-of.
type Lookup func(id string) (kernel.Node, bool)

type allOf struct{ look Lookup }

// AllOf returns "verify/all-of": all of several, of which the worst counts.
func AllOf(look Lookup) kernel.Verify { return allOf{look} }

func (allOf) Spec() kernel.Spec {
	return kernel.Spec{ID: "verify/all-of", Version: 1, Class: kernel.Keyed, Touches: []string{"process", "store"}, Doc: "Runs several verifications; the worst counts",
		Options: json.RawMessage(`{"type":"object","properties":{"of":{"type":"array","items":{"type":"object","properties":{"use":{"type":"string"}},"required":["use"]}}},"required":["of"],"additionalProperties":false}`),
		In:      kernel.Schema[kernel.Claim](), Out: kernel.Schema[kernel.Verdict]()}
}

func (a allOf) Run(ctx context.Context, env kernel.Env, c kernel.Claim) (kernel.Verdict, error) {
	out, err := base(c)
	if err != nil {
		return out, err
	}
	var opt struct {
		Of []map[string]json.RawMessage `json:"of"`
	}
	if err := kernel.DecodeStrict(env.Options, &opt); err != nil {
		return out, err
	}
	in, err := kernel.Canonical(c)
	if err != nil {
		return out, err
	}
	for i, o := range opt.Of {
		v, err := a.one(ctx, env, o, in)
		if err != nil {
			return out, err
		}
		out = merge(out, v, i == 0, len(c.Claims))
	}
	return out, nil
}

func (a allOf) one(ctx context.Context, env kernel.Env, o map[string]json.RawMessage, in []byte) (v kernel.Verdict, err error) {
	var use string
	if err := json.Unmarshal(o["use"], &use); err != nil {
		return v, kernel.E("verify.AllOf", kernel.Invalid, err, `"use" is missing`)
	}
	node, ok := a.look(use)
	if !ok {
		return v, kernel.E("verify.AllOf", kernel.Invalid, nil, "stage %q is unknown", use)
	}
	rest := map[string]json.RawMessage{}
	for k, val := range o {
		if k != "use" {
			rest[k] = val
		}
	}
	env.Options = nil
	if len(rest) > 0 {
		if env.Options, err = json.Marshal(rest); err != nil {
			return v, err
		}
	}
	out, err := node.RunJSON(ctx, env, in)
	if err != nil {
		return v, err
	}
	return v, kernel.DecodeStrict(out, &v)
}

var rank = map[string]int{Verified: 0, Unverified: 1, Invalid: 2, Contradicted: 3}

// merge joins what two verifications say. The agent's claims are the first n
// results of each; between "nothing is known" and a word, the word counts.
func merge(a, b kernel.Verdict, first bool, n int) kernel.Verdict {
	for i := range b.Results {
		if i >= n {
			a.Results = append(a.Results, b.Results[i])
			continue
		}
		old, new := a.Results[i], b.Results[i]
		silent := func(r kernel.ClaimVerdict) bool { return r.Verdict == Unverified && len(r.Evidence) == 0 }
		switch {
		case first || silent(old):
			a.Results[i] = new
		case silent(new):
		case rank[new.Verdict] > rank[old.Verdict]:
			new.Evidence = append(old.Evidence, new.Evidence...)
			a.Results[i] = new
		default:
			a.Results[i].Evidence = append(old.Evidence, new.Evidence...)
		}
	}
	if b.Status != "completed" {
		a.Status = b.Status
	}
	have := map[kernel.OutcomeID]bool{}
	for _, o := range a.Outcomes {
		have[o.ID] = true
	}
	for _, o := range b.Outcomes {
		if !have[o.ID] {
			a.Outcomes = append(a.Outcomes, o)
		}
	}
	return a
}
