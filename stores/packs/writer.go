package packs

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/zstd"

	"witan/kernel"
	"witan/stores/db"
)

// writer is one bulk write; it may become several files. A full file is sealed at
// once and its list forgotten, so that memory hardly grows with what is written.
type writer struct {
	s     *Store
	tools chan *tools // idle ones; they go when the writer goes

	mu   sync.Mutex
	cur  *fileWriter            // guarded by mu
	full chan error             // guarded by mu; gives the end of sealing the last of done; nil when nothing is
	done []string               // guarded by mu; ids of files that are sealed, or being so, and not indexed
	new  map[kernel.Digest]bool // guarded by mu; in cur and done
	err  error                  // guarded by mu; after it only Abort works
	over bool                   // guarded by mu
}

// tools are what one goroutine needs to prepare a pack.
type tools struct {
	enc *zstd.Encoder
	in  []byte // one segment
	out []byte // the same, compressed
}

const (
	keepTools  = 2       // between calls: as many as there are workers
	maxEntries = 1 << 14 // of a file
	maxNew     = 1 << 17 // packs remembered; beyond, one may be stored twice
)

// Begin implements kernel.Packs.
func (s *Store) Begin(ctx context.Context) (kernel.PackWriter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.db.Guard(fileBytes); err != nil {
		return nil, err
	}
	return &writer{s: s, tools: make(chan *tools, keepTools), new: map[kernel.Digest]bool{}}, nil
}

func (w *writer) take() *tools {
	select {
	case t := <-w.tools:
		return t
	default:
		return &tools{enc: newEncoder()}
	}
}

func (w *writer) give(t *tools) {
	select {
	case w.tools <- t:
	default:
	}
}

// Has implements kernel.PackWriter.
func (w *writer) Has(d kernel.Digest) bool {
	w.mu.Lock()
	ok := w.new[d]
	w.mu.Unlock()
	return ok || w.s.has(d)
}

// Add implements kernel.PackWriter.
func (w *writer) Add(kind string, b []byte) (kernel.Digest, error) {
	if len(b) > segmentBytes {
		d, _, err := w.stream(kind, b[:segmentBytes], &byteReader{b[segmentBytes:]}, int64(len(b)))
		return d, err
	}
	t := w.take()
	defer w.give(t)
	return w.add(t, kind, b)
}

// byteReader reads b without copying it twice.
type byteReader struct{ b []byte }

func (r *byteReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

// add stores a pack of one segment. It is hashed and compressed outside of the lock.
func (w *writer) add(t *tools, kind string, b []byte) (kernel.Digest, error) {
	d := kernel.Sum(b)
	if err := checkKind(kind); err != nil {
		return d, err
	}
	if w.Has(d) {
		return d, w.usable()
	}
	t.out = compress(t.enc, t.out[:0], b)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(); err != nil || w.new[d] {
		return d, err
	}
	m := w.cur.mark()
	if err := w.cur.segment(t.out); err != nil {
		return d, w.fail(err)
	}
	return d, w.enter(d, kind, int64(len(b)), m)
}

func (w *writer) usable() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed()
}

// closed tells why nothing can be written any more; mu is held.
func (w *writer) closed() error {
	if w.err == nil && w.over {
		return kernel.E("packs.Add", kernel.Invalid, nil, "the writer is closed")
	}
	return w.err
}

// ready opens a file to write to; mu is held.
func (w *writer) ready() (err error) {
	if err := w.closed(); err != nil || w.cur != nil {
		return err
	}
	if err := w.s.db.Guard(fileBytes); err != nil {
		w.err = err
		return err
	}
	if w.cur, err = newFileWriter(w.s.dir, w.s.key); err != nil {
		return w.fail(err)
	}
	return nil
}

// enter notes a complete pack and closes a file that is large enough; mu is held.
func (w *writer) enter(d kernel.Digest, kind string, size int64, from mark) error {
	w.cur.entries = append(w.cur.entries, entry{d, place{kind, size, from.at, w.cur.at - from.at}})
	if len(w.new) >= maxNew {
		clear(w.new)
	}
	w.new[d] = true
	if w.cur.at < fileBytes && len(w.cur.entries) < maxEntries {
		return nil
	}
	return w.rotate()
}

