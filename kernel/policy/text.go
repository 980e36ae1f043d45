package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Longer texts than these cannot have been read by the person who allows them.
const (
	maxCommand = 16 << 10
	maxPath    = 4 << 10
	maxPaths   = 1000
	maxTitle   = 16 << 10
	maxCard    = 400 // characters of Summary and of Target
)

// blank are characters that count as letters, marks or symbols and show nothing.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // grapheme joiner
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1},
		{Lo: 0x180b, Hi: 0x180f, Stride: 1},
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // empty Braille pattern
		{Lo: 0x3164, Hi: 0x3164, Stride: 1},
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, // variation selectors
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1},
		{Lo: 0xfffc, Hi: 0xfffd, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}},
}

// plain reports whether a reader sees the character as what it is.
func plain(r rune) bool { return unicode.IsPrint(r) && !unicode.Is(blank, r) }

// tricky reports whether s has characters that hide, reorder or imitate. In a
// command, new lines and tabs are ordinary.
func tricky(s string, command bool) bool {
	if !utf8.ValidString(s) {
		return true
	}
	for _, r := range s {
		if !plain(r) && !(command && (r == '\n' || r == '\t')) {
			return true
		}
	}
	return false
}

// visible is s on one line, with every character to be seen, cut to n of them.
func visible(s string, n int) string {
	var b strings.Builder
	left := utf8.RuneCountInString(s)
	for i := 0; i < len(s); {
		if n == 0 {
			fmt.Fprintf(&b, "… (%d more characters)", left)
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "⟨%02X⟩", s[i])
		case r == '\n':
			b.WriteString(" ⏎ ")
		case r == '\t':
			b.WriteByte(' ')
		case plain(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
		i, n, left = i+size, n-1, left-1
	}
	return b.String()
}

// squeeze drops what differs by spacing only.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
