package council

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"unicode/utf8"

	"witan/kernel"
	"witan/kernel/marker"
	"witan/kernel/receipts"
)

// MaxFindings bounds what one turn reports.
const MaxFindings = 64

// TurnConfig is what a Turn needs.
type TurnConfig struct {
	Env    kernel.Env  // Run, Attempt, Ask and Emit are used
	Turn   kernel.Turn // whose receipt is expected
	Strict bool        // how the receipt is read
	// Lookup finds an item of the pack by id; nil finds nothing.
	Lookup func(ctx context.Context, id string) (string, error)
}

// Turn is the Handler of an ordinary turn: it keeps what the agent hands over
// until the host collects it. It is safe for concurrent use.
type Turn struct {
	cfg TurnConfig

	mu       sync.Mutex // guards all below
	receipt  kernel.ReceiptBytes
	dropped  []string
	findings []kernel.Outcome
	waiting  int
}

var _ Handler = (*Turn)(nil)

// NewTurn returns the handler of one turn.
func NewTurn(c TurnConfig) *Turn { return &Turn{cfg: c} }

// Collect returns the canonical receipt, or nil, and the findings so far, in
// the order in which they came. What it returned once stays as it was.
func (t *Turn) Collect() (kernel.ReceiptBytes, []kernel.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.receipt), append([]kernel.Outcome(nil), t.findings...)
}

// Dropped lists the pointers of what lenient reading left out of the receipt.
func (t *Turn) Dropped() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.dropped...)
}

// Waiting reports whether a person is being asked: such a turn is not silent.
func (t *Turn) Waiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting > 0
}

// Receipt implements Handler. One that cannot be used is not kept, so that the
// agent can send a better one.
func (t *Turn) Receipt(_ context.Context, raw json.RawMessage) error {
	c, dropped, err := receipts.Parse(raw, receipts.ExpectOf(t.cfg.Turn), t.cfg.Strict)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.receipt == nil:
		t.receipt, t.dropped = c, dropped
	case !bytes.Equal(t.receipt, c):
		return &receipts.Error{Code: receipts.Mismatch, What: "another receipt has been taken for this turn"}
	}
	return nil
}

// Context implements Handler. Markers of ours in the text lose their meaning.
func (t *Turn) Context(ctx context.Context, id string) (string, error) {
	const op = "council.Context"
	if t.cfg.Lookup == nil {
		return "", kernel.E(op, kernel.NotFound, nil, "this turn has no item to read")
	}
	text, err := t.cfg.Lookup(ctx, id)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(text) {
		return "", kernel.E(op, kernel.Unsupported, nil, "the item is not text").WithNext("open its path instead")
	}
	return marker.Neutralise(text), nil
}

// questionOptions are those of an input gate of an agent.
var questionOptions = []kernel.GateOption{{ID: "reply", Name: "Reply", Kind: "reply"}, {ID: "reject", Name: "Do not answer", Kind: "reject_once"}}

// Ask implements Handler. The same question again is the same gate, so that a
// client that gave up waiting can come back for the answer.
func (t *Turn) Ask(ctx context.Context, question string, options []string) (string, error) {
	const op = "council.Ask"
	if t.cfg.Env.Ask == nil {
		return "", kernel.E(op, kernel.Unsupported, nil, "nobody can be asked in this run").WithNext("go on without the answer, and say what you assumed")
	}
	t.wait(1)
	defer t.wait(-1)
	parts := [][]byte{[]byte(question)}
	summary := question
	for i, o := range options {
		parts = append(parts, []byte{0}, []byte(o))
		if i == 0 {
			summary += "\nAnswers it offers:"
		}
		summary += "\n- " + o
	}
	key := kernel.SumDomain("council/ask/1", parts...)
	a, err := t.cfg.Env.Ask(ctx, kernel.Question{Kind: kernel.GateInput, Key: key, Request: key.String(), Summary: summary, Options: questionOptions})
	switch {
	case err != nil:
		return "", err
	case a.Option != "reply":
		return "", kernel.E(op, kernel.Cancelled, nil, "the person did not answer").WithNext("go on without the answer, and say what you assumed")
	}
	return marker.Neutralise(a.Text), nil
}

func (t *Turn) wait(n int) {
	t.mu.Lock()
	t.waiting += n
	t.mu.Unlock()
}

// Finding implements Handler. The same finding again is one, with the same id.
func (t *Turn) Finding(_ context.Context, o kernel.Outcome) (kernel.OutcomeID, error) {
	o.Type, o.ID, o.Agent = "finding", "", t.cfg.Turn.Agent
	content, err := kernel.Canonical(o)
	if err != nil {
		return "", err
	}
	o.ID = kernel.OutcomeID(kernel.DeriveID(kernel.FindingPrefix, string(t.cfg.Env.Run), string(t.cfg.Env.Attempt), string(content)))
	known, err := t.keep(o)
	if err != nil || known {
		return o.ID, err
	}
	if t.cfg.Env.Emit != nil {
		t.cfg.Env.Emit(kernel.Event{Type: "finding", Object: &o})
	}
	return o.ID, nil
}

func (t *Turn) keep(o kernel.Outcome) (known bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.findings {
		if f.ID == o.ID {
			return true, nil
		}
	}
	if len(t.findings) >= MaxFindings {
		return false, kernel.E("council.Finding", kernel.Invalid, nil, "a turn reports at most %d findings", MaxFindings).WithNext("put the rest into your answer")
	}
	t.findings = append(t.findings, o)
	return false, nil
}
