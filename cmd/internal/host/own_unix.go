//go:build unix

package host

import (
	"os"
	"syscall"

	"witan/kernel"
)

// ownedByUs refuses a socket folder that somebody else could have prepared.
func ownedByUs(dir string) error {
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.IsDir() || ok && int(st.Uid) != os.Getuid() {
		return kernel.E("host.listen", kernel.ReadOnly, nil, "the socket folder %s belongs to somebody else", dir).
			WithNext("set XDG_RUNTIME_DIR to a folder of yours")
	}
	return nil
}
