package proc

import (
	"io"
	"os"
	"os/exec"
)

// StartDetached starts this program again with args, so that it outlives its
// parent and its terminal. The reader is its standard output; closing it leaves
// the program alone.
func StartDetached(args ...string) (io.ReadCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), umaskEnv()...)
	detachShim(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return out, cmd.Process.Release()
}

// KillSelf ends this process as kill -9 would; for crash tests.
func KillSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}
