package tree

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"witan/kernel"
)

// MaxFile is the size above which a file is no part of a candidate.
const MaxFile = 1 << 30

// tries is how often a file that changes while it is read is read.
const tries = 3

// Reasons for which the content of a file is not known.
const (
	unreadable = "unreadable"
	special    = "special"
	tooLarge   = "too_large"
	changing   = "changing"
	repository = "repository"
)

// Found is what is at a path. The zero one is nothing. Mode is as files of a
// candidate have it. Of a file whose content is not known Skip says why, and Stamp
// tells whether it was touched.
type Found struct {
	Hash  kernel.Digest
	Mode  string
	Size  int64
	Skip  string
	Stamp string
}

// Absent reports whether nothing is there.
func (f Found) Absent() bool { return f == Found{} }

// Look says what is at a slash-separated path below root, of which no element is
// followed, and stores its content where w is not nil. A folder is nothing, unless
// the path ends with a slash: then it is a repository in another. The error is the
// store's.
func Look(w kernel.PackWriter, root *os.Root, name string) (Found, error) {
	name, nested := strings.CutSuffix(name, "/")
	local := filepath.FromSlash(name)
	for i := range local {
		if os.IsPathSeparator(local[i]) {
			if fi, err := root.Lstat(local[:i]); err != nil || !fi.IsDir() {
				return missing(err), nil
			}
		}
	}
	fi, err := root.Lstat(local)
	switch {
	case err != nil:
		return missing(err), nil
	case fi.IsDir() && nested:
		return Found{Skip: repository, Stamp: repository}, nil
	case fi.IsDir():
		return Found{}, nil
	}
	for range tries {
		f, err := readAs(w, root, local, fi)
		if err != nil || f.Skip != changing {
			return f, err
		}
		if fi, err = root.Lstat(local); err != nil {
			return missing(err), nil
		}
	}
	return skipped(changing, fi), nil
}

// List tells what is in a folder below root, whatever the names: those of an fs.FS
// would have to be UTF-8.
func List(root *os.Root, dir string) ([]fs.DirEntry, error) {
	d, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// missing is a file that was not found: it is not there, or nobody can tell.
func missing(err error) Found {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return Found{}
	}
	return Found{Skip: unreadable, Stamp: unreadable}
}

func skipped(why string, fi fs.FileInfo) Found {
	return Found{Skip: why, Stamp: fmt.Sprint(fi.Mode(), fi.Size(), fi.ModTime().UnixNano())}
}

func readAs(w kernel.PackWriter, root *os.Root, local string, fi fs.FileInfo) (Found, error) {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(local)
		if err != nil {
			return skipped(changing, fi), nil
		}
		d, n, err := store(w, strings.NewReader(target), int64(len(target)))
		return Found{Hash: d, Mode: ModeLink, Size: n}, err
	case !fi.Mode().IsRegular():
		return skipped(special, fi), nil
	case fi.Size() > MaxFile:
		return skipped(tooLarge, fi), nil
	}
	f, err := root.OpenFile(local, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not make us wait
	if err != nil {
		return skipped(unreadable, fi), nil
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil || !os.SameFile(before, fi) || !before.Mode().IsRegular() || before.Size() > MaxFile {
		return skipped(changing, fi), nil
	}
	src := &bounded{r: f, left: before.Size()}
	d, n, err := store(w, src, before.Size())
	switch {
	case src.err != nil:
		return skipped(unreadable, fi), nil
	case src.left > 0:
		return skipped(changing, fi), nil
	case err != nil:
		return Found{}, err
	}
	after, err := f.Stat()
	if err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return skipped(changing, fi), nil
	}
	mode := "0644"
	if after.Mode()&0o111 != 0 {
		mode = "0755"
	}
	return Found{Hash: d, Mode: mode, Size: n}, nil
}

// store names the content of r, and keeps it where w is not nil.
func store(w kernel.PackWriter, r io.Reader, size int64) (d kernel.Digest, n int64, err error) {
	if w != nil {
		return w.AddReader("blob", r, size)
	}
	h := sha256.New()
	n, err = io.Copy(h, r)
	h.Sum(d[:0])
	return d, n, err
}

// bounded gives the bytes that a file should have, and tells its own errors from
// those of the store.
type bounded struct {
	r    io.Reader
	left int64
	err  error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
