// Package policy decides on what agents ask to do: one point for all agents, the
// same answer for the same normalised operation. It is pure.
package policy

import "slices"

// Operation is what an agent asks for, normalised.
type Operation struct {
	Kind  string // ACP's tool kinds: read, edit, delete, move, search, execute, think, fetch, other
	Title string
	Paths []string // resolved

	Command string // of an execute, as far as the agent shows it
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
}

// harmless are the kinds without side effects.
var harmless = []string{"read", "search", "think", "fetch"}

// Decide answers for a turn that may write or not. An option that was not
// offered is never chosen; among several of a kind the first is taken.
func Decide(write bool, op Operation, offered []Option) Decision {
	d := Decision{Allow: write || slices.Contains(harmless, op.Kind), Why: "read_only_turn", By: "policy"}
	kinds := []string{"reject_once", "reject_always"}
	if d.Allow {
		kinds, d.Why = []string{"allow_once"}, "no_side_effect"
		if write {
			d.Why = "full_permission"
		}
	}
	for _, k := range kinds {
		for _, o := range offered {
			if o.Kind == k {
				d.Option = o.ID
				return d
			}
		}
	}
	d.Allow = false
	return d
}
