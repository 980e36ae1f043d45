package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// Line holds every field that any line of a run has. Kinds of lines that are not
// known decode too, and change nothing.
type Line struct {
	Type         string     `json:"type"`
	Run          string     `json:"run"`
	Seq          int        `json:"seq"`
	At           time.Time  `json:"at"`
	Epoch        string     `json:"epoch"`
	Revision     uint64     `json:"revision"`
	Attempt      string     `json:"attempt"`
	Agent        string     `json:"agent"`
	Agents       []string   `json:"agents"`
	Plan         string     `json:"plan"`
	Permission   string     `json:"permission"`
	Conversation string     `json:"conversation"`
	Snapshot     string     `json:"snapshot"`
	Status       string     `json:"status"`
	Class        string     `json:"class"`
	Reason       string     `json:"reason"`
	Why          string     `json:"why"`
	Phase        string     `json:"phase"`
	Round        int        `json:"round"`
	Try          int        `json:"try"`
	Item         string     `json:"item"`
	Stage        string     `json:"stage"`
	Impl         string     `json:"impl"`
	In           string     `json:"in"`
	Out          string     `json:"out"`
	MS           int64      `json:"ms"`
	Delta        string     `json:"delta"`
	Text         string     `json:"text"`
	Code         string     `json:"code"`
	ID           string     `json:"id"`
	Kind         string     `json:"kind"`
	Title        string     `json:"title"`
	Severity     string     `json:"severity"`
	Stance       string     `json:"stance"`
	Detail       string     `json:"detail"`
	Path         string     `json:"path"`
	LineNo       int        `json:"line"`
	Evidence     []string   `json:"evidence"`
	Level        string     `json:"level"`
	Summary      string     `json:"summary"`
	Hash         string     `json:"hash"`
	Claim        string     `json:"claim"`
	Source       string     `json:"source"`
	Verdict      string     `json:"verdict"`
	Message      string     `json:"message"`
	Role         string     `json:"role"`
	TurnSeq      uint64     `json:"turn_seq"`
	Commit       string     `json:"commit"`
	Target       string     `json:"target"`
	Content      string     `json:"content"`
	Gate         string     `json:"gate"`
	Option       string     `json:"option"`
	By           string     `json:"by"`
	Options      []Option   `json:"options"`
	PlanHash     string     `json:"plan_hash"`
	Finalizer    string     `json:"finalizer"`
	Items        []WorkItem `json:"items"`
	State        string     `json:"state"`
	Usage        *Usage     `json:"usage"`
	Slots        []struct {
		Agent string `json:"agent"`
	} `json:"slots"`
	Receipt *struct {
		Summary string `json:"summary"`
		Stance  string `json:"stance"`
	} `json:"receipt"`
}

// Parse decodes one line. A field of another shape than the one known here is
// left out; only what is no JSON object is an error.
func Parse(raw json.RawMessage) (Line, error) {
	var l Line
	if b := bytes.TrimSpace(raw); len(b) == 0 || b[0] != '{' {
		return l, errors.New("it does not begin with a brace")
	}
	err := json.Unmarshal(raw, &l)
	if err == nil {
		return l, nil
	}
	var fields map[string]json.RawMessage
	if e := json.Unmarshal(raw, &fields); e != nil || fields == nil {
		return Line{}, err
	}
	return l, nil // json fills in what fits and goes on
}
