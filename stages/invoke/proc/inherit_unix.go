//go:build unix

package proc

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// hand gives the supervisor its two ends, and a session of its own.
func hand(c *exec.Cmd, life, out *os.File) error {
	c.ExtraFiles = []*os.File{life, out}
	detachShim(c)
	return nil
}

// detachShim makes c the leader of a session of its own.
func detachShim(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// inherited are the ends that hand gave; the program must not get them.
func inherited() (life, out *os.File) {
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	return os.NewFile(3, "lifeline"), os.NewFile(4, "words")
}

func executable(fi os.FileInfo) bool { return fi.Mode()&0o111 != 0 }

func extensions([]string) []string { return []string{""} }
