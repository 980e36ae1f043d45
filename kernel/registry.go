package kernel

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// Registry is a value: With returns a new one, so tests make their own and
// nothing registers itself. A duplicate or malformed id is a programmer's error
// and panics where the program is wired.
type Registry struct{ nodes []Node }

var stageID = regexp.MustCompile(`^[a-z]+/[a-z][a-z0-9-]*$`)

// With returns the registry with nodes added.
func (r Registry) With(nodes ...Node) Registry {
	out := Registry{slices.Clone(r.nodes)}
	for _, n := range nodes {
		id := n.Spec().ID
		if !stageID.MatchString(id) {
			panic(fmt.Sprintf("kernel: stage id %q is not kind/name", id))
		}
		if _, ok := out.Lookup(id); ok {
			panic(fmt.Sprintf("kernel: stage %q is registered twice", id))
		}
		out.nodes = append(out.nodes, n)
	}
	return out
}

// Lookup finds a stage by id.
func (r Registry) Lookup(id string) (Node, bool) {
	for _, n := range r.nodes {
		if n.Spec().ID == id {
			return n, true
		}
	}
	return nil, false
}

// Specs lists all stages, sorted by id.
func (r Registry) Specs() []Spec {
	out := make([]Spec, 0, len(r.nodes))
	for _, n := range r.nodes {
		out = append(out, n.Spec())
	}
	slices.SortFunc(out, func(a, b Spec) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
