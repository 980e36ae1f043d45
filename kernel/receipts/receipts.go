// Package receipts reads the typed statement that closes a turn. It is pure.
//
// Strict reading refuses what it does not know; lenient reading ignores unknown
// keys, drops what it cannot read and says so. A duplicate key at any level
// makes a receipt invalid in both.
package receipts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"witan/kernel"
	"witan/kernel/secrets"
)

// Bounds of a receipt.
const (
	MaxBytes  = 64 << 10
	MaxString = 800 // characters
	MaxList   = 16
	MaxItems  = 64 // of a plan
)

// Codes of what can be wrong; stable.
const (
	Missing  = "receipt_missing"
	Invalid  = "receipt_invalid"
	Mismatch = "receipt_mismatch"
	Stale    = "receipt_stale"
	TooLarge = "receipt_too_large"
)

// Error says what is wrong and where.
type Error struct {
	Code    string
	Pointer string // JSON pointer, for receipt_invalid
	What    string
}

func (e *Error) Error() string {
	if e.Pointer != "" {
		return fmt.Sprintf("%s at %s: %s", e.Code, e.Pointer, e.What)
	}
	return e.Code + ": " + e.What
}

// Expect is what a receipt is checked against.
type Expect struct {
	Phase    string
	Round    int
	Snapshot kernel.Digest
	Item     string // work item, when there is one
}

// field describes one key.
type field struct {
	kind     string // string, int, list, claims, findings, decision, plan, enum
	required bool
	min      int // elements of a list
	of       []string
}

// common keys of every phase.
var common = map[string]field{
	"version": {kind: "int", required: true}, "phase": {kind: "string", required: true}, "summary": {kind: "string", required: true},
	"round": {kind: "int"}, "snapshot": {kind: "string"},
}

var verdicts = []string{"support", "contradict"}

// phases lists the further keys of each phase (docs/cli.md, receipts).
var phases = map[string]map[string]field{
	"respond": {"claims": {kind: "claims"}},
	"discuss": {"decision": {kind: "decision"}},
	"proposal": {"capabilities": {kind: "list", required: true, min: 1}, "intended_work": {kind: "list", required: true, min: 1},
		"deliverables": {kind: "list", required: true, min: 1}, "depends_on": {kind: "list", required: true}},
	"challenge": {"verdict": {kind: "enum", required: true, of: verdicts}, "findings": {kind: "findings", required: true},
		"plan": {kind: "plan"}, "support_plan": {kind: "string"}},
	"work": {"item": {kind: "string", required: true}, "artifacts": {kind: "list", required: true}, "claims": {kind: "claims", required: true},
		"findings": {kind: "findings"}},
	"synthesis": {"resolved": {kind: "list", required: true}, "artifacts": {kind: "list", required: true}, "claims": {kind: "claims", required: true}},
	"verification": {"candidate": {kind: "string", required: true}, "verdict": {kind: "enum", required: true, of: verdicts},
		"findings": {kind: "findings", required: true}, "claims": {kind: "claims", required: true}},
}

var (
	claimKeys = map[string]field{"text": {kind: "string", required: true}, "command": {kind: "string"}, "exit": {kind: "int"},
		"path": {kind: "string"}, "hash": {kind: "string"}}
	findingKeys = map[string]field{"severity": {kind: "enum", required: true, of: []string{"high", "medium", "low", "info"}},
		"stance": {kind: "enum", of: verdicts}, "title": {kind: "string", required: true}, "detail": {kind: "string", required: true},
		"path": {kind: "string"}, "line": {kind: "int"}, "claim": {kind: "string"}}
	decisionKeys = map[string]field{"status": {kind: "enum", required: true, of: []string{"completed", "continue", "blocked", "needs-human"}},
		"reason": {kind: "string"}, "deliverables": {kind: "list"}, "handoff": {kind: "string"}, "next": {kind: "list"}}
	planKeys = map[string]field{"items": {kind: "items", required: true}, "finalizer": {kind: "string", required: true}}
	itemKeys = map[string]field{"id": {kind: "string", required: true}, "owner": {kind: "string", required: true},
		"role": {kind: "enum", required: true, of: []string{"worker", "integrator", "verifier"}}, "objective": {kind: "string", required: true},
		"expected_output": {kind: "string", required: true}, "inputs": {kind: "list"}, "depends_on": {kind: "list"}}
)

