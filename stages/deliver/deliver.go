// Package deliver builds the exact text an agent is given.
//
// It is pure: the turn, the snapshot and the packs they name decide every byte,
// so the same turn gives the same delivery, before and after a crash. Text of
// other agents is quoted with our markers made harmless.
package deliver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"witan/kernel"
	"witan/kernel/marker"
)

const (
	historyChars      = 60_000 // of earlier messages in one delivery
	instructionsBytes = 64 << 10
)

type stage struct{}

// New returns the stage "deliver/prompt".
func New() kernel.Deliver { return stage{} }

func (stage) Spec() kernel.Spec {
	return kernel.Spec{ID: "deliver/prompt", Version: 1, Class: kernel.Pure, Parallel: true, Touches: []string{"store"},
		Doc: "Builds the prompt with the turn block and fingerprints it", Options: kernel.NoOptions,
		In: kernel.Schema[kernel.Turn](), Out: kernel.Schema[kernel.Delivery]()}
}

func (stage) Run(ctx context.Context, env kernel.Env, t kernel.Turn) (kernel.Delivery, error) {
	snap, err := kernel.GetObject[kernel.Snapshot](ctx, env.Packs, t.Snapshot)
	if err != nil {
		return kernel.Delivery{}, err
	}
	block, err := turnBlock(t, snap)
	if err != nil {
		return kernel.Delivery{}, err
	}
	prose, complete, err := prose(ctx, env.Packs, t, snap)
	if err != nil {
		return kernel.Delivery{}, err
	}
	prompt := []byte(prose + "\n" + marker.TurnOpen + "\n" + string(block) + "\n" + marker.TurnClose + "\n")
	turn, err := kernel.Canonical(t)
	if err != nil {
		return kernel.Delivery{}, err
	}
	d := kernel.Delivery{Version: kernel.ObjectVersion, Turn: kernel.Sum(turn), Fingerprint: kernel.Fingerprint(prompt),
		Bytes: int64(len(prompt)), Session: session(t), Complete: complete}
	d.Prompt, err = env.Packs.Put(ctx, "prompt", prompt)
	return d, err
}

func session(t kernel.Turn) string {
	switch {
	case t.Continue:
		return "resume"
	case t.Rebuilt:
		return "rebuilt"
	}
	return "new"
}

// turnBlock is the machine-readable end of every prompt; absent fields are left out.
func turnBlock(t kernel.Turn, s kernel.Snapshot) ([]byte, error) {
	m := map[string]any{}
	if len(t.Extra) > 0 {
		if err := json.Unmarshal(t.Extra, &m); err != nil {
			return nil, kernel.E("deliver", kernel.Invalid, err, "the turn's extra fields are no object")
		}
	}
	maps.Copy(m, map[string]any{"version": 1, "run": t.Run, "phase": t.Phase, "round": t.Round, "agent": t.Agent, "role": t.Role,
		"write": t.Write, "members": t.Members, "snapshot": t.Snapshot})
	if len(s.Attachments) > 0 {
		m["attachments"] = s.Attachments
	}
	if t.OutputDir != "" {
		m["output_dir"] = t.OutputDir
	}
	return kernel.Canonical(m)
}

