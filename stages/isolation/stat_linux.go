package isolation

import (
	"io/fs"
	"os"
	"syscall"
)

// untouched reports whether nobody wrote to a file between two looks at it: its
// change time cannot be set, and settled has it move on.
func untouched(a, b fs.FileInfo) bool {
	if a == nil || a.Mode() != b.Mode() || a.Size() != b.Size() || !os.SameFile(a, b) {
		return false
	}
	x, ok1 := a.Sys().(*syscall.Stat_t)
	y, ok2 := b.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && x.Mtim == y.Mtim && x.Ctim == y.Ctim
}
