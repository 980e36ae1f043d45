// Package tree is the stored form of a folder: one node per directory, named by
// its hash, so that equal folders are one node however often they occur.
//
// A node is the line "witan-tree-1" and its entries, sorted by name: type (f
// file, x executable, l link, d directory), length of the name, name, SHA-256 of
// the content (of the target text for a link, of the node for a directory), size.
// Whatever decodes encodes to the same bytes.
package tree

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"witan/kernel"
)

// Types of entries.
const (
	File = 'f'
	Exec = 'x'
	Link = 'l'
	Dir  = 'd'
)

const magic = "witan-tree-1\n"

// Entry is one name in a directory. Size is that of the content; of a directory
// the sum of what is below it.
type Entry struct {
	Type byte
	Name string
	Hash kernel.Digest
	Size int64
}

// Encode returns the node of entries, which must be sorted by name and unique.
func Encode(entries []Entry) []byte {
	n := len(magic)
	for _, e := range entries {
		n += len(e.Name) + 48
	}
	out := append(make([]byte, 0, n), magic...)
	for _, e := range entries {
		out = append(out, e.Type)
		out = binary.AppendUvarint(out, uint64(len(e.Name)))
		out = append(out, e.Name...)
		out = append(out, e.Hash[:]...)
		out = binary.AppendUvarint(out, uint64(e.Size))
	}
	return out
}

var errNode = errors.New("not a tree node")

// Decode is strict: sorted, unique, safe names, shortest numbers, nothing behind.
func Decode(b []byte) ([]Entry, error) {
	bad := func() ([]Entry, error) {
		return nil, kernel.E("tree.Decode", kernel.Invalid, errNode, "the tree node is malformed")
	}
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return bad()
	}
	b = b[len(magic):]
	var out []Entry
	for len(b) > 0 {
		var e Entry
		e.Type, b = b[0], b[1:]
		if !strings.ContainsRune("fxld", rune(e.Type)) {
			return bad()
		}
		n, ok := uvarint(&b)
		if !ok || n == 0 || n > uint64(len(b)) || n > 4096 {
			return bad()
		}
		e.Name, b = string(b[:n]), b[n:]
		if e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") || len(out) > 0 && out[len(out)-1].Name >= e.Name {
			return bad()
		}
		if len(b) < len(e.Hash) {
			return bad()
		}
		copy(e.Hash[:], b)
		b = b[len(e.Hash):]
		size, ok := uvarint(&b)
		if !ok || size > 1<<62 {
			return bad()
		}
		e.Size = int64(size)
		out = append(out, e)
	}
	return out, nil
}

func uvarint(b *[]byte) (uint64, bool) {
	v, n := binary.Uvarint(*b)
	if n <= 0 || n != len(binary.AppendUvarint(nil, v)) {
		return 0, false
	}
	*b = (*b)[n:]
	return v, true
}

// maxDepth bounds nesting on the way out, as the walk does on the way in.
const maxDepth = 256

// Checkout writes the tree below dir, which must exist and be empty. Links are
// made as they were stored and never followed.
func Checkout(ctx context.Context, p kernel.Packs, root kernel.Digest, dir string) error {
	return checkout(ctx, p, root, dir, 0)
}

func checkout(ctx context.Context, p kernel.Packs, node kernel.Digest, dir string, depth int) error {
	if depth > maxDepth {
		return kernel.E("tree.Checkout", kernel.Invalid, nil, "the tree is nested deeper than %d", maxDepth)
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
		path := filepath.Join(dir, e.Name)
		if e.Type == Dir {
			if err := os.Mkdir(path, 0o755); err != nil {
				return kernel.E("tree.Checkout", kernel.Internal, err, "a folder of the copy cannot be made")
			}
			if err := checkout(ctx, p, e.Hash, path, depth+1); err != nil {
				return err
			}
			continue
		}
		content, err := p.Get(ctx, e.Hash)
		if err != nil {
			return err
		}
		if err := WriteFile(path, e.Type, content); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile makes one file or link, replacing what is there.
func WriteFile(path string, kind byte, content []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return kernel.E("tree.WriteFile", kernel.Internal, err, "a file of the copy cannot be replaced")
	}
	var err error
	switch kind {
	case Link:
		err = os.Symlink(string(content), path)
	case Exec:
		err = os.WriteFile(path, content, 0o755)
	default:
		err = os.WriteFile(path, content, 0o644)
	}
	if err != nil {
		return kernel.E("tree.WriteFile", kernel.Internal, err, "a file of the copy cannot be written")
	}
	return nil
}
