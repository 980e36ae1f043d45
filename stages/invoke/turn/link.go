package turn

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"witan/kernel"
	"witan/stages/invoke/proc"
)

// Place is where a turn happens: what a process is started for and confined to.
type Place struct {
	Conversation kernel.ConversationID
	Run          kernel.RunID
	Workspace    string
	State        string // private folder of the agent for this turn; exists
	Output       string // folder for files to hand over; exists; "" = none
	Write        bool   // may write the workspace
}

// Transport is a connected agent. Reading ends with io.EOF when the agent is gone.
type Transport interface {
	io.Reader
	io.Writer
	// CloseWrite ends the agent's input.
	CloseWrite()
	// Stop ends the agent: politely, then by force. It returns at once; Done is
	// closed when nothing of the agent is left.
	Stop()
	Done() <-chan struct{}
	// Exit says how it ended; only after Done.
	Exit() Exit
	// Confined says how the turn is held: "in process", "landlock abi 7" or "none: …".
	Confined() string
	// Close gives back what the transport holds; only after Done.
	Close()
}

// Exit is how an agent ended. Text is a clause for a person: "exited with 3; it
// last said: …". Code is -1 when it did not exit by itself.
type Exit struct {
	Code   int
	Itself bool // nobody ended it
	Text   string
	Stderr string // the end of what it said there, cleaned and without secrets
}

// Connect starts an agent for a place. The context bounds the start only.
type Connect func(ctx context.Context, p Place) (Transport, error)

// Process returns a Connect that starts a program under a supervisor.
func Process(spec func(Place) (proc.Spec, error)) Connect {
	return func(ctx context.Context, p Place) (Transport, error) {
		s, err := spec(p)
		if err != nil {
			return nil, err
		}
		return Start(ctx, s)
	}
}

// Start starts one program under a supervisor.
func Start(ctx context.Context, s proc.Spec) (Transport, error) {
	pr, err := proc.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	t := &process{p: pr, confined: "none: not asked for"}
	if s.Confine {
		how, ok := proc.Landlock()
		if !ok {
			how = "none: " + how
		}
		t.confined = how
	}
	t.wg.Go(func() { _, _ = io.Copy(&t.stderr, pr.Stderr) })
	return t, nil
}

type process struct {
	p        *proc.Process
	wg       sync.WaitGroup // of the stderr reader
	stderr   Tail
	confined string
}

func (t *process) Read(b []byte) (int, error)  { return t.p.Stdout.Read(b) }
func (t *process) Write(b []byte) (int, error) { return t.p.Stdin.Write(b) }
func (t *process) CloseWrite()                 { t.p.Stdin.Close() }
func (t *process) Stop()                       { t.p.Stdin.Close(); t.p.Stop() }
func (t *process) Done() <-chan struct{}       { return t.p.Done() }
func (t *process) Confined() string            { return t.confined }

// Close also ends readers when somebody outside of the tree still holds the pipes.
func (t *process) Close() {
	t.p.Stdin.Close()
	t.p.Stdout.Close()
	t.p.Stderr.Close()
	t.wg.Wait()
}

// drain is how long the last words of an ended agent may take to arrive.
const drain = time.Second

func (t *process) Exit() Exit {
	read := make(chan struct{})
	go func() { t.wg.Wait(); close(read) }()
	select {
	case <-read:
	case <-time.After(drain):
		t.p.Stderr.Close()
		<-read
	}
	e := t.p.Exit()
	out := Exit{Code: e.Code, Itself: e.Ended == proc.EndedItself, Stderr: t.stderr.String()}
	switch {
	case e.Failed != "":
		out.Text = e.Failed
	case e.Signal != "":
		out.Text = "was ended by signal " + e.Signal
	default:
		out.Text = fmt.Sprintf("exited with %d", e.Code)
	}
	if out.Stderr != "" {
		out.Text += "; it last said: " + out.Stderr
	}
	return out
}

// InProcess returns a Connect for an agent that is served over a pair of pipes.
// serve returns when its context or its reader ends.
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
	over   sync.Once
	forced bool // guarded by over; Stop came before the end
}

func (t *pipes) Read(b []byte) (int, error)  { return t.r.Read(b) }
func (t *pipes) Write(b []byte) (int, error) { return t.w.Write(b) }
func (t *pipes) CloseWrite()                 { _ = t.w.Close() }
func (t *pipes) Done() <-chan struct{}       { return t.done }
func (t *pipes) Confined() string            { return InProcessText }
func (t *pipes) Close()                      { t.Stop() }

func (t *pipes) Stop() {
	t.over.Do(func() {
		select {
		case <-t.done:
		default:
			t.forced = true
		}
	})
	_ = t.w.Close()
	t.cancel()
	_ = t.r.Close()
}

// InProcessText is what Confined says of an agent in this process.
const InProcessText = "in process"

func (t *pipes) Exit() Exit {
	t.over.Do(func() {})
	e := Exit{Code: 0, Itself: !t.forced, Text: "ended"}
	if t.err != nil {
		e.Code, e.Text = 1, "ended: "+Clean(t.err.Error())
	}
	return e
}
