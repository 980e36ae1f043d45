//go:build unix

package isolation

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps others of us, in this host and in others, from the worktrees of a
// repository until unlock is called. It ends with the process. Where the file system
// has no locks it does nothing: git is then asked again.
func lock(repository string) (unlock func()) {
	f, err := os.Open(repository)
	if err != nil {
		return func() {}
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	return func() { _ = f.Close() }
}
