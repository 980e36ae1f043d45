package proc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	life  io.WriteCloser // closing it ends the tree
	pid   int
	done  chan struct{}
	exit  Exit // valid after done
	err   error
	once  sync.Once
	grace time.Duration
}

// startTimeout bounds how long the supervisor may take to start the program.
const startTimeout = 10 * time.Second

// Start runs s under a supervisor. A program that cannot be started is an
// Invalid or NotFound error that names the file and says why.
func Start(ctx context.Context, s Spec) (*Process, error) {
	const op = "proc.Start"
	path, err := lookPath(s)
	if err != nil {
		return nil, err
	}
	s.Path = path
	if s.KillGrace <= 0 {
		s.KillGrace = defaultGrace
	}
	if s.Marker != "" {
		s.Env = append(s.Env, s.Marker)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, kernel.E(op, kernel.Internal, err, "this program cannot find itself")
	}
	p := &Process{done: make(chan struct{}), grace: s.KillGrace}
	p.cmd = exec.Command(self, shimArg)
	p.cmd.Env = append(os.Environ(), "WITAN_SHIM=1")
	detachShim(p.cmd)
	files, err := p.pipes()
	if err != nil {
		return nil, kernel.E(op, kernel.Internal, err, "no pipes")
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = files.child[0], files.child[1], files.child[2]
	p.cmd.ExtraFiles = files.child[3:] // 3: lifeline, 4: report
	err = p.cmd.Start()
	for _, f := range files.child { // now, or their ends would never be seen
		f.Close()
	}
	if err != nil {
		files.closeOurs()
		return nil, kernel.E(op, kernel.Internal, err, "the supervisor cannot be started")
	}
	b, err := json.Marshal(order{s})
	if err == nil {
		_, err = p.life.Write(append(b, '\n'))
	}
	if err == nil {
		err = p.started(ctx, files.report)
	}
	if err != nil {
		p.Kill()
		<-p.done
		p.Stdin.Close()
		p.Stdout.Close()
		p.Stderr.Close()
		return nil, err
	}
	return p, nil
}

// pipeSet holds both ends of what connects host and tree.
type pipeSet struct {
	child  []*os.File // stdin, stdout, stderr, lifeline, report
	ours   []*os.File
	report *os.File
}

func (p *Process) pipes() (*pipeSet, error) {
	s := &pipeSet{}
	for i := range 5 {
		r, w, err := os.Pipe()
		if err != nil {
			s.closeOurs()
			return nil, err
		}
		if i == 0 || i == 3 { // we write
			s.child, s.ours = append(s.child, r), append(s.ours, w)
		} else {
			s.child, s.ours = append(s.child, w), append(s.ours, r)
		}
	}
	p.Stdin, p.Stdout, p.Stderr, p.life, s.report = s.ours[0], s.ours[1], s.ours[2], s.ours[3], s.ours[4]
	return s, nil
}

func (s *pipeSet) closeOurs() {
	for _, f := range append(s.ours, s.child...) {
		f.Close()
	}
}

// report is what the supervisor says: first that the program runs, then how it ended.
type report struct {
	PID  int   `json:"pid,omitempty"`
	Exit *Exit `json:"exit,omitempty"`
}

// started waits for the supervisor's first word and leaves a goroutine that
// waits for its last.
func (p *Process) started(ctx context.Context, r *os.File) error {
	first := make(chan report, 1)
	go func() {
		defer close(p.done)
		defer r.Close()
		defer p.life.Close()
		dec := json.NewDecoder(r)
		var rep report
		err := dec.Decode(&rep)
		first <- rep
		if err == nil && rep.Exit == nil {
			rep = report{}
			err = dec.Decode(&rep)
		}
		werr := p.cmd.Wait()
		switch {
		case err == nil && rep.Exit != nil:
			p.exit = *rep.Exit
		default:
			p.exit = Exit{Code: -1, Failed: "the supervisor was killed"}
			p.err = errors.Join(err, werr)
		}
	}()
	t := time.NewTimer(startTimeout)
	defer t.Stop()
	select {
	case rep := <-first:
		if rep.Exit != nil {
			<-p.done
			return startError(*rep.Exit)
		}
		if rep.PID == 0 {
			return kernel.E("proc.Start", kernel.Internal, p.err, "the supervisor did not start the program")
		}
		p.pid = rep.PID
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

// PID is the program's process id.
func (p *Process) PID() int { return p.pid }

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
func (p *Process) Stop() { p.once.Do(func() { p.life.Close() }) }

// Kill ends the tree without grace.
func (p *Process) Kill() {
	p.once.Do(func() {
		_, _ = p.life.Write([]byte(`"kill"` + "\n"))
		p.life.Close()
	})
}

// lookPath finds the program on the PATH it will run with.
func lookPath(s Spec) (string, error) {
	const op = "proc.lookPath"
	if filepath.Base(s.Path) != s.Path {
		p := s.Path
		if !filepath.IsAbs(p) {
			p = filepath.Join(s.Dir, p)
		}
		fi, err := os.Stat(p)
		switch {
		case err != nil:
			return "", kernel.E(op, kernel.NotFound, nil, "%s does not exist", s.Path).WithNext("check the command")
		case fi.IsDir() || !executable(fi):
			return "", kernel.E(op, kernel.Invalid, nil, "%s is not an executable file", s.Path).WithNext("check the command and its permissions")
		}
		return p, nil
	}
	for _, dir := range filepath.SplitList(getenv(s.Env, "PATH")) {
		if dir == "" {
			continue
		}
		for _, ext := range extensions(s.Env) {
			p := filepath.Join(dir, s.Path+ext)
			if fi, err := os.Stat(p); err == nil && !fi.IsDir() && executable(fi) {
				return filepath.Abs(p)
			}
		}
	}
	return "", kernel.E(op, kernel.NotFound, nil, "%s is not on the PATH", s.Path).WithNext("install it, or give its whole path")
}

// LookPath finds a program on the host's PATH.
func LookPath(name, dir string) (string, error) {
	return lookPath(Spec{Path: name, Dir: dir, Env: os.Environ()})
}

func getenv(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := cutKey(env[i], key); ok {
			return v
		}
	}
	return ""
}

func cutKey(kv, key string) (string, bool) {
	if len(kv) > len(key) && kv[len(key)] == '=' && kv[:len(key)] == key {
		return kv[len(key)+1:], true
	}
	return "", false
}