// Parse reads raw and returns it in canonical form. In lenient mode dropped
// lists the pointers of what was left out; only a receipt that is no JSON
// object, has a duplicate key, is too large or stale fails then.
func Parse(raw []byte, exp Expect, strict bool) (canonical json.RawMessage, dropped []string, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > MaxBytes {
		return nil, nil, &Error{Code: TooLarge, What: fmt.Sprintf("%d bytes, at most %d", len(raw), MaxBytes)}
	}
	c, cerr := kernel.CanonicalJSON(raw)
	if cerr != nil {
		return nil, nil, &Error{Code: Invalid, Pointer: "/", What: cause(cerr)}
	}
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(c))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil || m == nil {
		return nil, nil, &Error{Code: Invalid, Pointer: "/", What: "not an object"}
	}
	keys, ok := phases[exp.Phase]
	if !ok {
		return nil, nil, &Error{Code: Stale, What: "phase " + exp.Phase + " takes no receipt"}
	}
	if err := stale(m, exp); err != nil {
		return nil, nil, err
	}
	p := &parser{strict: strict}
	all := map[string]field{}
	for _, part := range []map[string]field{common, keys} {
		for k, f := range part {
			all[k] = f
		}
	}
	p.object(m, all, "")
	if p.err != nil {
		return nil, nil, p.err
	}
	if v, _ := m["version"].(json.Number); v.String() != "1" {
		return nil, nil, &Error{Code: Invalid, Pointer: "/version", What: "only version 1 is known"}
	}
	if err := rules(m, strict); err != nil {
		return nil, nil, err
	}
	out, cerr := kernel.Canonical(m)
	if cerr != nil {
		return nil, nil, &Error{Code: Invalid, Pointer: "/", What: cause(cerr)}
	}
	return out, p.dropped, nil
}

func cause(err error) string {
	if e, ok := err.(*kernel.Error); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// stale refuses a receipt of another phase, round, snapshot or item.
func stale(m map[string]any, exp Expect) error {
	bad := func(what string) error { return &Error{Code: Stale, What: what} }
	if v, ok := m["phase"].(string); ok && v != exp.Phase {
		return bad(fmt.Sprintf("it is of phase %q, not %q", clip(v), exp.Phase))
	}
	if v, ok := m["round"].(json.Number); ok && v.String() != fmt.Sprint(exp.Round) {
		return bad(fmt.Sprintf("it is of round %s, not %d", v, exp.Round))
	}
	if v, ok := m["snapshot"].(string); ok && v != exp.Snapshot.String() {
		return bad("it is of another snapshot")
	}
	if v, ok := m["item"].(string); ok && exp.Item != "" && v != exp.Item {
		return bad(fmt.Sprintf("it is of item %q, not %q", clip(v), exp.Item))
	}
	return nil
}

// rules are those that span several keys.
func rules(m map[string]any, strict bool) error {
	d, ok := m["decision"].(map[string]any)
	if !ok {
		return nil
	}
	status, _ := d["status"].(string)
	list, _ := d["deliverables"].([]any)
	if status == "completed" && len(list) == 0 {
		if strict {
			return &Error{Code: Invalid, Pointer: "/decision/deliverables", What: "completed needs at least one"}
		}
		delete(m, "decision")
	}
	if status != "continue" {
		delete(d, "handoff")
		delete(d, "next")
	}
	return nil
}

func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

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

// object checks m's members; it reports whether a required one is missing or wrong.
func (p *parser) object(m map[string]any, keys map[string]field, at string) (broken bool) {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		f, ok := keys[k]
		here := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
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
		return p.nested(planKeys)(v, at)
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
