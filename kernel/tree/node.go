package tree

import (
	"encoding/binary"
	"errors"
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

const (
	magic   = "witan-tree-1\n"
	maxName = 4096
)

// MaxDepth bounds nesting, both on the way in and on the way out.
const MaxDepth = 256

// Entry is one name in a directory. Size is that of the content; of a directory
// the sum of what is below it.
type Entry struct {
	Type byte
	Name string
	Hash kernel.Digest
	Size int64
}

// Encode appends the node of entries, which must be sorted by name and unique,
// to dst.
func Encode(dst []byte, entries []Entry) []byte {
	dst = Begin(dst)
	for i := range entries {
		dst = Append(dst, &entries[i])
	}
	return dst
}

// Begin appends the beginning of a node to dst.
func Begin(dst []byte) []byte { return append(dst, magic...) }

// Append appends the next entry to a node.
func Append(dst []byte, e *Entry) []byte {
	dst = append(dst, e.Type)
	dst = binary.AppendUvarint(dst, uint64(len(e.Name)))
	dst = append(dst, e.Name...)
	dst = append(dst, e.Hash[:]...)
	return binary.AppendUvarint(dst, uint64(e.Size))
}

var errNode = errors.New("not a tree node")

// Decode is strict: sorted, unique, safe names, shortest numbers, nothing behind.
// Anything else is an Invalid error.
func Decode(b []byte) ([]Entry, error) {
	rest, ok := strings.CutPrefix(string(b), magic) // names are cut out of one string
	if !ok {
		return nil, malformed()
	}
	var out []Entry
	for len(rest) > 0 {
		var e Entry
		if e, rest, ok = cutEntry(rest); !ok {
			return nil, malformed()
		}
		if len(out) > 0 && out[len(out)-1].Name >= e.Name {
			return nil, malformed()
		}
		out = append(out, e)
	}
	return out, nil
}

func malformed() error {
	return kernel.E("tree.Decode", kernel.Invalid, errNode, "the tree node is malformed")
}

func cutEntry(s string) (e Entry, rest string, ok bool) {
	e.Type, s = s[0], s[1:]
	if !strings.ContainsRune("fxld", rune(e.Type)) {
		return e, "", false
	}
	n, s, ok := cutUvarint(s)
	if !ok || n == 0 || n > maxName || n > uint64(len(s)) {
		return e, "", false
	}
	e.Name, s = s[:n], s[n:]
	if e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") || len(s) < len(e.Hash) {
		return e, "", false
	}
	s = s[copy(e.Hash[:], s):]
	size, s, ok := cutUvarint(s)
	if !ok || size > 1<<62 || e.Hash.IsZero() {
		return e, "", false
	}
	e.Size = int64(size)
	return e, s, true
}

// cutUvarint refuses a number that is longer than it must be.
func cutUvarint(s string) (v uint64, rest string, ok bool) {
	var buf [binary.MaxVarintLen64]byte
	v, n := binary.Uvarint(buf[:copy(buf[:], s)])
	if n <= 0 || n > 1 && s[n-1] == 0 {
		return 0, "", false
	}
	return v, s[n:], true
}
