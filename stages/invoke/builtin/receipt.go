package builtin

import (
	"slices"

	"witan/kernel"
	"witan/kernel/marker"
	"witan/kernel/receipts"
	"witan/kernel/secrets"
	"witan/stages/invoke/builtin/work"
)

// maxText bounds a string of a receipt, in bytes, which are not fewer than its
// characters.
const maxText = receipts.MaxString

// clean makes a string fit for a receipt: a secret in it, whoever it belongs
// to, would have the receipt refused.
func clean(s string) string { return work.Clip(secrets.Redact(work.ShowLines(s)), maxText) }

// list makes a list fit for a receipt; what is too much is counted in its last
// entry.
func list(all []string) []string {
	out := []string{}
	for _, s := range all[:min(len(all), maxBullets)] {
		if s = clean(s); s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if n := len(out) - receipts.MaxList + max(0, len(all)-maxBullets); n > 0 && len(out) >= receipts.MaxList {
		out = append(out[:receipts.MaxList-1], "and "+work.Count(n+1, "more", "more"))
	}
	return out
}

// refs makes a list of names, which are left out rather than changed.
func refs(all []string) []string {
	out := []string{}
	for _, s := range all {
		if s == clean(s) && !slices.Contains(out, s) && len(out) < receipts.MaxList {
			out = append(out, s)
		}
	}
	return out
}

func claimsOf(r work.Report) []kernel.ClaimText {
	out := make([]kernel.ClaimText, 0, len(r.Claims))
	for _, c := range r.Claims[:min(len(r.Claims), receipts.MaxList)] {
		c.Text, c.Command = clean(c.Text), secrets.Redact(c.Command)
		out = append(out, c)
	}
	return out
}

// findingsOf writes findings with one stance.
func findingsOf(all []kernel.Outcome, stance string) []any {
	out := []any{}
	for _, o := range all[:min(len(all), receipts.MaxList)] {
		f := map[string]any{"severity": o.Severity, "stance": stance, "title": clean(o.Title), "detail": clean(o.Detail)}
		if o.Path != "" {
			f["path"] = clean(o.Path)
		}
		if o.Line > 0 {
			f["line"] = o.Line
		}
		out = append(out, f)
	}
	return out
}

// receipt closes a turn of a phase.
func receipt(phase, summary string, keys map[string]any) (string, error) {
	m := map[string]any{"version": 1, "phase": phase, "summary": clean(summary)}
	for k, v := range keys {
		m[k] = v
	}
	b, err := kernel.Canonical(m)
	return "\n" + marker.ReceiptOpen + "\n" + string(b) + "\n" + marker.ReceiptClose + "\n", err
}
