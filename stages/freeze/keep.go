package freeze

import (
	"errors"
	"io"
	"io/fs"

	"witan/kernel"
)

// Reasons for which a snapshot does not hold something.
const (
	unreadable = "unreadable"
	special    = "special"
	tooLarge   = "too_large"
	tooDeep    = "too_deep"
	changing   = "changing" // while it was read, time and again
	submodule  = "submodule"
	gone       = "gone" // not a reason to name: it is not there any more
)

// tries is how often a file that changes while it is read is read.
const tries = 3

// kept is a file or link whose content is stored.
type kept struct {
	hash kernel.Digest
	size int64
	stat Stat // of exactly this content
}

// keep stores the content of a regular file or link. why is set when that cannot
// be done for a reason that lies with the file; err is the store's.
func keep(w kernel.PackWriter, dir Folder, name string, st Stat) (k kept, why string, err error) {
	for range tries {
		switch st.Kind {
		case Regular:
			k, why, err = keepFile(w, dir, name, st)
		case Symlink:
			k, why, err = keepLink(w, dir, name, st)
		default:
			return k, changing, nil
		}
		if why == "" || why == gone || err != nil {
			return k, why, err
		}
		now, err := dir.Stat(name)
		if err != nil {
			return k, reason(err), nil
		}
		if why == unreadable && now == st {
			return k, why, nil
		}
		st = now
	}
	return k, changing, nil
}

func reason(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return gone
	}
	return unreadable
}

func keepLink(w kernel.PackWriter, dir Folder, name string, st Stat) (kept, string, error) {
	target, err := dir.Link(name)
	if err != nil {
		return kept{}, changing, nil // most likely it is no link any more
	}
	d, err := w.Add("blob", []byte(target))
	return kept{d, int64(len(target)), st}, "", err
}

func keepFile(w kernel.PackWriter, dir Folder, name string, st Stat) (k kept, why string, err error) {
	f, err := dir.File(name)
	if err != nil {
		return k, reason(err), nil
	}
	defer f.Close()
	src := &exactly{r: f, left: st.Size}
	d, n, err := w.AddReader("blob", src, st.Size)
	switch {
	case src.err != nil:
		return k, unreadable, nil
	case src.short:
		return k, changing, nil
	case err != nil:
		return k, "", err
	}
	now, err := f.Stat()
	if err != nil {
		return k, unreadable, nil
	}
	if now != st { // it is another file, or was written to
		return k, changing, nil
	}
	return kept{d, n, st}, "", nil
}

// exactly gives the bytes that a file should have, and tells its own errors from
// those of the one it is given to. It needs no read to find the end.
type exactly struct {
	r     io.Reader
	left  int64
	short bool
	err   error
}

func (e *exactly) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(b[:min(int64(len(b)), e.left)])
	e.left -= int64(n)
	if errors.Is(err, io.EOF) && e.left > 0 {
		e.short = true
	} else if err != nil && !errors.Is(err, io.EOF) {
		e.err = err
	}
	return n, err
}
