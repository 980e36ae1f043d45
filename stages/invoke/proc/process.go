package proc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"witan/kernel"
)

// Process is a running program under its supervisor.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser
	Stderr io.ReadCloser

	cmd   *exec.Cmd
	life  *os.File // its end without a word means to the supervisor that we are gone
	tree  string   // value of treeKey in the whole tree
	pid   int
	start string
	done  chan struct{}
	exit  Exit // valid after done
	err   error

	stop, kill sync.Once
}

// startTimeout bounds how long the supervisor may take to start the program, and
// how long it may take to end what a failed Start left.
const startTimeout = 10 * time.Second

// treeKey marks every process of a tree, for the day its supervisor is killed.
const treeKey = "WITAN_TREE"

// Start runs s under a supervisor. A program that cannot be started is an
// Invalid or NotFound error that names the file and says why.
func Start(ctx context.Context, s Spec) (*Process, error) {
	const op = "proc.Start"
	path, err := lookPath(s)
	if err != nil {
		return nil, err
	}
	if err := checkDir(s.Dir); err != nil {
		return nil, err
	}
	p := &Process{done: make(chan struct{}), tree: rand.Text()}
	s.Path, s.Umask = path, private
	if s.Shared {
		s.Umask = Umask()
	}
	if s.KillGrace <= 0 {
		s.KillGrace = defaultGrace
	}
	s.Env = append(s.Env[:len(s.Env):len(s.Env)], treeKey+"="+p.tree)
	if s.Marker != "" {
		s.Env = append(s.Env, s.Marker)
	}
	said, err := p.supervise()
	if err != nil {
		return nil, kernel.E(op, kernel.Internal, err, "the supervisor cannot be started")
	}
	first := make(chan word, 1)
	go p.watch(said, first)
	if err = p.send(order{s}); err == nil {
		err = p.await(ctx, first)
	}
	if err != nil {
		p.abort()
		return nil, err
	}
	return p, nil
}

// supervise starts the supervisor and returns what it says.
func (p *Process) supervise() (said *os.File, err error) {
	path, name, err := self()
	if err != nil {
		return nil, err
	}
	var child, ours []*os.File // stdin, stdout, stderr, lifeline, what the supervisor says
	for i := range 5 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(child, ours...))
			return nil, err
		}
		if i == 0 || i == 3 { // we write
			child, ours = append(child, r), append(ours, w)
		} else {
			child, ours = append(child, w), append(ours, r)
		}
	}
	p.cmd = &exec.Cmd{Path: path, Args: []string{name, shimArg}, Stdin: child[0], Stdout: child[1], Stderr: child[2]}
	p.cmd.Env = []string{"WITAN_SHIM=1"} // it needs nothing of ours, so it shows nothing
	if err = hand(p.cmd, child[3], child[4]); err == nil {
		err = p.cmd.Start()
	}
	closeAll(child) // now, or their ends would never be seen
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	p.Stdin, p.Stdout, p.Stderr, p.life = ours[0], ours[1], ours[2], ours[3]
	return ours[4], nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// send gives the supervisor its order. It may be larger than a pipe holds.
func (p *Process) send(o order) error {
	b, err := json.Marshal(o)
	if err == nil {
		_ = p.life.SetWriteDeadline(time.Now().Add(startTimeout)) // not on every system
		_, err = p.life.Write(append(b, '\n'))
		_ = p.life.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		return kernel.E("proc.Start", kernel.Internal, err, "the supervisor takes no order")
	}
	return nil
}

// watch waits for the supervisor's first word and for its last, and owns the end.
func (p *Process) watch(said *os.File, first chan<- word) {
	defer close(p.done)
	defer said.Close()
	defer p.life.Close()
	dec := json.NewDecoder(said)
	var w word
	err := dec.Decode(&w)
	first <- w
	if err == nil && w.Exit == nil {
		w = word{}
		err = dec.Decode(&w)
	}
	werr := p.cmd.Wait()
	if err == nil && w.Exit != nil {
		p.exit = *w.Exit
		return
	}
	p.exit = Exit{Code: -1, Ended: EndedSupervisor, Confined: "none: the supervisor was killed", Failed: "the supervisor was killed"}
	p.exit.Descendants = sweep(p.tree)
	p.err = kernel.E("proc.Wait", kernel.Interrupted, errors.Join(err, werr), "the supervisor was killed")
}

// sweep ends a tree without a supervisor, as far as its marker tells.
func sweep(tree string) (n int) {
	for end := time.Now().Add(startTimeout); time.Now().Before(end); {
		left := Survivors(treeKey, map[string]bool{tree: true})
		if len(left) == 0 {
			break
		}
		for _, s := range left {
			if s.Reap() {
				n++
			}
		}
	}
	return n
}

func (p *Process) await(ctx context.Context, first <-chan word) error {
	t := time.NewTimer(startTimeout)
	defer t.Stop()
	select {
	case w := <-first:
		if w.Exit != nil {
			return startError(*w.Exit)
		}
		if w.PID == 0 {
			return kernel.E("proc.Start", kernel.Interrupted, nil, "the supervisor was killed before the program ran")
		}
		p.pid, p.start = w.PID, w.Start
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return kernel.E("proc.Start", kernel.Timeout, nil, "the supervisor does not answer")
	}
}

func startError(e Exit) error {
	kind := kernel.Invalid
	if e.Missing {
		kind = kernel.NotFound
	}
	return kernel.E("proc.Start", kind, nil, "%s", e.Failed).WithNext("check the command and its permissions")
}

// abort ends what a failed Start left, with force if the supervisor is stuck.
func (p *Process) abort() {
	p.Kill()
	t := time.NewTimer(startTimeout)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	p.Stdin.Close()
	p.Stdout.Close()
	p.Stderr.Close()
}

// PID is the program's process id.
func (p *Process) PID() int { return p.pid }

// StartTime names the program among all processes that ever had its id; "" where
// the system does not say.
func (p *Process) StartTime() string { return p.start }

// Memory is what the program and its descendants use now.
func (p *Process) Memory() (Memory, error) { return memory(p.cmd.Process.Pid) }

// Done is closed when the whole tree is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the whole tree.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
}

// Exit is how the program ended; only after Done.
func (p *Process) Exit() Exit { return p.exit }

// Stop ends the tree: terminate, then kill after the grace. It returns at once.
func (p *Process) Stop() { p.stop.Do(func() { p.tell(wordStop) }) }

// Kill ends the tree without grace, also one that Stop is waiting for. It
// returns at once.
func (p *Process) Kill() { p.kill.Do(func() { p.tell(wordKill) }) }

// tell says a word to a supervisor that may be gone; the pipe has room for it.
func (p *Process) tell(w string) { _, _ = p.life.Write([]byte(w + "\n")) }
