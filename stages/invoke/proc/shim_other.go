//go:build !linux

package proc

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Landlock says what the system offers to confine a program: nothing here.
func Landlock() (string, bool) { return runtime.GOOS + " offers no Landlock", false }

func self() (path, name string, err error) {
	path, err = os.Executable()
	return path, path, err
}

func confineMain() int { return 126 }

// shimMain is the supervisor.
func shimMain() int {
	life, out := inherited()
	s, ok := newSupervisor(life, out)
	if !ok {
		return 1
	}
	text, _ := Landlock()
	e := Exit{Code: -1, Ended: EndedItself, Confined: "none: " + text}
	spec := s.order.Spec
	cmd := &exec.Cmd{Path: spec.Path, Args: append([]string{spec.Path}, spec.Args...), Dir: spec.Dir, Env: spec.Env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	tree, err := ownTree(cmd)
	if err == nil {
		err = withUmask(spec.Umask, cmd.Start)
	}
	if err != nil {
		e.Failed, e.Missing = spec.Path+" cannot be started: "+err.Error(), errors.Is(err, os.ErrNotExist)
		s.ended(e)
		return 0
	}
	os.Stdin.Close()
	os.Stdout.Close()
	os.Stderr.Close()
	s.runs(cmd.Process.Pid)
	s.supervise(cmd, tree, &e)
	s.ended(e)
	return 0
}

// supervise returns when the program has ended and all of its tree that can be
// found was killed.
func (s *supervisor) supervise(cmd *exec.Cmd, t tree, e *Exit) {
	died := make(chan struct{})
	go func() { _ = cmd.Wait(); close(died) }()
	select {
	case <-died:
	case e.Ended = <-s.wish:
		if e.Ended != EndedKill {
			t.terminate(cmd)
			s.grace(died)
		}
	}
	t.kill(cmd)
	<-died
	if v := getenv(s.order.Spec.Env, treeKey); v != "" {
		e.Descendants = sweep(v) // who left the group
	}
	e.Code = cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = ws.Signal().String()
	}
}

// grace waits for the program's end, a wish to kill, or the time.
func (s *supervisor) grace(died <-chan struct{}) {
	t := time.NewTimer(s.order.Spec.KillGrace)
	defer t.Stop()
	for {
		select {
		case w := <-s.wish:
			if w == EndedKill {
				return
			}
		case <-died:
			return
		case <-t.C:
			return
		}
	}
}
