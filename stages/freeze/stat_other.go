//go:build !linux

package freeze

import (
	"io/fs"
	"os"
)

func statOf(fi fs.FileInfo) stat {
	return stat{mtime: fi.ModTime().UnixNano(), size: fi.Size(), mode: uint32(fi.Mode())}
}

func openPlain(path string) (*os.File, error) { return os.Open(path) }
