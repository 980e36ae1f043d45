package tree

import (
	"strings"
	"unicode/utf8"
)

// Bytes that are not UTF-8 travel as U+F780 to U+F7FF, one rune a byte. Those
// runes themselves, were they in a name, travel as their bytes. Every other name
// stays as it is, so that only strange ones look strange.
const escapeBase = 0xF700

func isEscape(r rune) bool { return r >= escapeBase+0x80 && r <= escapeBase+0xFF }

// EncodePath makes valid UTF-8 of a file name or path, reversibly.
func EncodePath(p string) string {
	if utf8.ValidString(p) && strings.IndexFunc(p, isEscape) < 0 {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRuneInString(p[i:])
		if r == utf8.RuneError && n == 1 || isEscape(r) {
			for _, c := range []byte(p[i : i+n]) {
				b.WriteRune(escapeBase + rune(c))
			}
		} else {
			b.WriteString(p[i : i+n])
		}
		i += n
	}
	return b.String()
}

// DecodePath gives back what EncodePath was given.
func DecodePath(p string) string {
	if strings.IndexFunc(p, isEscape) < 0 {
		return p
	}
	b := make([]byte, 0, len(p))
	for _, r := range p {
		if isEscape(r) {
			b = append(b, byte(r-escapeBase))
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}
