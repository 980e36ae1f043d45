package receipt

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"witan/kernel"
	"witan/kernel/receipts"
)

// artifacts makes outcomes of what a turn handed over: the files of its output
// folder, the files it changed that its receipt names, and in a council the
// answer itself, with the turn on record as evidence. A name that is neither is
// returned: it is nothing that this turn made.
func artifacts(ctx context.Context, p kernel.Packs, c *kernel.Claim, t kernel.Turn, r kernel.Reply) (unknown []string, err error) {
	var named struct {
		Artifacts []string `json:"artifacts"`
		Summary   string   `json:"summary"`
	}
	if len(c.Receipt) > 0 {
		if err := json.Unmarshal(c.Receipt, &named); err != nil {
			return nil, kernel.E("receipt.artifacts", kernel.Internal, err, "a receipt that was read cannot be read")
		}
	}
	reply := c.Reply.String()
	add := func(kind, path, summary string, h kernel.Digest) {
		c.Outcomes = append(c.Outcomes, kernel.Outcome{Type: "artifact", ID: kernel.OutcomeID(kernel.DeriveID(kernel.ArtifactPrefix, reply, kind, path)),
			Agent: t.Agent, Kind: kind, Path: path, Summary: summary, Hash: h})
	}
	for _, f := range r.Files {
		add("file", f.Path, fmt.Sprintf("file of %d bytes", f.Bytes), f.Hash)
	}
	changed, err := changes(ctx, p, r)
	if err != nil {
		return nil, err
	}
	for _, name := range named.Artifacts {
		name = strings.TrimPrefix(name, "./")
		if slices.ContainsFunc(r.Files, func(f kernel.OutputFile) bool { return f.Path == name }) {
			continue
		}
		if h, ok := changed[name]; ok {
			add("change", name, "changed file", h)
		} else {
			unknown = append(unknown, name)
		}
	}
	if t.Phase == "work" || t.Phase == "synthesis" {
		if !c.Text.IsZero() {
			add("text", "", summary(named.Summary, t), c.Text)
		}
		c.Outcomes = append(c.Outcomes, kernel.Outcome{Type: "evidence", ID: kernel.OutcomeID(kernel.DeriveID(kernel.EvidencePrefix, reply)), Agent: t.Agent,
			Kind: "turn", Level: "observed", Summary: fmt.Sprintf("turn of %s: %d tool calls, %d files changed, %d handed over", t.Agent, len(r.Tools)+r.MoreTool, len(r.Changed), len(r.Files)), Hash: c.Reply})
	}
	return unknown, nil
}

func summary(s string, t kernel.Turn) string {
	if s != "" {
		return s
	}
	return "answer of " + string(t.Agent)
}

// changes are the files of the content that the turn left, with their hashes.
func changes(ctx context.Context, p kernel.Packs, r kernel.Reply) (map[string]kernel.Digest, error) {
	out := map[string]kernel.Digest{}
	if r.Candidate.IsZero() {
		return out, nil
	}
	c, err := kernel.GetObject[kernel.Candidate](ctx, p, r.Candidate)
	for _, f := range c.Files {
		out[f.Path] = f.Hash
	}
	return out, err
}

// synthetic is a receipt in place of a missing one, where it only says that the
// turn ended. A verdict is never made up.
func synthetic(t kernel.Turn) json.RawMessage {
	m := map[string]any{"version": 1, "phase": t.Phase, "summary": "The turn ended without a receipt.", "artifacts": []string{}, "claims": []string{}}
	switch t.Phase {
	case "work":
		m["item"] = receipts.ExpectOf(t).Item
	case "synthesis":
		m["resolved"] = []string{}
	default:
		return nil
	}
	b, err := kernel.Canonical(m)
	if err != nil {
		return nil
	}
	return b
}
