//go:build unix

package db

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked")

// flock takes an exclusive lock without waiting. The system releases it when
// the process ends, however it ends, so a stale lock cannot be.
func flock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// free is the number of bytes an ordinary user can still write below dir.
func free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
