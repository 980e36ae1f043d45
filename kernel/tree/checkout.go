package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"witan/kernel"
)

// streamer is what a store of packs offers that can give large ones piece by
// piece. The content is checked when CopyTo returns nil and not before.
type streamer interface {
	CopyTo(ctx context.Context, d kernel.Digest, w io.Writer) (int64, error)
}

// streamBytes is the size from which a file is not taken into memory.
const streamBytes = 1 << 20

// maxLink is the longest target of a link.
const maxLink = 64 << 10

// Walk calls f for every entry below root, parents first, in order. Path is
// slash-separated and below root.
func Walk(ctx context.Context, p kernel.Packs, root kernel.Digest, f func(path string, e Entry) error) error {
	return walk(ctx, p, root, "", 0, f)
}

func walk(ctx context.Context, p kernel.Packs, node kernel.Digest, dir string, depth int, f func(string, Entry) error) error {
	if depth > MaxDepth {
		return kernel.E("tree.Walk", kernel.Invalid, nil, "the tree is nested deeper than %d", MaxDepth)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := p.Get(ctx, node)
	if err != nil {
		return err
	}
	entries, err := Decode(b)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if err := f(name, e); err != nil {
			return err
		}
		if e.Type != Dir {
			continue
		}
		if err := walk(ctx, p, e.Hash, name, depth+1, f); err != nil {
			return err
		}
	}
	return nil
}

// Checkout writes the tree below dir, which must exist and be empty. Links are
// made as they were stored and never followed. Two names that the system takes
// for one are an error.
func Checkout(ctx context.Context, p kernel.Packs, root kernel.Digest, dir string) error {
	return Walk(ctx, p, root, func(name string, e Entry) error {
		to, err := local(dir, name)
		if err != nil {
			return err
		}
		if e.Type == Dir {
			return failed(os.Mkdir(to, 0o755), name)
		}
		return write(ctx, p, to, name, e)
	})
}

// local is where name, slash-separated, lies below dir on this system.
func local(dir, name string) (string, error) {
	l := filepath.FromSlash(name)
	if !filepath.IsLocal(l) || filepath.Separator != '/' && strings.ContainsRune(name, filepath.Separator) {
		return "", kernel.E("tree.Checkout", kernel.Unsupported, nil, "%q is not a file name on this system", EncodePath(name))
	}
	return filepath.Join(dir, l), nil
}

func failed(err error, name string) error {
	if err == nil {
		return nil
	}
	kind := kernel.Internal
	if errors.Is(err, fs.ErrExist) {
		kind = kernel.Conflict
	}
	return kernel.E("tree.Checkout", kind, err, "%q of the copy cannot be written", EncodePath(name))
}

// write makes one file or link at to, where nothing may be.
func write(ctx context.Context, p kernel.Packs, to, name string, e Entry) error {
	if e.Type == Link {
		if e.Size > maxLink {
			return kernel.E("tree.Checkout", kernel.Invalid, nil, "link %q is too long", EncodePath(name))
		}
		target, err := p.Get(ctx, e.Hash)
		if err != nil {
			return err
		}
		return failed(os.Symlink(string(target), to), name)
	}
	perm := fs.FileMode(0o644)
	if e.Type == Exec {
		perm = 0o755
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return failed(err, name)
	}
	err = content(ctx, p, e, f)
	if cerr := f.Close(); err == nil {
		err = failed(cerr, name)
	}
	return err
}

// Content writes the content of a pack of a known size, large ones piece by piece. It
// is checked when Content returns nil and not before.
func Content(ctx context.Context, p kernel.Packs, d kernel.Digest, size int64, w io.Writer) error {
	return content(ctx, p, Entry{Hash: d, Size: size}, w)
}

func content(ctx context.Context, p kernel.Packs, e Entry, w io.Writer) error {
	if s, ok := p.(streamer); ok && e.Size >= streamBytes {
		_, err := s.CopyTo(ctx, e.Hash, w)
		return err
	}
	b, err := p.Get(ctx, e.Hash)
	if err == nil {
		_, err = io.Copy(w, bytes.NewReader(b))
	}
	return err
}

// clear makes room for name below dir: what is there goes, and so does a file or
// link that is where a folder of its path must be. Nothing is followed.
func clear(dir, name string) error {
	at := dir
	parts := strings.Split(filepath.FromSlash(name), string(filepath.Separator))
	for _, part := range parts[:len(parts)-1] {
		at = filepath.Join(at, part)
		fi, err := os.Lstat(at)
		if err == nil && !fi.IsDir() {
			if err := os.Remove(at); err != nil {
				return failed(err, name)
			}
		}
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return failed(err, name)
		}
	}
	return failed(os.RemoveAll(filepath.Join(at, parts[len(parts)-1])), name)
}

// remove takes a file away, and the folders that it leaves empty, as git does.
// Behind something that is no folder there is no such file.
func remove(dir, name string) error {
	at := dir
	parts := strings.Split(filepath.FromSlash(name), string(filepath.Separator))
	for i, part := range parts {
		at = filepath.Join(at, part)
		fi, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return failed(err, name)
		case i < len(parts)-1 && !fi.IsDir():
			return nil
		}
	}
	if err := os.RemoveAll(at); err != nil {
		return failed(err, name)
	}
	for at = filepath.Dir(at); at != dir; at = filepath.Dir(at) {
		if os.Remove(at) != nil {
			return nil // it is not empty
		}
	}
	return nil
}