// prose says the same for a model.
func prose(ctx context.Context, p kernel.Packs, t kernel.Turn, s kernel.Snapshot) (string, bool, error) {
	var b strings.Builder
	if !t.Continue {
		fmt.Fprintf(&b, "You are %q, one of %d agents (%s) working on a task in the folder %s.\n", t.Agent, len(t.Members), names(t.Members), s.Workspace.Path)
		if len(t.Members) > 1 {
			b.WriteString("The others work on the same task at the same time; you cannot see their answers, and they cannot see yours.\n")
		}
		if err := instructions(ctx, p, s, &b); err != nil {
			return "", false, err
		}
	}
	complete, err := history(ctx, p, t, s, &b)
	if err != nil {
		return "", false, err
	}
	b.WriteString("\n# Task\n" + marker.Neutralise(s.Text) + "\n\n# Rules\n")
	if t.Write {
		b.WriteString("- You may change files in the folder. Do not commit: that is done for you.\n")
	} else {
		b.WriteString("- Read only: do not create, change or delete files in the folder; attempts are refused.\n")
	}
	if t.OutputDir != "" {
		fmt.Fprintf(&b, "- Files you want to hand over go to %s.\n", t.OutputDir)
	}
	b.WriteString("- Answer in the language of the task.\n")
	b.WriteString("- Close with a receipt: the last thing in your answer, one JSON object between " + harmless(marker.ReceiptOpen) + " and " + harmless(marker.ReceiptClose) +
		" tags, with the keys version (1), phase (" + t.Phase + "), summary (one sentence) and, if you claim something that can be checked, claims: a list of {text, command, exit, path}.\n")
	return b.String(), complete, nil
}

// harmless writes a marker's name so that the prompt does not contain the marker itself.
func harmless(m string) string { return strings.Trim(m, "<>") }

func names(ids []kernel.AgentID) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return strings.Join(out, ", ")
}

func instructions(ctx context.Context, p kernel.Packs, s kernel.Snapshot, b *strings.Builder) error {
	if s.Instructions.IsZero() {
		return nil
	}
	text, err := p.Get(ctx, s.Instructions)
	if err != nil {
		return err
	}
	if len(text) > instructionsBytes {
		text = append(text[:instructionsBytes:instructionsBytes], "\n(cut)"...)
	}
	b.WriteString("\n# Instructions of the workspace (AGENTS.md)\n" + marker.Neutralise(strings.ToValidUTF8(string(text), "\uFFFD")) + "\n")
	return nil
}

// history adds the earlier messages this agent has not seen: for a continuing
// session those behind its watermark, otherwise all that fit, with the first
// and the last message of the person always kept.
func history(ctx context.Context, p kernel.Packs, t kernel.Turn, s kernel.Snapshot, b *strings.Builder) (bool, error) {
	entries := s.History
	if t.Continue {
		entries = slices.DeleteFunc(slices.Clone(entries), func(h kernel.HistoryEntry) bool { return h.TurnSeq <= t.Seen })
	}
	if len(entries) == 0 {
		return true, nil
	}
	texts := make([]string, len(entries))
	for i, h := range entries {
		raw, err := p.Get(ctx, h.Text)
		if err != nil {
			return false, err
		}
		texts[i] = quote(h, string(raw))
	}
	keep, complete := choose(entries, texts)
	b.WriteString("\n# Conversation so far\n")
	gap := false
	for i, text := range texts {
		if !keep[i] {
			gap = true
			continue
		}
		if gap {
			b.WriteString("(earlier messages left out)\n")
			gap = false
		}
		b.WriteString(text)
	}
	return complete, nil
}

func choose(entries []kernel.HistoryEntry, texts []string) (keep []bool, complete bool) {
	keep = make([]bool, len(entries))
	left := historyChars
	take := func(i int) {
		if !keep[i] {
			keep[i] = true
			left -= utf8.RuneCountInString(texts[i])
		}
	}
	first := slices.IndexFunc(entries, func(h kernel.HistoryEntry) bool { return h.Role == "user" })
	last := first
	for i, h := range entries {
		if h.Role == "user" {
			last = i
		}
	}
	if first >= 0 {
		take(first)
		take(last)
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if !keep[i] && utf8.RuneCountInString(texts[i]) > left {
			return keep, false
		}
		take(i)
	}
	return keep, true
}

const quotedChars = 16_000 // of one earlier message

func quote(h kernel.HistoryEntry, text string) string {
	who := "person"
	if h.Role != "user" {
		who = string(h.Agent)
	}
	if rs := []rune(text); len(rs) > quotedChars {
		text = string(rs[:quotedChars]) + " (cut)"
	}
	text = marker.Neutralise(strings.ToValidUTF8(text, "\uFFFD"))
	return "[" + who + "]\n> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ") + "\n"
}
