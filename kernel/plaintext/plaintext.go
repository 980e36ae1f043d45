// Package plaintext makes text of agents and tools safe to show: no terminal
// control sequence survives, and characters that deceive the eye become visible.
//
// It is for showing only. What is stored is always the original.
package plaintext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns s for a screen: escape sequences (also cut ones) are removed, a
// line repainted with carriage returns is left in its last state, backspaces
// are applied, bidirectional and zero-width controls are shown as ⟨U+202E⟩,
// other control characters are dropped, and bytes that are not UTF-8 become one
// U+FFFD each.
func Clean(s string) string {
	if plain(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	var line []rune
	pos := 0 // where the next rune of line goes, after \r
	flush := func() {
		for _, r := range line {
			if visible(r) {
				out.WriteRune(r)
			} else {
				fmt.Fprintf(&out, "⟨U+%04X⟩", r)
			}
		}
		line, pos = line[:0], 0
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0x1b || r >= 0x80 && r < 0xa0:
			i += escape(s[i:], r, n)
			continue
		case r == '\n':
			flush()
			out.WriteByte('\n')
		case r == '\r':
			if strings.HasPrefix(s[i+n:], "\n") {
				break
			}
			pos = 0
		case r == '\b':
			pos = max(0, pos-1)
		case r == '\t' || r >= 0x20 && r != 0x7f:
			if pos < len(line) {
				line[pos] = r
			} else {
				line = append(line, r)
			}
			pos++
		}
		i += n
	}
	flush()
	return out.String()
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// escape is the length of the control sequence at the start of s; a cut one
// reaches to the end.
func escape(s string, r rune, n int) int {
	kind := byte(0)
	body := n
	if r == 0x1b {
		if len(s) == n {
			return n
		}
		kind, body = s[n], n+1
	} else {
		kind = byte(r - 0x40) // C1: the 8-bit form of ESC + this
	}
	switch kind {
	case '[': // CSI: parameters, then one final byte
		for i := body; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i // broken off
			}
		}
		return len(s)
	case ']', 'P', 'X', '^', '_': // strings: up to BEL or ST
		for i := body; i < len(s); i++ {
			switch {
			case s[i] == 0x07 || s[i] == 0x18 || s[i] == 0x1a:
				return i + 1
			case s[i] == '\n': // never in one that is meant: the rest of a text must not vanish
				return i
			case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == 0x1b: // the next one begins
				return i
			case s[i] == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
				return i + 2
			}
		}
		return len(s)
	}
	if r != 0x1b {
		return n
	}
	i := n
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f { // intermediates
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		i++
	}
	return max(i, n)
}

// visible reports whether r may be shown as it is.
func visible(r rune) bool {
	switch {
	case r == '\t' || r == 0x200d: // the joiner of emoji
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return false
	case r == 0x200b, r == 0x200c, r == 0x2060, r == 0xfeff, r == 0x00ad, r == 0x2028, r == 0x2029:
		return false
	case r >= 0xe0000 && r <= 0xe007f: // tags
		return false
	}
	return unicode.IsPrint(r) || unicode.IsSpace(r) || r == utf8.RuneError || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Co, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
}
