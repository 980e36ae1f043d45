//go:build unix && !linux

package proc

import (
	"os/exec"
	"syscall"
)

// tree is the program's process group: descendants that leave it are found by
// their marker alone, which is the most that can be done without a subreaper.
type tree struct{}

func ownTree(c *exec.Cmd) (tree, error) {
	syscall.Umask(private)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return tree{}, nil
}

func (tree) terminate(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
func (tree) kill(c *exec.Cmd)      { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
