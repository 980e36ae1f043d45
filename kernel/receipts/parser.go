package receipts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"witan/kernel/secrets"
)

// parser checks values; in lenient mode it removes what is wrong.
type parser struct {
	strict  bool
	dropped []string
	err     error // first one, strict mode only
}

// bad reports whether the value has to go.
func (p *parser) bad(at, what string, args ...any) bool {
	if p.strict && p.err == nil {
		p.err = &Error{Code: Invalid, Pointer: at, What: fmt.Sprintf(what, args...)}
	}
	p.dropped = append(p.dropped, at)
	return true
}

// rules are those that span several keys.
func (p *parser) rules(m map[string]any) {
	d, ok := m["decision"].(map[string]any)
	if !ok {
		return
	}
	const at = "/decision"
	list, _ := d["deliverables"].([]any)
	if d["status"] == "completed" && len(list) == 0 {
		p.bad(at+"/deliverables", "completed needs at least one")
		delete(m, "decision")
	}
	for _, k := range []string{"handoff", "next"} {
		if _, ok := d[k]; ok && d["status"] != "continue" {
			p.bad(at+"/"+k, "goes with continue only")
			delete(d, k)
		}
	}
}

// object checks m's members; it reports whether a required one is missing or wrong.
func (p *parser) object(m map[string]any, keys map[string]field, at string) (broken bool) {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		f, ok := keys[k]
		here := at + "/" + pointer(k)
		if !ok {
			if p.strict {
				p.bad(here, "unknown key")
			}
			delete(m, k)
			continue
		}
		if p.value(m, k, f, here) {
			delete(m, k)
		}
	}
	for _, k := range sorted(keys) {
		if _, ok := m[k]; !ok && keys[k].required {
			if p.strict {
				p.bad(at+"/"+k, "missing")
			}
			broken = true
		}
	}
	return broken
}

// pointer is a key as a part of a JSON pointer. Keys are the agent's: long ones
// are cut, and what a terminal or a log must not hold is replaced.
func pointer(k string) string {
	k = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, secrets.Redact(clip(k)))
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
}

func sorted(m map[string]field) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// value checks one member; true means that it has to go.
func (p *parser) value(m map[string]any, k string, f field, at string) bool {
	switch v := m[k]; f.kind {
	case "string", "enum":
		s, ok := v.(string)
		if !ok {
			return p.bad(at, "not a string")
		}
		if f.kind == "enum" && !slices.Contains(f.of, s) {
			return p.bad(at, "not one of %s", strings.Join(f.of, ", "))
		}
		return p.text(s, at)
	case "int":
		if _, ok := v.(json.Number); !ok {
			return p.bad(at, "not a whole number")
		}
	case "list":
		return p.list(m, k, at, MaxList, f.min, func(e any, at string) bool {
			s, ok := e.(string)
			if !ok {
				return p.bad(at, "not a string")
			}
			return p.text(s, at)
		})
	case "claims":
		return p.list(m, k, at, MaxList, 0, p.nested(claimKeys))
	case "findings":
		return p.list(m, k, at, MaxList, 0, p.nested(findingKeys))
	case "items":
		return p.list(m, k, at, MaxItems, 1, p.nested(itemKeys))
	case "decision":
		return p.nested(decisionKeys)(v, at)
	case "plan":
		// Half a plan is another plan: what is wrong in it takes it away.
		n := len(p.dropped)
		return p.nested(planKeys)(v, at) || len(p.dropped) > n
	}
	return false
}

func (p *parser) nested(keys map[string]field) func(any, string) bool {
	return func(v any, at string) bool {
		m, ok := v.(map[string]any)
		if !ok {
			return p.bad(at, "not an object")
		}
		if p.object(m, keys, at) {
			p.dropped = append(p.dropped, at)
			return true
		}
		return false
	}
}

// list checks the elements; wrong ones go, and the list itself if it is too
// long or too short.
func (p *parser) list(m map[string]any, k, at string, most, least int, each func(any, string) bool) bool {
	l, ok := m[k].([]any)
	if !ok {
		return p.bad(at, "not a list")
	}
	if len(l) > most {
		return p.bad(at, "%d elements, at most %d", len(l), most)
	}
	out := []any{}
	for i, e := range l {
		if !each(e, fmt.Sprintf("%s/%d", at, i)) {
			out = append(out, e)
		}
	}
	if len(out) < least {
		return p.bad(at, "at least %d element is needed", least)
	}
	m[k] = out
	return false
}

func (p *parser) text(s, at string) bool {
	if n := utf8.RuneCountInString(s); n > MaxString {
		return p.bad(at, "%d characters, at most %d", n, MaxString)
	}
	for _, r := range s {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return p.bad(at, "control character U+%04X", r)
		}
	}
	if len(secrets.Find(s)) > 0 {
		return p.bad(at, "looks like a secret")
	}
	return false
}
