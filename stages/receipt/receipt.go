package receipt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"witan/kernel"
	"witan/kernel/marker"
	"witan/kernel/receipts"
)

type mode int

const (
	none mode = iota
	lenient
	strict
)

type stage struct{ mode mode }

// Strict returns "receipt/strict": a missing or wrong receipt fails the attempt.
func Strict() kernel.Receipt { return stage{strict} }

// Lenient returns "receipt/lenient": what cannot be read is dropped, the text is kept.
func Lenient() kernel.Receipt { return stage{lenient} }

// None returns "receipt/none": no receipt is looked for.
func None() kernel.Receipt { return stage{none} }

func (s stage) Spec() kernel.Spec {
	name := [...]string{"none", "lenient", "strict"}[s.mode]
	doc := [...]string{"Keeps the text and looks for no receipt", "Reads a receipt if there is one; drops what it cannot read", "Refuses an attempt without a proper receipt"}[s.mode]
	return kernel.Spec{ID: "receipt/" + name, Version: 1, Class: kernel.Pure, Parallel: true, Touches: []string{"store"}, Doc: doc,
		Options: kernel.NoOptions, In: kernel.Schema[kernel.Reply](), Out: kernel.Schema[kernel.Claim]()}
}

func (s stage) Run(ctx context.Context, env kernel.Env, r kernel.Reply) (kernel.Claim, error) {
	raw, err := kernel.Canonical(r)
	if err != nil {
		return kernel.Claim{}, err
	}
	c := kernel.Claim{Version: kernel.ObjectVersion, Turn: r.Turn, Reply: kernel.Sum(raw), Source: "none",
		Claims: []kernel.ClaimText{}, Outcomes: append([]kernel.Outcome{}, r.Outcomes...)}
	if !r.Delivery.IsZero() {
		d, err := kernel.GetObject[kernel.Delivery](ctx, env.Packs, r.Delivery)
		if err != nil {
			return c, err
		}
		c.Session = d.Session
	}
	text := ""
	if !r.Text.IsZero() {
		b, err := env.Packs.Get(ctx, r.Text)
		if err != nil {
			return c, err
		}
		text = string(b)
	}
	t, err := kernel.GetObject[kernel.Turn](ctx, env.Packs, r.Turn)
	if err != nil {
		return c, err
	}
	if s.mode != none {
		if err := s.read(&c, t, r, text); err != nil {
			return c, err
		}
	}
	if text = marker.Visible(text); text != "" {
		if c.Text, err = env.Packs.Put(ctx, "text", []byte(text)); err != nil {
			return c, err
		}
	}
	unknown, err := artifacts(ctx, env.Packs, &c, t, r)
	for _, name := range unknown {
		c.Dropped = append(c.Dropped, "artifact "+strconv.Quote(name))
	}
	return c, err
}

// read looks for the receipt in both places and takes it into the claim.
func (s stage) read(c *kernel.Claim, t kernel.Turn, r kernel.Reply, text string) error {
	rec, err := s.find(t, r, text)
	if err != nil {
		var e *receipts.Error
		if !errors.As(err, &e) {
			return err
		}
		if s.mode == strict {
			return &kernel.Failure{Class: kernel.ClassProtocol, Reason: e.Code, Text: "the receipt" + strings.TrimPrefix(e.Error(), e.Code)}
		}
		rec.dropped = append(rec.dropped, e.Code)
	}
	c.Dropped = rec.dropped
	if rec.raw == nil && len(rec.dropped) == 0 {
		rec.source, rec.raw = "synthetic", synthetic(t)
	}
	if rec.raw == nil {
		return nil
	}
	c.Source, c.Receipt = rec.source, rec.raw
	var body struct {
		Claims   []kernel.ClaimText `json:"claims"`
		Findings []finding          `json:"findings"`
	}
	if err := json.Unmarshal(rec.raw, &body); err != nil {
		return kernel.E("receipt.read", kernel.Internal, err, "a receipt that was read cannot be read")
	}
	c.Claims = append(c.Claims, body.Claims...)
	for i, f := range body.Findings {
		c.Outcomes = append(c.Outcomes, f.outcome(t.Agent, c.Reply, i))
	}
	return nil
}

// found is a receipt, or, with raw nil, what was dropped of one.
type found struct {
	source  string
	raw     json.RawMessage
	dropped []string
}

// find reads the receipt of the tool and the one in the text. The tool's counts
// where only one of them can be read, which lenient reading alone allows.
func (s stage) find(t kernel.Turn, r kernel.Reply, text string) (found, error) {
	exp := receipts.ExpectOf(t)
	var all []found
	var bad error
	parse := func(source string, raw []byte) {
		c, dropped, err := receipts.Parse(raw, exp, s.mode == strict)
		if err == nil {
			all = append(all, found{source, c, dropped})
		} else if bad == nil {
			bad = err
		}
	}
	if len(r.Receipt) > 0 {
		parse("mcp", r.Receipt)
	}
	inText, ok := marker.Receipt(text)
	if ok {
		parse("text", []byte(inText))
	}
	switch {
	case len(all) == 2 && !bytes.Equal(all[0].raw, all[1].raw):
		return found{}, &receipts.Error{Code: receipts.Mismatch, What: "the receipt in the text differs from the one of the tool"}
	case bad != nil && (s.mode == strict || len(all) == 0):
		return found{}, bad
	case len(all) > 0:
		return all[0], bad
	case s.mode == strict:
		return found{}, &receipts.Error{Code: receipts.Missing, What: "the answer does not end with a receipt"}
	}
	return found{}, nil
}

// finding is one of a receipt.
type finding struct {
	Severity string `json:"severity"`
	Stance   string `json:"stance"`
	Title    string `json:"title"`
	Detail   string `json:"detail"`
	Path     string `json:"path"`
	Line     int    `json:"line"`
}

func (f finding) outcome(agent kernel.AgentID, reply kernel.Digest, i int) kernel.Outcome {
	return kernel.Outcome{Type: "finding", ID: kernel.OutcomeID(kernel.DeriveID(kernel.FindingPrefix, reply.String(), strconv.Itoa(i))), Agent: agent,
		Severity: f.Severity, Stance: f.Stance, Title: f.Title, Detail: f.Detail, Path: f.Path, Line: f.Line}
}
