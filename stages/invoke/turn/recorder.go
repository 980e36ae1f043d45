package turn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"witan/kernel"
)

// Bounds of one turn.
const (
	maxText     = 64 << 20
	maxOutcomes = 512
	maxTitle    = 400
	maxTracked  = 4096 // tools whose end is waited for
)

// Recorder collects what one agent says and does in one turn, shows it, and
// makes the reply of it. It is safe for concurrent use.
type Recorder struct {
	env  kernel.Env
	req  kernel.InvokeRequest
	hide Hide

	// Progress holds one token when there was some.
	Progress chan struct{}

	emit sync.Mutex // what is shown is in the order in which it came

	mu       sync.Mutex // guards all below
	veil     *veil
	text     strings.Builder
	last     int  // where its last piece begins
	cut      bool // the text is over its bound
	tools    []kernel.ToolCall
	toolAt   map[string]int // -1: not among tools
	more     int
	running  map[string]bool
	usage    kernel.Usage
	outcomes []kernel.Outcome
	stop     string
	effects  bool
	person   int // open questions to a person
	over     bool
}

// NewRecorder returns the recorder of the turn that req describes.
func NewRecorder(env kernel.Env, req kernel.InvokeRequest, hide Hide) *Recorder {
	return &Recorder{env: env, req: req, hide: hide, veil: newVeil(hide), Progress: make(chan struct{}, 1),
		toolAt: map[string]int{}, running: map[string]bool{}}
}

// Folders makes the folders that the turn's agent may write.
func (r *Recorder) Folders() error {
	for _, dir := range []string{r.req.State, r.req.Turn.OutputDir} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return kernel.E("invoke", kernel.ReadOnly, err, "the agent's folder cannot be made")
		}
	}
	return nil
}

// Place is where the turn happens.
func (r *Recorder) Place() Place {
	return Place{Conversation: r.req.Conversation, Run: r.req.Turn.Run, Workspace: r.req.Workspace, State: r.req.State,
		Output: r.req.Turn.OutputDir, Write: r.req.Turn.Write}
}

// Sending notes durably what is about to be given to the agent. Nothing leaves
// before it returns nil.
func (r *Recorder) Sending(ctx context.Context) error {
	return r.env.Note(ctx, kernel.DeliverySent, kernel.DeliverySentBody{Agent: r.req.Agent, Fingerprint: r.req.Delivery.Fingerprint, Session: r.req.Delivery.Session})
}

// CannotStart is the failure of an agent whose start gave err.
func (r *Recorder) CannotStart(err error) error {
	return &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "cannot_start",
		Text: fmt.Sprintf("agent %s cannot be started: %v", r.req.Agent, err), Err: err}
}

// Moved notes progress.
func (r *Recorder) Moved() {
	select {
	case r.Progress <- struct{}{}:
	default:
	}
}

// Text takes the next piece of the answer.
func (r *Recorder) Text(s string) {
	r.emit.Lock()
	defer r.emit.Unlock()
	r.mu.Lock()
	if r.over || s == "" {
		r.mu.Unlock()
		return
	}
	if over := r.text.Len() + len(s) - maxText; over > 0 {
		if r.cut {
			r.mu.Unlock()
			r.Moved()
			return
		}
		r.cut = true
		s = strings.ToValidUTF8(s[:max(0, len(s)-over)], "") + "\n[cut: the answer is over 64 MiB]\n"
	}
	r.last = r.text.Len()
	r.text.WriteString(s)
	vis := r.veil.write(s)
	r.mu.Unlock()
	if vis != "" {
		r.env.Emit(kernel.Event{Type: "text", Text: vis})
	}
	r.Moved()
}

// Tool is what an adapter knows of a tool call; empty fields are not known.
type Tool struct{ ID, Kind, Title, Status string }

// Tool takes a tool call or its update.
func (r *Recorder) Tool(u Tool) {
	r.emit.Lock()
	defer r.emit.Unlock()
	r.mu.Lock()
	i, known := r.toolAt[u.ID]
	if r.over && !known {
		r.mu.Unlock()
		return
	}
	if !known {
		i = r.newTool(u.ID)
	}
	var c kernel.ToolCall
	if i >= 0 {
		c = r.tools[i]
	}
	c.ID = r.Line(u.ID)
	set(&c.Title, r.Line(u.Title))
	set(&c.Kind, r.Line(u.Kind))
	set(&c.Status, r.Line(u.Status))
	if c.Status == "completed" || c.Status == "failed" {
		delete(r.running, u.ID)
	} else if len(r.running) < maxTracked {
		r.running[u.ID] = true
	}
	switch c.Kind {
	case "read", "search", "think", "fetch":
	default:
		r.effects = true
	}
	if i >= 0 {
		r.tools[i] = c
	}
	r.mu.Unlock()
	if i >= 0 {
		r.env.Emit(kernel.Event{Type: "tool", Tool: c})
	}
	r.Moved()
}

// newTool makes room for a tool; -1 when there is none. mu is held.
func (r *Recorder) newTool(id string) int {
	i := len(r.tools)
	if i >= kernel.MaxReplyTools {
		r.more++
		i = -1
	} else {
		r.tools = append(r.tools, kernel.ToolCall{Kind: "other", Status: "pending"})
	}
	if len(r.toolAt) < maxTracked {
		r.toolAt[id] = i
	}
	return i
}

func set(to *string, s string) {
	if s != "" {
		*to = s
	}
}

// Line makes a text of the agent fit for one line of at most 400 bytes, without
// what must not leave.
func (r *Recorder) Line(s string) string {
	s = r.hide.Text(s)
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if len(s) > maxTitle {
		s = strings.ToValidUTF8(s[:maxTitle], "") + "…"
	}
	return s
}

