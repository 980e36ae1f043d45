package deliver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"witan/kernel"
	"witan/kernel/marker"
)

// writer builds what a model reads; complete becomes false when something was
// left out for its length.
type writer struct {
	strings.Builder
	packs    kernel.Packs
	turn     kernel.Turn
	snap     kernel.Snapshot
	complete bool
}

func (w *writer) add(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func (w *writer) prose(ctx context.Context) error {
	if !w.turn.Continue {
		w.introduction()
		if err := w.instructions(ctx); err != nil {
			return err
		}
	}
	if err := w.history(ctx); err != nil {
		return err
	}
	w.add("\n# Task\n%s\n", w.snap.Text)
	w.attachments()
	if err := w.given(ctx); err != nil {
		return err
	}
	if err := w.phase(); err != nil {
		return err
	}
	w.rules()
	return nil
}

func (w *writer) introduction() {
	t := w.turn
	names := make([]string, len(t.Members))
	for i, id := range t.Members {
		names[i] = string(id)
	}
	w.add("You are %q, ", t.Agent)
	if len(names) > 1 {
		w.add("one of %d agents (%s) working on a task", len(names), strings.Join(names, ", "))
	} else {
		w.add("an agent working on a task")
	}
	if w.snap.Workspace.Path != "" {
		w.add(" in the folder %s", w.snap.Workspace.Path)
	}
	w.add(".\n")
	if t.Role != "" {
		w.add("Your role: %s.\n", t.Role)
	}
	if len(names) > 1 && t.Phase == "respond" {
		w.add("The others work on the same task at the same time; you cannot see their answers, and they cannot see yours.\n")
	}
}

func (w *writer) instructions(ctx context.Context) error {
	if w.snap.Instructions.IsZero() {
		return nil
	}
	b, err := w.packs.Get(ctx, w.snap.Instructions)
	if err != nil {
		return err
	}
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	if len(text) > instructionsBytes {
		text = strings.ToValidUTF8(text[:instructionsBytes], "") + "\n(cut)"
		w.complete = false
	}
	w.add("\n# Instructions of the workspace (AGENTS.md)\n%s\n", text)
	return nil
}

// history adds the earlier messages this agent has not seen: for a continuing
// session those behind its watermark, otherwise all that fit.
func (w *writer) history(ctx context.Context) error {
	entries := w.snap.History
	if w.turn.Continue {
		entries = slices.DeleteFunc(slices.Clone(entries), func(h kernel.HistoryEntry) bool { return h.TurnSeq <= w.turn.Seen })
	}
	if len(entries) == 0 {
		return nil
	}
	texts := make([]string, len(entries))
	for i, h := range entries {
		raw, err := w.packs.Get(ctx, h.Text)
		if err != nil {
			return err
		}
		texts[i] = w.quote(h, string(raw))
	}
	w.add("\n# Conversation so far\n")
	gap := false
	for i, keep := range choose(entries, texts) {
		if !keep {
			gap, w.complete = true, false
			continue
		}
		if gap {
			w.add("(earlier messages left out)\n")
			gap = false
		}
		w.WriteString(texts[i])
	}
	return nil
}

// choose keeps the first and the last message of the person, and then as many
// of the latest messages as fit without a hole.
func choose(entries []kernel.HistoryEntry, texts []string) (keep []bool) {
	keep = make([]bool, len(entries))
	left := historyChars
	take := func(i int) {
		if !keep[i] {
			keep[i] = true
			left -= utf8.RuneCountInString(texts[i])
		}
	}
	isUser := func(h kernel.HistoryEntry) bool { return h.Role == "user" }
	if first := slices.IndexFunc(entries, isUser); first >= 0 {
		last := first
		for i, h := range entries {
			if isUser(h) {
				last = i
			}
		}
		take(first)
		take(last)
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if !keep[i] && utf8.RuneCountInString(texts[i]) > left {
			break
		}
		take(i)
	}
	return keep
}

// quote marks every line of a message as somebody's words.
func (w *writer) quote(h kernel.HistoryEntry, text string) string {
	who := string(h.Agent)
	switch h.Role {
	case "user":
		who = "person"
	case "system":
		who = "system"
	}
	text = strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\n")
	if rs := []rune(text); h.Role != "user" && len(rs) > quotedChars {
		text = string(rs[:quotedChars]) + " (cut)"
		w.complete = false
	}
	return "[" + who + "]\n> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n"
}

func (w *writer) attachments() {
	if len(w.snap.Attachments) == 0 {
		return
	}
	w.add("\n# Attachments\n")
	for _, a := range w.snap.Attachments {
		w.add("- %s: %s (%s, %d bytes)\n", a.ID, a.Display, a.MIME, a.Bytes)
	}
}

func (w *writer) rules() {
	w.add("\n# Rules\n")
	if w.turn.Write {
		w.add("- You may change files in the folder. Do not commit: that is done for you.\n")
	} else {
		w.add("- Read only: do not create, change or delete files in the folder; attempts are refused.\n")
	}
	if w.turn.OutputDir != "" {
		w.add("- Files you want to hand over go to %s.\n", w.turn.OutputDir)
	}
	w.add("- Reply in the language of the person's latest message.\n")
	w.add("- Close with a receipt: with the tool receipt where you have it, else as the last thing in your answer, one JSON object between the tags %s and %s, each in angle brackets. "+
		"Its keys: version (1), phase (%q), summary (one sentence)%s.\n", name(marker.ReceiptOpen), name(marker.ReceiptClose), w.turn.Phase, keys(w.turn))
	if w.turn.Repair == "receipt" {
		w.add("- Without a complete receipt the turn does not count. No other keys; strings of at most 800 characters; lists of at most 16.\n")
	}
}

// name is a marker without what makes it one, so that the prompt holds none but
// the turn block.
func name(m string) string { return strings.Trim(m, "<>") }
