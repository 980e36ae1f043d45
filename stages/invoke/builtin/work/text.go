package work

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"witan/kernel/marker"
)

// Show makes text from the workspace (a file name, a commit subject, a test's
// message) safe for one line of a report: control characters, escapes, and what
// is invisible or turns the direction of writing become visible, and nothing in
// it can be taken for a marker of ours.
func Show(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return marker.Neutralise(b.String())
}

// ShowLines is Show for text of several lines.
func ShowLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = Show(l)
	}
	return strings.Join(lines, "\n")
}

// Code is Show as a Markdown code span.
func Code(s string) string {
	return "`" + strings.ReplaceAll(Show(s), "`", "'") + "`"
}

// Clip shortens s to at most n bytes, at a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

// Count writes a number with its noun: "1 file", "3 files".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Bytes writes a size as a person reads it.
func Bytes(n int64) string {
	switch {
	case n < 1<<10:
		return Count(int(n), "byte", "bytes")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// TooDeep reports whether b nests brackets deeper than a recursive parser
// should be trusted with. It counts brackets in strings too, which is fine for
// a guard.
func TooDeep(b []byte) bool {
	const most = 1000
	depth := 0
	for _, c := range b {
		switch c {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth = max(depth-1, 0)
		}
		if depth > most {
			return true
		}
	}
	return false
}
