package verify

import (
	"context"
	"encoding/json"

	"witan/kernel"
)

// Lookup finds another verify stage by id, for all-of.
type Lookup func(id string) (kernel.Node, bool)

type allOf struct{ look Lookup }

// AllOf returns "verify/all-of": all of several, of which the worst counts.
func AllOf(look Lookup) kernel.Verify { return allOf{look} }

func (allOf) Spec() kernel.Spec {
	return kernel.Spec{ID: "verify/all-of", Version: 1, Class: kernel.Keyed, Touches: []string{"process", "store"}, Doc: "Runs several verifications; the worst counts",
		Options: json.RawMessage(`{"type":"object","properties":{"of":{"type":"array","minItems":1,"items":{"type":"object","properties":{"use":{"type":"string"}},"required":["use"]}}},"required":["of"],"additionalProperties":false}`),
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
	if err := options(env, "verify/all-of", &opt); err != nil {
		return out, err
	}
	if len(opt.Of) == 0 {
		return out, kernel.E("verify.AllOf", kernel.Invalid, nil, "verify/all-of has nothing to run").WithNext(`add of = [ { use = "verify/command", run = ["…"] } ]`)
	}
	in, err := kernel.Canonical(c)
	if err != nil {
		return out, err
	}
	for _, o := range opt.Of {
		v, err := a.one(ctx, env, o, in)
		if err != nil {
			return out, err
		}
		if err := fits(v, out, len(c.Claims)); err != nil {
			return out, err
		}
		out = merge(out, v, len(c.Claims))
	}
	return out, nil
}

// options decodes the stage's options; none given are those of an empty table.
func options(env kernel.Env, stage string, opt any) error {
	raw := env.Options
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := kernel.DecodeStrict(raw, opt); err != nil {
		return kernel.E("verify.options", kernel.Invalid, err, "the options of %s are not what it takes", stage).WithNext("see witan stage list --json")
	}
	return nil
}

func (a allOf) one(ctx context.Context, env kernel.Env, o map[string]json.RawMessage, in []byte) (v kernel.Verdict, err error) {
	var use string
	if err := json.Unmarshal(o["use"], &use); err != nil {
		return v, kernel.E("verify.AllOf", kernel.Invalid, err, `a part of verify/all-of has no "use"`)
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
		if env.Options, err = kernel.Canonical(rest); err != nil {
			return v, err
		}
	}
	out, err := node.RunJSON(ctx, env, in)
	if err != nil {
		return v, err
	}
	return v, kernel.DecodeStrict(out, &v)
}

// fits refuses a part, which may be anybody's program, that speaks of another
// answer or left claims out.
func fits(v, of kernel.Verdict, claims int) error {
	if v.Scope == of.Scope && v.Turn == of.Turn && v.Claim == of.Claim && len(v.Results) >= claims {
		return nil
	}
	return &kernel.Failure{Class: kernel.ClassExecution, Reason: "exec_failed", Text: "a part of verify/all-of gave a verdict on something else"}
}

var rank = map[string]int{Verified: 0, Unverified: 1, Invalid: 2, Contradicted: 3}

// merge joins what two verifications say. The agent's claims are the first n
// results of each. One that knows nothing of a claim does not count; of the
// others the worst does. All evidence is kept.
func merge(a, b kernel.Verdict, n int) kernel.Verdict {
	for i, new := range b.Results {
		if i >= n {
			a.Results = append(a.Results, new)
			continue
		}
		old := a.Results[i]
		all := append(append([]kernel.OutcomeID{}, old.Evidence...), new.Evidence...)
		if !silent(new) && (silent(old) || rank[new.Verdict] > rank[old.Verdict]) {
			a.Results[i] = new
		}
		a.Results[i].Evidence = all
	}
	if a.Status == "completed" {
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

// silent reports whether a verdict is that nothing was looked at.
func silent(r kernel.ClaimVerdict) bool {
	return r.Verdict == Unverified && len(r.Evidence) == 0 && (r.Reason == ReasonNoRecord || r.Reason == ReasonNoCommand)
}
