// Package receipt reads the statement that closes a turn: from the receipt tool,
// or from the end of the text. It is pure.
package receipt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

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
		Claims: []kernel.ClaimText{}, Outcomes: r.Outcomes}
	if c.Outcomes == nil {
		c.Outcomes = []kernel.Outcome{}
	}
	text := ""
	if !r.Text.IsZero() {
		b, err := env.Packs.Get(ctx, r.Text)
		if err != nil {
			return c, err
		}
		text = string(b)
	}
	if s.mode == none {
		return c, keep(ctx, env, &c, text)
	}
	t, err := kernel.GetObject[kernel.Turn](ctx, env.Packs, r.Turn)
	if err != nil {
		return c, err
	}
	if err := s.read(&c, t, r, text); err != nil {
		var e *receipts.Error
		if s.mode == strict || !errors.As(err, &e) {
			return c, failure(err)
		}
		c.Source, c.Receipt, c.Dropped = "none", nil, append(c.Dropped, e.Code)
	}
	return c, keep(ctx, env, &c, marker.Visible(text))
}

func keep(ctx context.Context, env kernel.Env, c *kernel.Claim, text string) (err error) {
	if text != "" {
		c.Text, err = env.Packs.Put(ctx, "text", []byte(text))
	}
	return err
}

func failure(err error) error {
	var e *receipts.Error
	if !errors.As(err, &e) {
		return err
	}
	return &kernel.Failure{Class: kernel.ClassProtocol, Reason: e.Code, Text: e.Error()}
}

// read finds the receipt. Both forms may be there; then they must be equal.
func (s stage) read(c *kernel.Claim, t kernel.Turn, r kernel.Reply, text string) error {
	exp := receipts.Expect{Phase: t.Phase, Round: t.Round, Snapshot: t.Snapshot, Item: item(t)}
	inText, ok := marker.Receipt(text)
	if !ok && len(r.Receipt) == 0 {
		if s.mode == strict {
			return &receipts.Error{Code: receipts.Missing, What: "the answer does not end with a receipt"}
		}
		return nil
	}
	var fromText, fromTool json.RawMessage
	var dropped []string
	var err error
	if ok {
		if fromText, dropped, err = receipts.Parse([]byte(inText), exp, s.mode == strict); err != nil {
			return err
		}
		c.Source, c.Receipt = "text", fromText
	}
	if len(r.Receipt) > 0 {
		if fromTool, dropped, err = receipts.Parse(r.Receipt, exp, s.mode == strict); err != nil {
			return err
		}
		c.Source, c.Receipt = "mcp", fromTool
	}
	if fromText != nil && fromTool != nil && !bytes.Equal(fromText, fromTool) {
		return &receipts.Error{Code: receipts.Mismatch, What: "the receipt in the text differs from the one of the tool"}
	}
	c.Dropped = dropped
	var body struct {
		Claims []kernel.ClaimText `json:"claims"`
	}
	if err := json.Unmarshal(c.Receipt, &body); err != nil {
		return &receipts.Error{Code: receipts.Invalid, Pointer: "/claims", What: err.Error()}
	}
	c.Claims = append(c.Claims, body.Claims...)
	return nil
}

func item(t kernel.Turn) string {
	var x struct {
		Item struct {
			ID string `json:"id"`
		} `json:"item"`
	}
	_ = json.Unmarshal(t.Extra, &x) // no item is the ordinary case
	return x.Item.ID
}
