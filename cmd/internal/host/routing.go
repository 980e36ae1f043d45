package host

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"witan/kernel"
)

// auto stands for "pick them for me".
const auto = "auto"

// mention is a target named at the very beginning of a task.
var mention = regexp.MustCompile(`^@([a-z0-9][a-z0-9_-]{0,31})(\s+|$)`)

// mentions takes the targets off the beginning of a text: names elsewhere in it
// are words and route nothing.
func mentions(text string) (targets []string, rest string) {
	rest = strings.TrimLeft(text, " \t")
	for {
		m := mention.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		targets, rest = append(targets, m[1]), rest[len(m[0]):]
	}
	if len(targets) == 0 {
		return nil, text
	}
	return targets, rest
}

// sameMembers refuses targets that are no members of the conversation.
func sameMembers(targets, members []kernel.AgentID) error {
	for _, t := range targets {
		if !slices.Contains(members, t) {
			return kernel.E("host.members", kernel.Invalid, nil, "agent %q is no member of this conversation", t).
				WithNext("its members are %s; start another conversation to work with others", names(members))
		}
	}
	return nil
}

func names(ids []kernel.AgentID) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return strings.Join(out, ", ")
}

// wanted is how many agents a plan needs at least to be what it is.
var wanted = map[string]int{"direct": 1, "batch": 2, "discuss": 2, "council": 3}

// pick chooses the smallest set that can do it: agents that are ready, the
// person's own before the built-in ones, and one that can write first where
// something may be written. It says why.
func (h *Host) pick(plan string, write bool, from []kernel.AgentID) ([]kernel.AgentID, string, error) {
	var ready, away []string
	var all []*member
	for _, m := range h.agents {
		if len(from) > 0 && !slices.Contains(from, m.ID) {
			continue
		}
		if row := m.row(h.opts.Version); row.Status != "ready" {
			away = append(away, fmt.Sprintf("%s is %s", m.ID, row.Status))
			continue
		}
		all = append(all, m)
	}
	rank := func(m *member) int {
		n := 0
		if m.Protocol == "builtin" {
			n += 2
		}
		if write && !m.Writable {
			n++
		}
		return n
	}
	slices.SortStableFunc(all, func(a, b *member) int { return rank(a) - rank(b) })
	n := min(wanted[plan], len(all))
	var out []kernel.AgentID
	for _, m := range all[:n] {
		out = append(out, m.ID)
		ready = append(ready, string(m.ID))
	}
	if n == 0 || n < min(2, wanted[plan]) {
		return nil, "", kernel.E("host.pick", kernel.Invalid, nil, "%d of the %d agents that plan %s needs are ready", n, wanted[plan], plan).WithNext("see witan agents")
	}
	why := fmt.Sprintf("plan %s takes %d: %s", plan, n, strings.Join(ready, ", "))
	if write {
		why += "; the first that can write writes"
	}
	if len(away) > 0 {
		why += "; left out: " + strings.Join(away, ", ")
	}
	return out, why, nil
}
