package acp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"witan/kernel"
	"witan/kernel/plaintext"
	"witan/kernel/secrets"
	"witan/stages/invoke/proc"
)

// Place is where a turn happens: what a process is started for and confined to.
type Place struct {
	Conversation kernel.ConversationID
	Run          kernel.RunID
	Workspace    string
	State        string // private folder of the agent in this conversation; exists
	Output       string // folder for files to hand over; "" = none
	Write        bool   // may write the workspace
}

// Transport is a connected agent.
type Transport interface {
	io.Reader
	io.Writer
	// Stop ends the agent: politely, then by force. Done is closed afterwards.
	Stop()
	Done() <-chan struct{}
	// Why says after Done how it ended, with what it last said on stderr.
	Why() string
	// Confined says how the turn is held: "in process", "landlock abi 7" or "none: …".
	Confined() string
}

// Connect starts an agent for a place.
type Connect func(ctx context.Context, p Place) (Transport, error)

// Process returns a Connect that starts a program under a supervisor.
func Process(spec func(Place) (proc.Spec, error)) Connect {
	return func(ctx context.Context, p Place) (Transport, error) {
		s, err := spec(p)
		if err != nil {
			return nil, err
		}
		pr, err := proc.Start(ctx, s)
		if err != nil {
			return nil, err
		}
		t := &process{p: pr, confined: "none"}
		if s.Confine {
			t.confined, _ = proc.Landlock()
		}
		t.wg.Go(func() { _, _ = io.Copy(&t.stderr, pr.Stderr) })
		return t, nil
	}
}

type process struct {
	p        *proc.Process
	wg       sync.WaitGroup
	stderr   tail
	confined string
}

func (t *process) Read(b []byte) (int, error)  { return t.p.Stdout.Read(b) }
func (t *process) Write(b []byte) (int, error) { return t.p.Stdin.Write(b) }
func (t *process) Stop()                       { t.p.Stdin.Close(); t.p.Stop() }
func (t *process) Done() <-chan struct{}       { return t.p.Done() }
func (t *process) Confined() string            { return t.confined }

func (t *process) Why() string {
	t.wg.Wait()
	e := t.p.Exit()
	how := fmt.Sprintf("exited with %d", e.Code)
	switch {
	case e.Failed != "":
		how = e.Failed
	case e.Signal != "":
		how = "was ended by signal " + e.Signal
	}
	if s := t.stderr.String(); s != "" {
		how += "; it last said: " + s
	}
	return how
}

const tailBytes = 2000

// tail keeps the end of a stream for an error text.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - tailBytes; over > tailBytes {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.b
	if over := len(b) - tailBytes; over > 0 {
		b = b[over:]
	}
	s := plaintext.Clean(secrets.Redact(strings.ToValidUTF8(string(b), "\uFFFD")))
	return strings.Join(strings.Fields(s), " ")
}

// InProcess returns a Connect for an agent that is served over a pair of pipes.
func InProcess(serve func(ctx context.Context, r io.Reader, w io.Writer) error) Connect {
	return func(ctx context.Context, p Place) (Transport, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		t := &pipes{r: outR, w: inW, cancel: cancel, done: make(chan struct{})}
		go func() {
			defer close(t.done)
			t.err = serve(sctx, inR, outW)
			_ = outW.Close()
			_ = inR.Close()
		}()
		return t, nil
	}
}

type pipes struct {
	r      *io.PipeReader
	w      *io.PipeWriter
	cancel context.CancelFunc
	done   chan struct{}
	err    error // after done
}

func (t *pipes) Read(b []byte) (int, error)  { return t.r.Read(b) }
func (t *pipes) Write(b []byte) (int, error) { return t.w.Write(b) }
func (t *pipes) Stop()                       { _ = t.w.Close(); t.cancel(); _ = t.r.Close() }
func (t *pipes) Done() <-chan struct{}       { return t.done }
func (t *pipes) Confined() string            { return "in process" }

func (t *pipes) Why() string {
	if t.err != nil {
		return "ended: " + t.err.Error()
	}
	return "ended"
}
