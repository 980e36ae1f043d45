package freeze

import (
	"errors"
	"io"
)

// Disk is how the stage sees files. Nothing of it follows a link, except Open
// for the workspace itself. Tests put faults in between.
type Disk interface {
	Open(path string) (Folder, error)
}

// Folder is an open directory. Its names are single elements.
type Folder interface {
	Names() ([]string, error) // in any order
	Stat(name string) (Stat, error)
	Folder(name string) (Folder, error)
	File(name string) (File, error) // never waits, also not for a pipe
	Link(name string) (string, error)
	Close() error
}

// File is an open file.
type File interface {
	io.ReadCloser
	Stat() (Stat, error)
}

// Kind is what an entry is.
type Kind uint8

const (
	Special Kind = iota // a pipe, socket or device
	Regular
	Symlink
	Directory
)

// Stat is what tells a changed file: a changed byte with the same size and time
// still has another change time.
type Stat struct {
	Kind  Kind
	Mode  uint32 // as the system has it
	Exec  bool   // somebody may execute it
	Size  int64
	Mtime int64 // ns since 1970
	Ctime int64 // ns since 1970; where the system has none, Mtime
	Inode uint64
}

// errNotFolder is what Open and Folder say of something else.
var errNotFolder = errors.New("not a folder")

func isNotFolder(err error) bool { return errors.Is(err, errNotFolder) }
