package isolation

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
	"witan/kernel/tree"
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

// file is what is at a path. The zero one is nothing. Of a file whose content is
// not known skip says why, and stamp tells whether it was touched.
type file struct {
	hash  kernel.Digest
	mode  string
	size  int64
	skip  string
	stamp string
}

func (f file) absent() bool { return f == file{} }

// read says what is at a slash-separated path below root, of which no element is
// followed, and stores its content where w is not nil. A folder is no file. The
// error is the store's.
func read(w kernel.PackWriter, root *os.Root, name string) (file, error) {
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
		return file{skip: repository, stamp: repository}, nil
	case fi.IsDir():
		return file{}, nil
	}
	for range tries {
		f, err := readAs(w, root, local, fi)
		if err != nil || f.skip != changing {
			return f, err
		}
		if fi, err = root.Lstat(local); err != nil {
			return missing(err), nil
		}
	}
	return skipped(changing, fi), nil
}

// missing is a file that was not found: it is not there, or nobody can tell.
func missing(err error) file {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return file{}
	}
	return file{skip: unreadable, stamp: unreadable}
}

func skipped(why string, fi fs.FileInfo) file {
	return file{skip: why, stamp: fmt.Sprint(fi.Mode(), fi.Size(), fi.ModTime().UnixNano())}
}

func readAs(w kernel.PackWriter, root *os.Root, local string, fi fs.FileInfo) (file, error) {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(local)
		if err != nil {
			return skipped(changing, fi), nil
		}
		d, n, err := store(w, strings.NewReader(target), int64(len(target)))
		return file{hash: d, mode: tree.ModeLink, size: n}, err
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
		return file{}, err
	}
	after, err := f.Stat()
	if err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return skipped(changing, fi), nil
	}
	mode := "0644"
	if after.Mode()&0o111 != 0 {
		mode = "0755"
	}
	return file{hash: d, mode: mode, size: n}, nil
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