// Changed notes that something outside was changed for the agent.
func (r *Recorder) Changed() {
	r.mu.Lock()
	r.effects = true
	r.mu.Unlock()
}

// Outcome keeps a finding or evidence; content, if any, is what o.Hash names.
// What an agent outside of this process says of its evidence is its own declaration.
func (r *Recorder) Outcome(o kernel.Outcome, content *string, own bool) {
	if o.Type != "finding" && o.Type != "evidence" || o.ID == "" {
		return
	}
	if o.Agent = r.req.Agent; !own && o.Type == "evidence" {
		o.Level = "declared"
	}
	if content != nil {
		if d, err := r.env.Packs.Put(context.Background(), "evidence", []byte(*content)); err != nil || d != o.Hash {
			return
		}
	} else if o.Type == "evidence" && o.Hash.IsZero() {
		return
	}
	r.mu.Lock()
	if !r.over && len(r.outcomes) < maxOutcomes {
		r.outcomes = append(r.outcomes, o)
	}
	r.mu.Unlock()
	r.Moved()
}

// Usage sets what the turn has used so far.
func (r *Recorder) Usage(u kernel.Usage) {
	r.mu.Lock()
	r.usage = u
	r.mu.Unlock()
}

// Ended sets the protocol's stop reason.
func (r *Recorder) Ended(stop string) {
	r.mu.Lock()
	r.stop = stop
	r.mu.Unlock()
}

// Stop is called when the turn was told to stop: what is new from here on is
// not taken any more. The ends of known tools still are.
func (r *Recorder) Stop() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
}

// Ask is called before a person is asked, and the returned function after.
func (r *Recorder) Ask() (answered func()) {
	count := func(n int) {
		r.mu.Lock()
		r.person += n
		r.mu.Unlock()
		r.Moved()
	}
	count(1)
	return func() { count(-1) }
}

// busy reports whether a tool runs, and whether a person is waited for.
func (r *Recorder) busy() (tool, person bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running) > 0, r.person > 0 || r.req.Waiting != nil && r.req.Waiting()
}

// Held says so when a read-only turn is not held by the system; how is what the
// transport says of it.
func (r *Recorder) Held(how string) {
	if why, free := strings.CutPrefix(how, "none: "); free && !r.req.Turn.Write {
		r.env.Emit(kernel.Event{Type: "notice", Code: "not_confined", Text: "this turn is read-only by agreement only: " + why})
	}
}

func (r *Recorder) silent(d time.Duration) {
	r.env.Emit(kernel.Event{Type: "notice", Code: "silent", Text: fmt.Sprintf("silent for %s", d.Round(time.Second))})
}

// Answered says whether what came is an answer: a proper end is not enough for that.
func (r *Recorder) Answered() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.TrimSpace(r.text.String()) == "" && len(r.tools) == 0 {
		return &kernel.Failure{Class: kernel.ClassSession, Reason: "empty_turn", Text: "the agent ended the turn without an answer"}
	}
	return nil
}

// Judge is Answered for agents whose protocol may give an error in the shape of
// an answer. name is what the agent calls itself.
func (r *Recorder) Judge(name string) error {
	if err := r.Answered(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.text.String()
	if f := ReadError(name, text, text[r.last:]); f != nil {
		return f
	}
	return nil
}

// flush shows what the veil held back.
func (r *Recorder) flush() {
	r.emit.Lock()
	defer r.emit.Unlock()
	r.mu.Lock()
	rest := r.veil.close()
	r.mu.Unlock()
	if rest != "" {
		r.env.Emit(kernel.Event{Type: "text", Text: rest})
	}
}

// Reply closes the turn and returns what it gave. An answer that cannot be
// stored is an error, never a reply without it.
func (r *Recorder) Reply() (kernel.Reply, error) {
	r.Stop()
	r.flush()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := kernel.Reply{Version: kernel.ObjectVersion, Turn: r.req.Delivery.Turn, Delivery: r.req.DeliveryHash, Stop: r.stop,
		Tools: append([]kernel.ToolCall{}, r.tools...), MoreTool: r.more, Usage: r.usage, Outcomes: append([]kernel.Outcome{}, r.outcomes...)}
	if text := r.hide.Text(r.text.String()); text != "" {
		d, err := r.env.Packs.Put(context.Background(), "text", []byte(text))
		if err != nil {
			return out, err
		}
		out.Text = d
	}
	return out, nil
}

// Fail closes the turn and returns err as a *kernel.Failure with what had
// arrived. The end of ctx is a stop; how says what any other untyped error
// means. An error of ours, like a full disk, stays what it is.
func (r *Recorder) Fail(ctx context.Context, err error, how func(error) *kernel.Failure) error {
	var f *kernel.Failure
	var late *StartupError
	switch {
	case ctx.Err() != nil: // whatever came of it: nobody but the person ended this turn
		f = &kernel.Failure{Class: kernel.ClassCancelled, Reason: "stopped", Status: "stopped", Text: "stopped", Err: err}
	case errors.As(err, &f):
	case errors.As(err, &late):
		f = &kernel.Failure{Class: kernel.ClassTimeout, Reason: "startup_timeout", Text: late.Error(), Err: err}
	case kernel.KindOf(err) != kernel.Internal:
		return err
	default:
		f = how(err)
	}
	f.Text = r.hide.Text(f.Text)
	reply, perr := r.Reply()
	if perr != nil {
		return perr
	}
	if f.Partial == nil && (!reply.Text.IsZero() || len(reply.Tools) > 0) {
		f.Partial = reply
	}
	r.mu.Lock()
	f.Effects = f.Effects || r.effects && r.req.Turn.Write
	r.mu.Unlock()
	return f
}
