package freeze

import (
	"io/fs"
	"os"
	"syscall"
)

func statOf(fi fs.FileInfo) stat {
	st := stat{mtime: fi.ModTime().UnixNano(), size: fi.Size(), mode: uint32(fi.Mode())}
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		st.ctime, st.inode = s.Ctim.Nano(), s.Ino
	}
	return st
}

// openPlain opens a regular file; a link or a pipe that took its place since it
// was seen is refused and never waited on.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}