// rotate begins to seal the current file, beside what goes on; mu is held.
func (w *writer) rotate() error {
	if w.cur == nil {
		return nil
	}
	if err := w.settle(); err != nil { // one at a time
		return err
	}
	f, end := w.cur, make(chan error, 1)
	w.done, w.cur, w.full = append(w.done, f.id), nil, end
	go func() { end <- f.seal(w.s.at) }()
	return nil
}

// settle waits for the end of what rotate began; mu is held.
func (w *writer) settle() error {
	if w.full == nil {
		return nil
	}
	err := <-w.full
	if w.full = nil; err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *writer) fail(err error) error {
	w.err = db.DiskError("packs.write", w.s.db.Dir, err)
	return w.err
}

// AddReader implements kernel.PackWriter.
func (w *writer) AddReader(kind string, r io.Reader, size int64) (kernel.Digest, int64, error) {
	t := w.take()
	defer w.give(t)
	if t.in == nil {
		t.in = make([]byte, segmentBytes)
	}
	n, err := io.ReadFull(r, t.in)
	switch {
	case err == nil:
		return w.stream(kind, t.in, r, size)
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return kernel.Digest{}, int64(n), err
	case size >= 0 && int64(n) != size:
		return kernel.Digest{}, int64(n), otherSize(int64(n), size)
	}
	d, err := w.add(t, kind, t.in[:n])
	return d, int64(n), err
}

func otherSize(n, size int64) error {
	return kernel.E("packs.AddReader", kernel.Conflict, nil, "there are %d bytes or more, not %d", n, size)
}

// stream stores a pack of several segments, of which first is the first; all lie
// in one file, and it holds the lock meanwhile. size is -1 for all that r gives.
func (w *writer) stream(kind string, first []byte, r io.Reader, size int64) (d kernel.Digest, n int64, err error) {
	if err := checkKind(kind); err != nil {
		return d, 0, err
	}
	if size >= 0 { // one byte more tells that there is more
		r = io.LimitReader(r, size-int64(len(first))+1)
	}
	t := w.take()
	defer w.give(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(); err != nil {
		return d, 0, err
	}
	m := w.cur.mark()
	h := sha256.New()
	n, err = w.segments(t, h, first, r)
	h.Sum(d[:0])
	if err == nil && size >= 0 && n != size {
		err = otherSize(n, size)
	}
	if w.err != nil {
		return d, n, w.err
	}
	if err != nil || w.new[d] || w.s.has(d) {
		if cerr := w.cur.cut(m); cerr != nil {
			return d, n, w.fail(cerr)
		}
		return d, n, err
	}
	return d, n, w.enter(d, kind, n, m)
}

// segments writes first and all of r; mu is held. An error of r is returned, one
// of the disk is noted too.
func (w *writer) segments(t *tools, h hash.Hash, first []byte, r io.Reader) (n int64, err error) {
	if t.in == nil {
		t.in = make([]byte, segmentBytes)
	}
	sinceGuard := 0
	for b := first; len(b) > 0; {
		h.Write(b)
		n += int64(len(b))
		t.out = compress(t.enc, t.out[:0], b)
		if err := w.cur.segment(t.out); err != nil {
			return n, w.fail(err)
		}
		if sinceGuard += len(t.out); sinceGuard > fileBytes {
			if w.err = w.s.db.Guard(fileBytes); w.err != nil {
				return n, w.err
			}
			sinceGuard = 0
		}
		k, err := io.ReadFull(r, t.in)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return n, err
		}
		b = t.in[:k]
	}
	return n, nil
}

// Seal implements kernel.PackWriter.
func (w *writer) Seal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.closed(); err != nil {
		return err
	}
	if err := w.rotate(); err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	for len(w.done) > 0 {
		if err := w.s.adopt(w.done[0]); err != nil {
			w.done = nil // a part may be indexed: the files stay, and the next Open goes on
			return w.fail(err)
		}
		w.done = w.done[1:]
	}
	w.over = true
	return nil
}

// Abort implements kernel.PackWriter; after Seal it does nothing.
func (w *writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	_ = w.settle()
	if w.cur != nil {
		w.cur.abort()
		w.cur = nil
	}
	for _, id := range w.done { // nobody else knows them
		_ = os.Remove(filepath.Join(w.s.dir, id+".pack"))
	}
	w.done = nil
}
