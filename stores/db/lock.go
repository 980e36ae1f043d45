package db

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"witan/kernel"
)

// Lock is the exclusive right to a data directory.
type Lock struct{ f *os.File }

// TakeLock takes DIR/LOCK or fails with Locked, naming the owner; it does not
// wait. On a file system without working locks it fails with ReadOnly: running
// unlocked is not safe, and waiting would not help.
func TakeLock(dir string) (*Lock, error) { return takeLock(dir, flock) }

func takeLock(dir string, flock func(*os.File) error) (*Lock, error) {
	const op = "db.TakeLock"
	path := filepath.Join(dir, "LOCK")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, DiskError(op, dir, err)
	}
	if err := flock(f); err != nil {
		defer f.Close()
		if errors.Is(err, errLocked) {
			return nil, kernel.E(op, kernel.Locked, nil, "%s is in use by %s", dir, owner(f)).WithNext("use that host, or end it")
		}
		return nil, kernel.E(op, kernel.ReadOnly, err, "the file system of %s has no working locks", dir).WithNext("use --home with a local disk")
	}
	// Whose lock it is, for the sentence another host prints; the lock itself does not depend on it.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{f}, nil
}

func owner(f *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return "process " + pid
	}
	return "another process"
}

// Release gives the right back.
func (l *Lock) Release() error { return l.f.Close() }
