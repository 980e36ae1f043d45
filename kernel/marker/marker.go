// Package marker knows the control markers that share a channel with text: the
// turn block and the receipt. It hides them while an answer streams, finds the
// receipt at the end of a text, and makes other agents' text harmless.
package marker

import "strings"

// The markers of docs/cli.md; an agent writes the receipt's, we write the turn's.
const (
	TurnOpen     = "<witan-turn>"
	TurnClose    = "</witan-turn>"
	ReceiptOpen  = "<witan-receipt>"
	ReceiptClose = "</witan-receipt>"
)

// prefix begins every marker.
const prefix = "<witan-"

// Neutralise makes text safe to quote in a prompt: whatever could be read as a
// marker of ours keeps its look and loses its meaning.
func Neutralise(s string) string {
	r := strings.NewReplacer("<witan-", "‹witan-", "</witan-", "‹/witan-")
	return r.Replace(s)
}

// Hider hides receipts in streamed text. It holds back the longest suffix that
// could begin a marker; once one has begun it hides the rest up to its end. The
// zero value is ready. It is not safe for concurrent use.
type Hider struct {
	held   string          // may be the beginning of a marker
	hidden strings.Builder // a begun marker and what follows it
	inside bool
}

// Write takes the next piece and returns what may be shown.
func (h *Hider) Write(s string) string {
	var out strings.Builder
	s = h.held + s
	h.held = ""
	for s != "" {
		if h.inside {
			s = h.skip(s)
			continue
		}
		i := strings.Index(s, ReceiptOpen)
		if i >= 0 {
			out.WriteString(s[:i])
			h.inside = true
			h.hidden.WriteString(ReceiptOpen)
			s = s[i+len(ReceiptOpen):]
			continue
		}
		keep := suffix(s, ReceiptOpen)
		out.WriteString(s[:len(s)-keep])
		h.held = s[len(s)-keep:]
		return out.String()
	}
	return out.String()
}

// skip hides up to the closing marker and returns what is behind it.
func (h *Hider) skip(s string) string {
	from := max(0, h.hidden.Len()-len(ReceiptClose)) // a marker may span two pieces
	h.hidden.WriteString(s)
	all := h.hidden.String()
	i := strings.Index(all[from:], ReceiptClose)
	if i < 0 {
		return ""
	}
	i += from
	h.inside = false
	h.hidden.Reset()
	return all[i+len(ReceiptClose):]
}

// Close ends the stream and returns what turned out not to be a marker: a held
// suffix, or a receipt that was begun and never closed.
func (h *Hider) Close() string {
	out := h.held
	if h.inside {
		out = h.hidden.String()
	}
	*h = Hider{}
	return out
}

// suffix is the length of the longest suffix of s that begins m.
func suffix(s, m string) int {
	for n := min(len(s), len(m)-1); n > 0; n-- {
		if strings.HasSuffix(s, m[:n]) {
			return n
		}
	}
	return 0
}

// Visible is the whole text with its receipts hidden, as a Hider shows it.
func Visible(s string) string {
	var h Hider
	out := h.Write(s)
	return strings.TrimRight(out+h.Close(), " \t\r\n")
}

// Receipt finds the last complete receipt of a text. ok is false when there is none.
func Receipt(s string) (body string, ok bool) {
	i := strings.LastIndex(s, ReceiptOpen)
	if i < 0 {
		return "", false
	}
	body, _, ok = strings.Cut(s[i+len(ReceiptOpen):], ReceiptClose)
	return body, ok
}
