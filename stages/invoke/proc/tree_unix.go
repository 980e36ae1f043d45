//go:build unix && !linux

package proc

import (
	"os"
	"os/exec"
	"syscall"
)

func detachShim(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func executable(fi os.FileInfo) bool { return fi.Mode()&0o111 != 0 }

func extensions([]string) []string { return []string{""} }

// group is the program's process group: descendants that leave it survive, which
// is the most that can be done without a subreaper.
type group struct{}

func ownTree(c *exec.Cmd) group {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return group{}
}

func (group) terminate(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
func (group) kill(c *exec.Cmd)      { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
