package council

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"witan/kernel"
	"witan/kernel/plaintext"
	"witan/kernel/receipts"
)

// MaxContext bounds an item that an agent reads.
const MaxContext = 1 << 20

// maxAsking bounds the questions that one client has open at a time.
const maxAsking = 8

// call answers a call with the turn that is on. Its context ends with the
// request, the client and the turn.
func (e *Endpoint) call(ctx, gone context.Context, asking chan struct{}, t tool, raw json.RawMessage) *mcp.CallToolResult {
	r, done, on := e.begin()
	if !on {
		return refused(errOver())
	}
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	defer context.AfterFunc(gone, cancel)()
	text, err := answer(ctx, r.h, asking, t.name, raw)
	if err != nil && r.ctx.Err() != nil {
		err = errOver()
	}
	if err != nil {
		return refused(err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func errOver() error {
	return kernel.E("council.call", kernel.Cancelled, nil, "this turn is over")
}

// answer reads the arguments of a call and gives them to the turn.
func answer(ctx context.Context, h Handler, asking chan struct{}, name string, raw json.RawMessage) (string, error) {
	if name == "receipt" {
		return "The receipt is taken.", h.Receipt(ctx, raw)
	}
	args, err := receipts.Arguments(name, raw)
	if err != nil {
		return "", err
	}
	var a arguments
	if err := json.Unmarshal(args, &a); err != nil {
		return "", bad("", "a number is too large")
	}
	switch name {
	case "context":
		return item(ctx, h, a.ID)
	case "ask":
		return ask(ctx, h, asking, a)
	}
	o, err := a.finding()
	if err != nil {
		return "", err
	}
	id, err := h.Finding(ctx, o)
	return string(id), err
}

// arguments are those of all tools but the receipt.
type arguments struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Options  []string `json:"options"`
	Severity string   `json:"severity"`
	Stance   string   `json:"stance"`
	Title    string   `json:"title"`
	Detail   string   `json:"detail"`
	Path     string   `json:"path"`
	Line     *int64   `json:"line"`
	Evidence []string `json:"evidence"`
}

func bad(pointer, what string) error {
	return &receipts.Error{Code: receipts.BadArguments, Pointer: pointer, What: what}
}

func item(ctx context.Context, h Handler, id string) (string, error) {
	text, err := h.Context(ctx, id)
	if err == nil && len(text) > MaxContext {
		return "", kernel.E("council.context", kernel.Invalid, nil, "the item has %d bytes, and at most %d are given", len(text), MaxContext)
	}
	return text, err
}

func ask(ctx context.Context, h Handler, asking chan struct{}, a arguments) (string, error) {
	if strings.TrimSpace(a.Question) == "" {
		return "", bad("/question", "it is empty")
	}
	select {
	case asking <- struct{}{}:
	default:
		return "", kernel.E("council.ask", kernel.Conflict, nil, "%d questions are open already", maxAsking)
	}
	defer func() { <-asking }()
	return h.Ask(ctx, a.Question, a.Options)
}

// finding is the outcome that the arguments speak of; the handler names it.
func (a arguments) finding() (kernel.Outcome, error) {
	o := kernel.Outcome{Type: "finding", Severity: a.Severity, Stance: a.Stance, Title: a.Title, Detail: a.Detail}
	if strings.TrimSpace(a.Title) == "" {
		return o, bad("/title", "it is empty")
	}
	if a.Path != "" {
		o.Path = path.Clean(a.Path)
		if path.IsAbs(o.Path) || o.Path == ".." || strings.HasPrefix(o.Path, "../") {
			return o, bad("/path", "write it relative to the workspace, and inside of it")
		}
	}
	if a.Line != nil {
		if *a.Line < 1 || *a.Line > math.MaxInt32 {
			return o, bad("/line", "lines are counted from 1")
		}
		o.Line = int(*a.Line)
	}
	for _, id := range a.Evidence {
		if !kernel.ValidID(kernel.EvidencePrefix, id) {
			return o, bad("/evidence", "not an id of evidence")
		}
		o.Evidence = append(o.Evidence, kernel.OutcomeID(id))
	}
	return o, nil
}

// refused is an error as the agent sees it: a code, and one sentence without
// its cause.
func refused(err error) *mcp.CallToolResult {
	name, text := "internal", "the host could not do it"
	var r *receipts.Error
	var k *kernel.Error
	switch {
	case errors.As(err, &r):
		name, text = r.Code, strings.TrimLeft(strings.TrimPrefix(r.Error(), r.Code), ": ")
	case errors.As(err, &k):
		name, text = strings.ReplaceAll(strings.ReplaceAll(k.Kind.String(), " ", "_"), "-", "_"), k.What
		if text == "" {
			text = k.Kind.String()
		}
		if k.Next != "" {
			text += "; " + k.Next
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		name, text = "cancelled", "the call was cancelled"
	}
	text = plaintext.Clean(text)
	return &mcp.CallToolResult{IsError: true, StructuredContent: map[string]string{"code": name, "message": text},
		Content: []mcp.Content{&mcp.TextContent{Text: name + ": " + text}}}
}
