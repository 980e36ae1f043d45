//go:build unix

package builtin_test

import (
	"os/exec"
	"syscall"
)

// group makes the end of a command the end of what it started.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
