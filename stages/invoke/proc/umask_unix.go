//go:build unix

package proc

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// private makes what a process creates its user's own.
const private = 0o077

// umaskKey tells a host that is started by another process of ours what the
// umask was before ours.
const umaskKey = "WITAN_UMASK"

var person atomic.Int32 // the person's umask; 0 where Private was not called

// Private makes everything that this process creates from here on its user's
// own: some libraries create files with group and world bits. The umask that the
// person has set is kept for what belongs to the person, see Umask.
func Private() {
	was := syscall.Umask(private)
	if v, err := strconv.ParseInt(os.Getenv(umaskKey), 8, 32); err == nil {
		was = int(v) & 0o777
	}
	_ = os.Unsetenv(umaskKey)
	person.Store(int32(was))
}

// Umask is the person's own: for files in the person's folders.
func Umask() int { return int(person.Load()) }

// umaskEnv hands the person's umask on.
func umaskEnv() []string { return []string{umaskKey + "=" + strconv.FormatInt(int64(Umask()), 8)} }

// withUmask calls f under a umask.
func withUmask(mask int, f func() error) error {
	defer syscall.Umask(syscall.Umask(mask))
	return f()
}
