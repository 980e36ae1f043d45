package text

import (
	"strings"
	"unicode/utf8"
)

// decoder makes valid UTF-8 of pieces that may cut characters.
type decoder struct{ held []byte } // the beginning of a character

func (d *decoder) write(b []byte) string {
	b = append(d.held, b...)
	var out strings.Builder
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			break
		}
		r, n := utf8.DecodeRune(b)
		out.WriteRune(r) // U+FFFD for a byte that cannot be read
		b = b[n:]
	}
	d.held = append([]byte(nil), b...)
	return out.String()
}

// close gives one U+FFFD for a character without its end.
func (d *decoder) close() string {
	if len(d.held) == 0 {
		return ""
	}
	d.held = nil
	return string(utf8.RuneError)
}
