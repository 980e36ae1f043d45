package freeze

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"witan/kernel"
)

// A fingerprint stands for name and stat of an entry; of a directory, for its
// name only. The zero one equals nothing: its entry is read again.
type fingerprint [16]byte

// racy is the coarsest clock of a file system, in ns: what changed this close
// before a freeze may change again without another time.
const racy = int64(2e9)

// print is the fingerprint of an entry, as of a freeze that began at began.
func print(name string, st *Stat, began int64) (fp fingerprint) {
	if st.Kind == Directory {
		return printDir(name)
	}
	if st.Ctime > began-racy {
		return fp
	}
	b := make([]byte, 0, 128)
	b = append(b, byte(st.Kind))
	for _, v := range [...]uint64{uint64(st.Mode), uint64(st.Size), uint64(st.Mtime), uint64(st.Ctime), st.Inode} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	sum := sha256.Sum256(append(b, name...))
	return fingerprint(sum[:])
}

func printDir(name string) fingerprint {
	sum := sha256.Sum256(append([]byte{byte(Directory)}, name...))
	return fingerprint(sum[:])
}

func (fp fingerprint) isZero() bool { return fp == fingerprint{} }

// The cache is one blob for a workspace: a line, then per directory, in any order,
// its path, the node it became, and the fingerprints of what is in that node, in
// its order. What the node says is not repeated: the store has it.
const cacheMagic = "witan-stat-2\n"

// cache is the last freeze of a workspace.
type cache struct {
	b    []byte
	dirs map[string]int // path to where its record goes on behind it
}

// cached is the record of a directory.
type cached struct {
	node   kernel.Digest
	prints []byte
}

func (c cached) len() int { return len(c.prints) / len(fingerprint{}) }

func (c cached) at(i int) (fp fingerprint) {
	copy(fp[:], c.prints[i*len(fp):])
	return fp
}

// decodeCache returns an empty one for anything it does not understand.
func decodeCache(b []byte) cache {
	c := cache{b: b, dirs: map[string]int{}}
	rest, ok := bytes.CutPrefix(b, []byte(cacheMagic))
	if !ok {
		return cache{}
	}
	for len(rest) > 0 {
		path, ok := cutBytes(&rest, 1)
		if !ok {
			return cache{}
		}
		c.dirs[string(path)] = len(b) - len(rest)
		if _, ok := cutCached(&rest); !ok {
			return cache{}
		}
	}
	return c
}

func (c cache) dir(path string) (cached, bool) {
	at, ok := c.dirs[path]
	if !ok {
		return cached{}, false
	}
	rest := c.b[at:]
	return cutCached(&rest)
}

func cutCached(b *[]byte) (c cached, ok bool) {
	if len(*b) < len(c.node) {
		return c, false
	}
	*b = (*b)[copy(c.node[:], *b):]
	c.prints, ok = cutBytes(b, len(fingerprint{}))
	return c, ok
}

// cutBytes cuts a count, and as many things of size each.
func cutBytes(b *[]byte, size int) ([]byte, bool) {
	n, k := binary.Uvarint(*b)
	if k <= 0 || n > uint64(len(*b)-k)/uint64(size) {
		return nil, false
	}
	end := k + int(n)*size
	out := (*b)[k:end]
	*b = (*b)[end:]
	return out, true
}

// appendCached adds the record of a directory to b; n fingerprints must follow.
func appendCached(b []byte, path string, node kernel.Digest, n int) []byte {
	b = binary.AppendUvarint(b, uint64(len(path)))
	b = append(b, path...)
	b = append(b, node[:]...)
	return binary.AppendUvarint(b, uint64(n))
}
