package proc

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// self is this binary, also after the file was replaced by an update or removed.
func self() (path, name string, err error) {
	if name, err = os.Executable(); err != nil {
		name = os.Args[0]
	}
	return "/proc/self/exe", name, nil
}

// shimMain is the supervisor.
func shimMain() int {
	life, out := inherited()
	unix.Umask(private)
	// Caught and dropped, not ignored: the program would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	s, ok := newSupervisor(life, out)
	if !ok {
		return 1
	}
	e := Exit{Code: -1, Ended: EndedItself, Confined: "none: not asked for"}
	pid, err := s.launch(&e)
	if err != nil {
		e.Failed, e.Missing = startFailure(s.order.Spec.Path, err), errors.Is(err, os.ErrNotExist)
		var f *failure
		if errors.As(err, &f) {
			e.Failed, e.Missing = f.Text, f.Missing
		}
		s.ended(e)
		return 0
	}
	silence()
	s.runs(pid)
	s.supervise(pid, &e)
	s.ended(e)
	return 0
}

// launch starts the program with the pipes that this process got.
func (s *supervisor) launch(e *Exit) (pid int, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	spec := s.order.Spec
	cmd := &exec.Cmd{Path: spec.Path, Args: append([]string{spec.Path}, spec.Args...), Dir: spec.Dir, Env: spec.Env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	start := cmd.Start
	if spec.Confine {
		text, ok := Landlock()
		e.Confined = "none: " + text
		if ok {
			e.Confined = text
			start = func() error { return startConfined(spec, cmd) }
		}
	}
	if err := withUmask(spec.Umask, start); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// silence lets go of the program's pipes, so that their ends are seen. The
// numbers stay taken: nothing else may get one by chance.
func silence() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		os.Stdin.Close()
		os.Stdout.Close()
		os.Stderr.Close()
		return
	}
	defer null.Close()
	for fd := range 3 {
		_ = unix.Dup3(int(null.Fd()), fd, 0)
	}
}

// supervise returns when the tree is gone.
func (s *supervisor) supervise(pid int, e *Exit) {
	died := make(chan syscall.WaitStatus, 1)
	gone := make(chan struct{})
	go reap(pid, died, gone)
	select {
	case ws := <-died:
		e.Code, e.Signal = status(ws)
	case e.Ended = <-s.wish:
	}
	e.Descendants = takeDown(pid, s.order.Spec.KillGrace, e.Ended == EndedKill, s.wish, gone)
	select {
	case ws := <-died:
		e.Code, e.Signal = status(ws)
	default:
	}
}

func startFailure(path string, err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, os.ErrNotExist) {
		return path + " cannot be started: it or its interpreter does not exist"
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return path + " cannot be started: it is no program (no #! line?)"
	}
	return path + " cannot be started: " + err.Error()
}

func status(ws syscall.WaitStatus) (int, string) {
	if ws.Signaled() {
		return -1, ws.Signal().String()
	}
	return ws.ExitStatus(), ""
}
