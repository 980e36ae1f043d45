package ledger

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes the content and the length of f durable, and not its times.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
