package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"witan/kernel"
	"witan/stages/invoke/jsonrpc"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/turn"
)

// Turn is one turn as its Reader sees it.
type Turn struct {
	R      *turn.Recorder
	Req    kernel.InvokeRequest
	Resume string // the native session to go on in; "" = a new one
	New    string // the name of a new one, if Config.NewSession gave it

	env     kernel.Env
	noise   turn.Tail
	session string
	taken   bool
	said    bool // there was text
	open    bool // its last line has no end

	mu      sync.Mutex
	trouble string // guarded by mu
	over    chan struct{}
	once    sync.Once
}

// Session takes the native session that the agent names, as often as it does. A
// session other than the one to be resumed means that the context is lost; one
// that changes under way is a broken protocol.
func (t *Turn) Session(id string) error {
	switch {
	case id == "" || id == t.session:
		return nil
	case t.session != "":
		return errors.New("the agent changed its session")
	case t.Resume != "" && id != t.Resume:
		return Gone()
	}
	t.session = id
	return nil
}

// Taken says that the prompt is part of the session from here on.
func (t *Turn) Taken() { t.taken = true }

// Over says that the agent told the end of the turn: its process has nothing
// more to do, and is ended if it lingers.
func (t *Turn) Over() { t.once.Do(func() { close(t.over) }) }

// Message takes a whole text of the answer. An empty line stands between two.
func (t *Turn) Message(s string) {
	if s == "" {
		return
	}
	if t.said && t.open {
		t.R.Text("\n\n")
	}
	t.said, t.open = true, !strings.HasSuffix(s, "\n")
	t.R.Text(s)
}

// Piece takes a piece of a text, which goes on where the one before ended.
func (t *Turn) Piece(s string) {
	if s != "" {
		t.said, t.open = true, !strings.HasSuffix(s, "\n")
		t.R.Text(s)
	}
}

// Retry says that the agent tries something again by itself, and why. That is no
// progress; if nothing else comes of it, it explains the silence.
func (t *Turn) Retry(why string) {
	line := t.R.Line(why)
	t.mu.Lock()
	t.trouble = line
	t.mu.Unlock()
	t.Notice("provider_retry", line)
}

// Diagnostic keeps words for the error text of an agent that dies without any.
func (t *Turn) Diagnostic(s string) { _, _ = fmt.Fprintf(&t.noise, "%s\n", s) }

// Notice shows something that the person should know, on one line.
func (t *Turn) Notice(code, text string) {
	t.env.Emit(kernel.Event{Type: "notice", Code: code, Text: t.R.Line(text)})
}

// stalled completes the words of a failure with what the agent last tried.
func (t *Turn) stalled(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var f *kernel.Failure
	if errors.As(err, &f) && t.trouble != "" {
		f.Text += "; it last said: " + t.trouble
	}
	return err
}

// Died reads an end of the program that nothing else explains.
func (t *Turn) Died(e turn.Exit) *kernel.Failure {
	text := "the agent " + e.Text
	if !e.Itself {
		text = "the agent closed its output"
		if e.Stderr != "" {
			text += "; it last said: " + e.Stderr
		}
	}
	if noise := t.noise.String(); e.Stderr == "" && noise != "" {
		text += "; it printed: " + noise
	}
	f := &kernel.Failure{Class: kernel.ClassExecution, Reason: "agent_died"}
	if turn.Known(e.Stderr) {
		f = turn.Classify(e.Stderr, "", 0)
	}
	f.Text = turn.Clean(text)
	return f
}

// Held reports whether the system will hold what s starts to what it may write.
// Where it does, a program's own sandbox is only in the way.
func Held(s proc.Spec) bool {
	_, ok := proc.Landlock()
	return s.Confine && ok
}

// Default sets a variable that the configuration may set otherwise. Of two with
// one name a program takes the first, or the last.
func Default(s *proc.Spec, name, value string) {
	if !slices.ContainsFunc(s.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
		s.Env = append(s.Env, name+"="+value)
	}
}

// broken types why reading ended; nil when the output simply ended.
func broken(err error) error {
	var f *kernel.Failure
	var line *jsonrpc.LineError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &line):
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "protocol_line_too_large", Text: line.Error(), Err: err}
	case errors.Is(err, jsonrpc.ErrMalformed), errors.Is(err, errRefused):
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "protocol_error", Text: turn.Clean(err.Error()), Err: err}
	}
	return nil
}
