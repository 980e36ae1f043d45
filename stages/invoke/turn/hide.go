package turn

import (
	"slices"
	"strings"
)

// Hide are texts that must not leave the host, each with what stands in its
// place: values of an agent's environment, the path of its program.
type Hide map[string]string

// Text is s without what must not leave.
func (h Hide) Text(s string) string {
	v := newVeil(h)
	return v.write(s) + v.close()
}

// veil hides what arrives in pieces. It holds back the longest end of a piece
// that could begin something to hide, so that two pieces together do not show
// what neither shows alone.
type veil struct {
	hide []string // longest first: what lies inside a longer one is no way out
	with Hide
	held string
}

func newVeil(h Hide) *veil {
	v := &veil{with: h}
	for s := range h {
		if s != "" {
			v.hide = append(v.hide, s)
		}
	}
	slices.SortFunc(v.hide, func(a, b string) int { return len(b) - len(a) })
	return v
}

// write takes the next piece and returns what may be shown.
func (v *veil) write(s string) string { return v.scan(v.held+s, true) }

// close returns what turned out to be harmless.
func (v *veil) close() string { return v.scan(v.held, false) }

func (v *veil) scan(s string, more bool) string {
	v.held = ""
	if len(v.hide) == 0 {
		return s
	}
	var out strings.Builder
	from := 0 // what is before it is in out
	for i := 0; i < len(s); i++ {
		found, open := v.at(s[i:])
		if open && more {
			v.held = s[i:]
			s = s[:i]
			break
		}
		if found != "" {
			out.WriteString(s[from:i])
			out.WriteString(v.with[found])
			i += len(found) - 1
			from = i + 1
		}
	}
	out.WriteString(s[from:])
	return out.String()
}

// at is what s begins with; open means that a longer one may yet come.
func (v *veil) at(s string) (found string, open bool) {
	for _, h := range v.hide {
		if h[0] != s[0] {
			continue
		}
		if strings.HasPrefix(s, h) {
			return h, open
		}
		open = open || strings.HasPrefix(h, s)
	}
	return "", open
}
