//go:build !linux

package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Landlock says what the system offers to confine a program: nothing here.
func Landlock() (string, bool) { return runtime.GOOS + " offers no Landlock", false }

// Survivor is a process that carries a marker; they can be found on Linux only.
type Survivor struct {
	PID          int
	Start, Value string
}

// Survivors finds nothing on this system.
func Survivors(string, map[string]bool) []Survivor { return nil }

// Reap does nothing on this system.
func (Survivor) Reap() bool { return false }

func confineMain() int { return 126 }

// shimMain is the supervisor: fd 3 is the lifeline, fd 4 the report.
func shimMain() int {
	life, out := os.NewFile(3, "lifeline"), os.NewFile(4, "report")
	in := bufio.NewReader(life)
	line, err := in.ReadBytes('\n')
	var o order
	if err != nil || json.Unmarshal(line, &o) != nil {
		return 1
	}
	say := func(r report) { b, _ := json.Marshal(r); _, _ = out.Write(append(b, '\n')) }
	text, _ := Landlock()
	e := Exit{Code: -1, Confined: "none: " + text}
	s := o.Spec
	cmd := &exec.Cmd{Path: s.Path, Args: append([]string{s.Path}, s.Args...), Dir: s.Dir, Env: s.Env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	tree := ownTree(cmd)
	if err := cmd.Start(); err != nil {
		e.Failed, e.Missing = s.Path+" cannot be started: "+err.Error(), errors.Is(err, os.ErrNotExist)
		say(report{Exit: &e})
		return 0
	}
	os.Stdin.Close()
	os.Stdout.Close()
	os.Stderr.Close()
	say(report{PID: cmd.Process.Pid})
	end := make(chan bool, 1)
	go func() { word, _ := io.ReadAll(in); end <- strings.Contains(string(word), "kill") }()
	died := make(chan struct{})
	go func() { _ = cmd.Wait(); close(died) }()
	select {
	case <-died:
	case now := <-end:
		if !now {
			tree.terminate(cmd)
			t := time.NewTimer(s.KillGrace)
			select {
			case <-died:
			case <-t.C:
			}
			t.Stop()
		}
	}
	tree.kill(cmd)
	<-died
	e.Code = cmd.ProcessState.ExitCode()
	say(report{Exit: &e})
	return 0
}
