package marker

import "strings"

// The markers of docs/cli.md; an agent writes the receipt's, we write the turn's.
const (
	TurnOpen     = "<witan-turn>"
	TurnClose    = "</witan-turn>"
	ReceiptOpen  = "<witan-receipt>"
	ReceiptClose = "</witan-receipt>"
)

var harmless = strings.NewReplacer("<witan-", "‹witan-", "</witan-", "‹/witan-")

// Neutralise makes text safe to quote in a prompt: whatever could be read as a
// marker of ours keeps its look and loses its meaning.
func Neutralise(s string) string {
	return harmless.Replace(s)
}

// Hider hides the receipt of a streamed text. It holds back the longest suffix
// that could begin a marker; once one has begun it hides the rest, because only
// the end of the text tells a receipt from a mention of one. The zero value is
// ready. It is not safe for concurrent use.
type Hider struct {
	held   string          // may be the beginning of a marker
	hidden strings.Builder // a begun marker and what follows it
	inside bool
}

// Write takes the next piece and returns what may be shown.
func (h *Hider) Write(s string) string {
	if h.inside {
		h.hidden.WriteString(s)
		return ""
	}
	s = h.held + s
	h.held = ""
	if i := strings.Index(s, ReceiptOpen); i >= 0 {
		h.inside = true
		h.hidden.WriteString(s[i:])
		return s[:i]
	}
	keep := suffix(s, ReceiptOpen)
	h.held = s[len(s)-keep:]
	return s[:len(s)-keep]
}

// Close ends the stream and returns what turned out not to be a receipt.
func (h *Hider) Close() string {
	rest := h.held + h.hidden.String()
	*h = Hider{}
	before, _, _ := cut(rest)
	return before
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

// Visible is the whole text without its receipt, as a Hider shows it.
func Visible(s string) string {
	before, _, _ := cut(s)
	return strings.TrimRight(before, " \t\r\n")
}

// Receipt returns what stands between the markers of the receipt that ends the
// text. ok is false when the text does not end with one.
func Receipt(s string) (body string, ok bool) {
	_, body, ok = cut(s)
	return body, ok
}

// cut splits a text at the receipt that ends it; without one, before is the
// text. The closing marker is the last one, so that a receipt may mention it.
func cut(s string) (before, body string, ok bool) {
	rest, ok := strings.CutSuffix(strings.TrimRight(s, " \t\r\n"), ReceiptClose)
	if !ok {
		return s, "", false
	}
	i := strings.LastIndex(rest, ReceiptOpen)
	if i < 0 {
		return s, "", false
	}
	return s[:i], rest[i+len(ReceiptOpen):], true
}
