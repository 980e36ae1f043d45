package deliver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"witan/kernel"
)

// attachment is one of the turn block.
type attachment struct {
	ID    string        `json:"id"`
	Name  string        `json:"name"`
	Hash  kernel.Digest `json:"hash"`
	Bytes int64         `json:"bytes"`
}

// turnBlock is the machine-readable end of every prompt: the fields of every
// phase, and those of the plan in the turn's Extra, which cannot replace them.
// Absent fields are left out; plans are in order of their hashes.
func turnBlock(t kernel.Turn, s kernel.Snapshot) (string, error) {
	m := map[string]any{}
	if len(t.Extra) > 0 {
		dec := json.NewDecoder(bytes.NewReader(t.Extra))
		dec.UseNumber()
		if err := dec.Decode(&m); err != nil || m == nil {
			return "", kernel.E("deliver", kernel.Invalid, err, "the turn's extra fields are no object")
		}
		maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
		orderPlans(m)
	}
	maps.Copy(m, map[string]any{"version": 1, "run": t.Run, "phase": t.Phase, "round": t.Round, "agent": t.Agent, "role": t.Role,
		"write": t.Write, "members": t.Members, "snapshot": t.Snapshot})
	if len(s.Attachments) > 0 {
		var as []attachment
		for _, a := range s.Attachments {
			as = append(as, attachment{a.ID, a.Name, a.Hash, a.Bytes})
		}
		m["attachments"] = as
	}
	if t.OutputDir != "" {
		m["output_dir"] = t.OutputDir
	}
	b, err := kernel.Canonical(m)
	// In JSON this character stands in strings only: written as an escape there,
	// no text of an agent can end the block.
	return strings.ReplaceAll(string(b), "<", `\u003c`), err
}

func orderPlans(m map[string]any) {
	plans, _ := m["plans"].([]any)
	hash := func(v any) string {
		p, _ := v.(map[string]any)
		h, _ := p["hash"].(string)
		return h
	}
	slices.SortStableFunc(plans, func(a, b any) int { return cmp.Compare(hash(a), hash(b)) })
}
