package receipts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"witan/kernel"
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
	Pointer string // JSON pointer, for receipt_invalid; "" is the whole receipt
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

	Candidate string // what a verification is about, when there is one
}

// ExpectOf is what the receipt of a turn is checked against.
func ExpectOf(t kernel.Turn) Expect {
	var x struct {
		Item struct {
			ID string `json:"id"`
		} `json:"item"`
		Candidate string `json:"candidate"`
	}
	_ = json.Unmarshal(t.Extra, &x) // neither is the ordinary case
	e := Expect{Phase: t.Phase, Round: t.Round, Snapshot: t.Snapshot}
	switch t.Phase {
	case "work":
		e.Item = x.Item.ID
	case "verification":
		e.Candidate = x.Candidate
	}
	return e
}

// Parse reads raw and returns it in canonical form. In lenient mode dropped
// lists the pointers of what was left out; only a receipt that is no JSON
// object, has a duplicate key, is too large or stale fails then.
func Parse(raw []byte, exp Expect, strict bool) (canonical json.RawMessage, dropped []string, err error) {
	m, bad := read(raw)
	if bad != nil {
		return nil, nil, bad
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
	if p.rules(m); p.err != nil {
		return nil, nil, p.err
	}
	out, cerr := kernel.Canonical(m)
	if cerr != nil {
		return nil, nil, &Error{Code: Invalid, What: cause(cerr)}
	}
	return out, p.dropped, nil
}

// read takes raw apart: one object within its bounds, without duplicate keys.
func read(raw []byte) (map[string]any, *Error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > MaxBytes {
		return nil, &Error{Code: TooLarge, What: fmt.Sprintf("%d bytes, at most %d", len(raw), MaxBytes)}
	}
	if !utf8.Valid(raw) {
		return nil, &Error{Code: Invalid, What: "not UTF-8"}
	}
	c, err := kernel.CanonicalJSON(raw)
	if err != nil {
		return nil, &Error{Code: Invalid, What: cause(err)}
	}
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(c))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil || m == nil {
		return nil, &Error{Code: Invalid, What: "not an object"}
	}
	return m, nil
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
	if v, ok := m["candidate"].(string); ok && exp.Candidate != "" && v != exp.Candidate {
		return bad("it is of another candidate")
	}
	return nil
}

func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
