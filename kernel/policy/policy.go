// Package policy decides on what agents ask to do: one point for all agents, the
// same answer for the same normalised operation. It is pure: it looks at no file,
// clock or environment, so a decision can be repeated from its record, and a
// crash leaves nothing behind.
//
// It decides on what an agent shows. What a program does once it runs is not
// visible here; confinement and the comparison after the turn answer for that.
// Whatever is not understood is never allowed by itself: modes ask and auto ask
// about it, a read-only turn rejects it.
package policy

import (
	"slices"
	"strings"
)

// Mode is how much an agent may do without asking.
type Mode string

// Modes. The empty and any unknown one count as ReadOnly.
const (
	ReadOnly Mode = "read-only" // only what has no side effect
	Ask      Mode = "ask"       // everything with an effect is asked about
	Auto     Mode = "auto"      // ordinary work inside the workspace is allowed
	Full     Mode = "full"      // everything but denied operations and commits
)

// Outcomes of a Verdict.
const (
	Allow  = "allow"
	Reject = "reject"
	AskFor = "ask" // a person decides
)

// Operation is what an agent asks for, normalised.
type Operation struct {
	Kind  string // ACP's tool kinds: read, edit, delete, move, search, execute, think, fetch, other
	Title string
	Paths []string // resolved
	Asked []string // the same paths as the agent gave them

	Command string // of an execute, as far as the agent shows it
	Dir     string // where the command runs, resolved; empty = the workspace
}

// Option is an answer that the agent offered.
type Option struct {
	ID   string
	Kind string // allow_once, allow_always, reject_once, reject_always
	Name string
}

// Decision is the answer. Option is empty when none of the offered ones fits;
// the request is then answered "cancelled".
type Decision struct {
	Allow  bool
	Option string
	Why    string
	By     string // "policy", or who decided
	Gate   string // through which a person decided
}

// Grant is an answer of a person that holds for the rest of the run.
type Grant struct {
	Key string // of the Verdict that was asked about
}

// Request is one operation and what is known of its turn.
type Request struct {
	Mode      Mode
	Write     bool     // this turn may write at all
	Workspace string   // resolved folder the turn works in
	Output    []string // further folders it may write, resolved
	Home      string   // the person's home folder, if known
	Op        Operation
	Deny      []Rule  // beats everything
	Grants    []Grant // of this run
}

// Verdict is what the policy says.
type Verdict struct {
	Outcome string // Allow, Reject or AskFor
	Why     string // a snake_case code of docs/permissions.md
	// Key is the identity of the normalised operation, in the text form of a
	// digest. It is the same in every worktree and for every agent.
	Key string
	// Summary and Target are for the person's card: one line each, with
	// invisible and bidirectional characters made visible.
	Summary, Target string
}

// harmless are the kinds without side effects.
var harmless = []string{"read", "search", "think", "fetch"}

// Decide gives the verdict on one operation.
func Decide(r Request) Verdict {
	o := look(r)
	v := Verdict{Key: o.key(), Summary: o.summary(), Target: o.target()}
	v.Outcome, v.Why = o.decide()
	// A grant answers a question; it never lifts a rejection, and never covers
	// text that a person cannot have read.
	if v.Outcome == AskFor && o.odd == "" && o.named() && slices.Contains(r.Grants, Grant{v.Key}) {
		v.Outcome, v.Why = Allow, "granted_for_run"
	}
	return v
}

func (o *operation) decide() (outcome, why string) {
	switch {
	case o.denied():
		return Reject, "denied_by_rule"
	case o.what.effect == commits:
		return Reject, o.what.why
	}
	readOnly := !o.r.Write
	switch o.r.Mode {
	case Full, Auto, Ask:
	default:
		readOnly = true
	}
	safe := slices.Contains(harmless, o.kind) && o.what.effect == none
	switch {
	case readOnly && o.odd != "":
		return Reject, o.odd
	case readOnly && safe:
		return Allow, "no_side_effect"
	case readOnly:
		return Reject, "read_only_turn"
	case o.odd != "":
		return AskFor, o.odd
	case o.r.Mode == Full:
		return Allow, "full_permission"
	case o.where.effect >= doubtful:
		return AskFor, o.where.why
	case o.what.effect >= doubtful:
		return AskFor, o.what.why
	case o.r.Mode == Ask && !safe:
		return AskFor, "needs_approval"
	case o.r.Mode == Ask && o.system:
		return AskFor, outside
	case safe:
		return Allow, "no_side_effect"
	}
	return Allow, "ordinary_work"
}

// Pick chooses the agent's option for an outcome. What was not offered is never
// chosen, "once" comes before "always", and among several of a kind the first is
// taken. An id that also stands for the opposite says neither. There is none for
// AskFor.
func Pick(outcome string, offered []Option) (optionID string, ok bool) {
	if outcome != Allow && outcome != Reject {
		return "", false
	}
	for _, kind := range []string{outcome + "_once", outcome + "_always"} {
		for _, o := range offered {
			if o.Kind == kind && o.ID != "" && !ambiguous(outcome, o.ID, offered) {
				return o.ID, true
			}
		}
	}
	return "", false
}

func ambiguous(outcome, id string, offered []Option) bool {
	return slices.ContainsFunc(offered, func(o Option) bool { return o.ID == id && !strings.HasPrefix(o.Kind, outcome+"_") })
}
