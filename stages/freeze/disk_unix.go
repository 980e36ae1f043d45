//go:build linux || darwin

package freeze

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// OS is the disk of this system.
func OS() Disk { return unixDisk{} }

type unixDisk struct{}

// unixFolder is the descriptor of a directory: names are looked up in it, so
// that no path is resolved a second time.
type unixFolder int

type unixFile int

const openFlags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY

func (unixDisk) Open(path string) (Folder, error) {
	return openAt(unix.AT_FDCWD, path, unix.O_DIRECTORY)
}

func openAt(dir int, name string, flags int) (Folder, error) {
	fd, err := again(func() (int, error) { return unix.Openat(dir, name, openFlags|flags, 0) })
	switch {
	case errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP):
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotFolder}
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return unixFolder(fd), nil
}

// again repeats what a signal interrupted.
func again[T any](f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if !errors.Is(err, unix.EINTR) {
			return v, err
		}
	}
}

func (d unixFolder) Names() ([]string, error) {
	if _, err := unix.Seek(int(d), 0, io.SeekStart); err != nil {
		return nil, err
	}
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := again(func() (int, error) { return unix.ReadDirent(int(d), buf) })
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

func (d unixFolder) Stat(name string) (Stat, error) {
	var st unix.Stat_t
	_, err := again(func() (struct{}, error) {
		return struct{}{}, unix.Fstatat(int(d), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	return statOf(&st), err
}

func statOf(st *unix.Stat_t) Stat {
	out := Stat{Mode: uint32(st.Mode), Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Inode: st.Ino, Exec: st.Mode&0o111 != 0}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		out.Kind = Regular
	case unix.S_IFLNK:
		out.Kind = Symlink
	case unix.S_IFDIR:
		out.Kind = Directory
	}
	return out
}

func (d unixFolder) Folder(name string) (Folder, error) {
	return openAt(int(d), name, unix.O_DIRECTORY|unix.O_NOFOLLOW)
}

func (d unixFolder) File(name string) (File, error) {
	fd, err := again(func() (int, error) { return unix.Openat(int(d), name, openFlags|unix.O_NOFOLLOW, 0) })
	return unixFile(fd), err
}

func (d unixFolder) Link(name string) (string, error) {
	buf := make([]byte, 4096)
	for {
		n, err := again(func() (int, error) { return unix.Readlinkat(int(d), name, buf) })
		if err != nil || n < len(buf) {
			return string(buf[:max(n, 0)]), err
		}
		buf = make([]byte, 2*len(buf))
	}
}

func (d unixFolder) Close() error { return unix.Close(int(d)) }

func (f unixFile) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := again(func() (int, error) { return unix.Read(int(f), b) })
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}

func (f unixFile) Stat() (Stat, error) {
	var st unix.Stat_t
	_, err := again(func() (struct{}, error) { return struct{}{}, unix.Fstat(int(f), &st) })
	return statOf(&st), err
}

func (f unixFile) Close() error { return unix.Close(int(f)) }
