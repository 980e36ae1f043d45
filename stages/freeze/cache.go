package freeze

import (
	"encoding/binary"

	"witan/kernel"
	"witan/kernel/tree"
)

// stat is what tells a changed file: a changed byte with the same size and time
// still has another change time.
type stat struct {
	mtime, ctime int64 // ns
	inode        uint64
	size         int64
	mode         uint32
}

// cache remembers the last freeze of a folder: per directory its node and its
// entries with their stat. It is written and read as one blob.
type cache struct{ dirs map[string]*cachedDir }

type cachedDir struct {
	node    kernel.Digest
	entries []cachedItem
	at      int // cursor of hash, which is asked in order
}

type cachedItem struct {
	name string
	typ  byte
	hash kernel.Digest
	stat stat
}

const cacheMagic = "witan-stat-1\n"

// racy is the coarsest clock of a file system: what changed this close before
// the freeze may change again without another time.
const racy = int64(2e9)

func (c *cache) dir(rel string) *cachedDir {
	if c == nil {
		return nil
	}
	return c.dirs[rel]
}

// hash is the digest of an unchanged file, zero for any other.
func (d *cachedDir) hash(it *item) kernel.Digest {
	if d == nil {
		return kernel.Digest{}
	}
	for d.at < len(d.entries) && d.entries[d.at].name < it.Name {
		d.at++
	}
	if d.at < len(d.entries) {
		if c := &d.entries[d.at]; c.name == it.Name && c.typ == it.Type && c.stat == it.stat && c.stat != (stat{}) {
			return c.hash
		}
	}
	return kernel.Digest{}
}

// same reports whether the directory has exactly the cached entries.
func (d *cachedDir) same(items []item) bool {
	if len(items) != len(d.entries) {
		return false
	}
	for i := range items {
		it, c := &items[i], &d.entries[i]
		if it.drop || it.Name != c.name || it.Type != c.typ || it.Hash != c.hash {
			return false
		}
		if it.Type != tree.Dir && c.stat != it.stat {
			return false
		}
	}
	return true
}

type cacheWriter struct {
	began int64
	buf   []byte
	count int
}

func (w *cacheWriter) add(d *dir) {
	b := w.buf
	b = binary.AppendUvarint(b, uint64(len(d.path)))
	b = append(b, d.path...)
	b = append(b, d.node[:]...)
	n := 0
	for i := range d.entries {
		if !d.entries[i].drop {
			n++
		}
	}
	b = binary.AppendUvarint(b, uint64(n))
	for i := range d.entries {
		it := &d.entries[i]
		if it.drop {
			continue
		}
		st := it.stat
		if st.mtime > w.began-racy || st.ctime > w.began-racy {
			st = stat{} // not trusted next time
		}
		b = binary.AppendUvarint(b, uint64(len(it.Name)))
		b = append(b, it.Name...)
		b = append(b, it.Type)
		b = append(b, it.Hash[:]...)
		if it.Type != tree.Dir {
			b = binary.AppendVarint(b, st.mtime)
			b = binary.AppendVarint(b, st.ctime)
			b = binary.AppendUvarint(b, st.inode)
			b = binary.AppendVarint(b, st.size)
			b = binary.AppendUvarint(b, uint64(st.mode))
		}
	}
	w.buf = b
	w.count++
}

func (w *cacheWriter) encode() []byte {
	return append(binary.AppendUvarint([]byte(cacheMagic), uint64(w.count)), w.buf...)
}

// decodeCache returns nil for anything it does not understand: it is a cache.
func decodeCache(b []byte) *cache {
	if len(b) < len(cacheMagic) || string(b[:len(cacheMagic)]) != cacheMagic {
		return nil
	}
	// Names are cut out of one string: one allocation for all.
	r := &reader{b: b[len(cacheMagic):], s: string(b[len(cacheMagic):])}
	n := r.uint()
	if r.bad || n > maxEntries {
		return nil
	}
	c := &cache{dirs: make(map[string]*cachedDir, n)}
	for range n {
		path := r.text()
		d := &cachedDir{node: r.digest()}
		k := r.uint()
		if r.bad || k > maxEntries {
			return nil
		}
		d.entries = make([]cachedItem, k)
		for i := range d.entries {
			it := &d.entries[i]
			it.name = r.text()
			it.typ = r.one()
			it.hash = r.digest()
			if it.typ != tree.Dir {
				it.stat = stat{mtime: r.int(), ctime: r.int(), inode: r.uint(), size: r.int(), mode: uint32(r.uint())}
			}
		}
		if r.bad {
			return nil
		}
		c.dirs[path] = d
	}
	return c
}

type reader struct {
	b   []byte
	s   string
	at  int
	bad bool
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.at += n
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b[r.at:])
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.at += n
	return v
}

func (r *reader) text() string {
	n := r.uint()
	if r.bad || n > uint64(len(r.b)-r.at) {
		r.bad = true
		return ""
	}
	s := r.s[r.at : r.at+int(n)]
	r.at += int(n)
	return s
}

func (r *reader) one() byte {
	if r.at >= len(r.b) {
		r.bad = true
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *reader) digest() (d kernel.Digest) {
	if len(r.b)-r.at < len(d) {
		r.bad = true
		return d
	}
	copy(d[:], r.b[r.at:])
	r.at += len(d)
	return d
}
