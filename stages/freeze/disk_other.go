//go:build !linux && !darwin

package freeze

import (
	"errors"
	"io/fs"
	"os"
)

// OS is the disk of this system.
func OS() Disk { return rootDisk{} }

type rootDisk struct{}

// rootFolder keeps every name below it: what a link leads out of it is refused.
type rootFolder struct{ r *os.Root }

type rootFile struct{ *os.File }

func (rootDisk) Open(path string) (Folder, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotFolder}
	}
	r, err := os.OpenRoot(path)
	return rootFolder{r}, err
}

func (d rootFolder) Names() ([]string, error) {
	f, err := d.r.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func (d rootFolder) Stat(name string) (Stat, error) {
	fi, err := d.r.Lstat(name)
	if err != nil {
		return Stat{}, err
	}
	return statOf(fi), nil
}

func statOf(fi fs.FileInfo) Stat {
	m := fi.Mode()
	out := Stat{Mode: uint32(m), Size: fi.Size(), Mtime: fi.ModTime().UnixNano(), Ctime: fi.ModTime().UnixNano(), Exec: m.IsRegular() && m&0o111 != 0}
	switch {
	case m.IsRegular():
		out.Kind = Regular
	case m&fs.ModeSymlink != 0:
		out.Kind = Symlink
	case m.IsDir():
		out.Kind = Directory
	}
	return out
}

func (d rootFolder) Folder(name string) (Folder, error) {
	r, err := d.r.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	was, err := d.r.Lstat(name)
	if err == nil {
		var is fs.FileInfo
		if is, err = r.Stat("."); err == nil && !os.SameFile(was, is) { // it was reached through a link
			err = &fs.PathError{Op: "open", Path: name, Err: errNotFolder}
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return rootFolder{r}, nil
}

func (d rootFolder) File(name string) (File, error) {
	f, err := d.r.Open(name)
	if err != nil {
		return nil, err
	}
	return rootFile{f}, nil
}

func (d rootFolder) Link(name string) (string, error) { return d.r.Readlink(name) }
func (d rootFolder) Close() error                     { return d.r.Close() }

func (f rootFile) Stat() (Stat, error) {
	fi, err := f.File.Stat()
	if err != nil {
		return Stat{}, err
	}
	return statOf(fi), nil
}
