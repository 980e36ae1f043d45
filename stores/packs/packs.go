package packs

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/stores/db"
)

// Key prefixes: p/ a small pack itself, i/ the place of one in a file, f/ an indexed file.
const (
	prefixSmall = "p/"
	prefixIndex = "i/"
	prefixFile  = "f/"
)

// smallBytes is the largest pack kept in Badger: larger ones would fill its
// memory table for nothing.
const smallBytes = 128 << 10

// Options of Open.
type Options struct {
	DB    *db.DB
	Key   []byte // nil = no encryption
	Log   *slog.Logger
	Crash func(point string)
}

// Store implements kernel.Packs and kernel.StatCache.
type Store struct {
	db  *db.DB
	dir string
	key []byte
	log *slog.Logger
	at  func(string)
}

var (
	_ kernel.Packs     = (*Store)(nil)
	_ kernel.StatCache = (*Store)(nil)
)

// Open removes unfinished files and indexes finished ones that a crash left unindexed.
func Open(o Options) (*Store, error) {
	s := View(o)
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, kernel.E("packs.Open", kernel.ReadOnly, err, "the packs folder cannot be read").WithNext("check its permissions")
	}
	for _, n := range names {
		switch {
		case strings.HasSuffix(n.Name(), ".tmp"):
			_ = os.Remove(filepath.Join(s.dir, n.Name()))
		case strings.HasSuffix(n.Name(), ".pack"):
			if err := s.adopt(strings.TrimSuffix(n.Name(), ".pack")); err != nil {
				s.log.Error("pack file not indexed", "file", n.Name(), "err", err)
			}
		}
	}
	return s, nil
}

// View returns the store without touching anything.
func View(o Options) *Store {
	s := &Store{db: o.DB, dir: filepath.Join(o.DB.Dir, "packs"), key: o.Key, log: o.Log, at: o.Crash}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.at == nil {
		s.at = func(string) {}
	}
	return s
}

// adopt indexes a file that no index names.
func (s *Store) adopt(id string) error {
	err := s.db.View(func(txn *badger.Txn) error { _, err := txn.Get([]byte(prefixFile + id)); return err })
	if !errors.Is(err, badger.ErrKeyNotFound) {
		return err
	}
	f, sl, err := openFile(filepath.Join(s.dir, id+".pack"), s.key)
	if err != nil {
		return err
	}
	defer f.Close()
	entries, err := readFooter(f, sl)
	if err != nil {
		return err
	}
	return s.index(id, entries)
}

// place is an index entry: where a pack is.
type place struct {
	File string `json:"f"`
	entry
}

// index makes the packs of a file findable; the file's own entry comes last, so
// that an index cut by a crash is done again.
func (s *Store) index(id string, entries []entry) error {
	wb := s.db.NewWriteBatch()
	defer wb.Cancel()
	for _, e := range entries {
		h := e.Hash
		e.Hash = kernel.Digest{}
		b, err := json.Marshal(place{id, e})
		if err != nil {
			return err
		}
		if err := wb.Set(append([]byte(prefixIndex), h[:]...), b); err != nil {
			return err
		}
	}
	if err := wb.Flush(); err != nil {
		return err
	}
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := txn.Set([]byte(prefixFile+id), nil); err != nil {
		return err
	}
	return s.db.Commit(txn)
}

// Put implements kernel.Packs.
func (s *Store) Put(ctx context.Context, kind string, b []byte) (kernel.Digest, error) {
	d := kernel.Sum(b)
	if s.has(d) {
		return d, nil
	}
	if len(b) > smallBytes {
		w, err := s.Begin(ctx)
		if err != nil {
			return d, err
		}
		if _, err := w.Add(kind, b); err != nil {
			w.Abort()
			return d, err
		}
		return d, w.Seal()
	}
	if err := s.db.Guard(int64(len(b))); err != nil {
		return d, err
	}
	s.at("packs.put.before")
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := txn.Set(append([]byte(prefixSmall), d[:]...), encodeSmall(kind, b)); err != nil {
		return d, kernel.E("packs.Put", kernel.Internal, err, "the pack cannot be written")
	}
	err := s.db.Commit(txn)
	if kernel.IsKind(err, kernel.Conflict) { // the same pack at the same time
		err = nil
	}
	s.at("packs.put.after")
	return d, err
}

// encodeSmall is: length of kind, kind, length of the content, compressed content.
func encodeSmall(kind string, b []byte) []byte {
	out := append([]byte{byte(len(kind))}, kind...)
	out = binary.AppendUvarint(out, uint64(len(b)))
	return compress(out, b)
}

func decodeSmall(v []byte) (kind string, size int64, body []byte, err error) {
	if len(v) < 1 || len(v) < 1+int(v[0]) {
		return "", 0, nil, errSegment
	}
	kind, v = string(v[1:1+v[0]]), v[1+int(v[0]):]
	n, k := binary.Uvarint(v)
	if k <= 0 {
		return "", 0, nil, errSegment
	}
	return kind, int64(n), v[k:], nil
}

func (s *Store) has(d kernel.Digest) bool {
	err := s.db.View(func(txn *badger.Txn) error { _, _, err := s.find(txn, d); return err })
	return err == nil
}

// find returns the entry of a small pack, or the place of another.
func (s *Store) find(txn *badger.Txn, d kernel.Digest) (*badger.Item, *place, error) {
	it, err := txn.Get(append([]byte(prefixSmall), d[:]...))
	if err == nil {
		return it, nil, nil
	}
	if !errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil, err
	}
	it, err = txn.Get(append([]byte(prefixIndex), d[:]...))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil, kernel.E("packs", kernel.NotFound, nil, "pack %s is unknown", d)
	}
	if err != nil {
		return nil, nil, err
	}
	var p place
	err = it.Value(func(b []byte) error { return json.Unmarshal(b, &p) })
	if err != nil {
		return nil, nil, kernel.E("packs", kernel.Corrupt, err, "the index entry of %s is damaged", d).WithNext("run witan check")
	}
	return nil, &p, nil
}

func corrupt(d kernel.Digest, err error) error {
	return kernel.E("packs.Get", kernel.Corrupt, err, "pack %s does not match its hash", d).WithNext("run witan check; restore from a backup")
}

// Get implements kernel.Packs.
func (s *Store) Get(ctx context.Context, d kernel.Digest) ([]byte, error) {
	var out []byte
	err := s.db.View(func(txn *badger.Txn) error {
		it, p, err := s.find(txn, d)
		if err != nil {
			return err
		}
		if p != nil {
			out, err = s.readPlace(p)
			return err
		}
		return it.Value(func(v []byte) error {
			_, _, body, err := decodeSmall(v)
			if err == nil {
				body, err = decompress(body)
			}
			out = slices.Clone(body)
			return err
		})
	})
	switch {
	case kernel.IsKind(err, kernel.NotFound) || kernel.IsKind(err, kernel.Corrupt):
		return nil, err
	case err != nil:
		return nil, corrupt(d, err)
	case kernel.Sum(out) != d:
		return nil, corrupt(d, nil)
	}
	return out, nil
}

func (s *Store) readPlace(p *place) ([]byte, error) {
	f, sl, err := openFile(filepath.Join(s.dir, p.File+".pack"), s.key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := make([]byte, 0, min(p.Bytes, 64<<20))
	for i := 0; i+1 < len(p.Segs); i += 2 {
		b, err := readSegment(f, sl, p.Segs[i], p.Segs[i+1])
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// Stat implements kernel.Packs.
func (s *Store) Stat(ctx context.Context, d kernel.Digest) (info kernel.PackInfo, err error) {
	err = s.db.View(func(txn *badger.Txn) error {
		it, p, err := s.find(txn, d)
		if err != nil {
			return err
		}
		info, err = describe(d, it, p)
		return err
	})
	return info, err
}

func describe(d kernel.Digest, it *badger.Item, p *place) (kernel.PackInfo, error) {
	if p != nil {
		return kernel.PackInfo{Hash: d, Kind: p.Kind, Bytes: p.Bytes, Stored: p.Bytes}, nil
	}
	info := kernel.PackInfo{Hash: d, Stored: it.ValueSize()}
	err := it.Value(func(v []byte) (err error) {
		info.Kind, info.Bytes, _, err = decodeSmall(v)
		return err
	})
	return info, err
}

// List implements kernel.Packs.
func (s *Store) List(ctx context.Context) iter.Seq2[kernel.PackInfo, error] {
	return func(yield func(kernel.PackInfo, error) bool) {
		txn := s.db.NewTransaction(false)
		defer txn.Discard()
		for _, prefix := range []string{prefixSmall, prefixIndex} {
			o := badger.DefaultIteratorOptions
			o.Prefix = []byte(prefix)
			it := txn.NewIterator(o)
			for it.Rewind(); it.Valid(); it.Next() {
				var d kernel.Digest
				copy(d[:], it.Item().Key()[len(prefix):])
				item, p := it.Item(), (*place)(nil)
				if prefix == prefixIndex {
					p = &place{}
					if err := item.Value(func(b []byte) error { return json.Unmarshal(b, p) }); err != nil {
						it.Close()
						yield(kernel.PackInfo{}, kernel.E("packs.List", kernel.Corrupt, err, "the index entry of %s is damaged", d))
						return
					}
				}
				info, err := describe(d, item, p)
				if !yield(info, err) || err != nil {
					it.Close()
					return
				}
			}
			it.Close()
		}
	}
}

// Begin implements kernel.Packs.
func (s *Store) Begin(ctx context.Context) (kernel.PackWriter, error) {
	if err := s.db.Guard(fileBytes); err != nil {
		return nil, err
	}
	return &writer{s: s, new: map[kernel.Digest]bool{}}, nil
}

// writer is one bulk write; it may become several files.
type writer struct {
	s    *Store
	mu   sync.Mutex
	cur  *fileWriter            // guarded by mu
	done []*fileWriter          // guarded by mu; sealed and not indexed
	new  map[kernel.Digest]bool // guarded by mu
	err  error                  // guarded by mu; after it only Abort works
	over bool                   // guarded by mu
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
	d := kernel.Sum(b)
	if w.Has(d) {
		return d, nil
	}
	parts := [][]byte{}
	for rest := b; ; {
		n := min(len(rest), segmentBytes)
		parts = append(parts, rest[:n])
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
	}
	if len(parts) == 1 { // compress outside of the lock
		buf := buffers.get()
		defer func() { buffers.put(buf) }()
		buf = compress(buf[:0], parts[0])
		return d, w.write(d, kind, int64(len(b)), buf)
	}
	a := w.adder(kind)
	for _, p := range parts {
		a.part(p)
	}
	return d, a.finish(d, int64(len(b)))
}

var buffers = newPool(func() []byte { return make([]byte, 0, 256<<10) })

// write stores a pack of one segment.
func (w *writer) write(d kernel.Digest, kind string, size int64, compressed []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.new[d] || w.err != nil {
		return w.err
	}
	off, n, err := w.segment(compressed)
	if err != nil {
		return err
	}
	return w.enter(entry{d, kind, size, []int64{off, n}})
}

// segment writes to the current file; mu is held.
func (w *writer) segment(compressed []byte) (off, n int64, err error) {
	if w.over {
		return 0, 0, kernel.E("packs.Add", kernel.Invalid, nil, "the writer is closed")
	}
	if w.cur == nil {
		if w.cur, err = newFileWriter(w.s.dir, w.s.key); err != nil {
			return 0, 0, w.fail(err)
		}
	}
	if off, n, err = w.cur.segment(compressed); err != nil {
		return 0, 0, w.fail(err)
	}
	return off, n, nil
}

// enter notes a complete pack and closes a file that is large enough; mu is held.
func (w *writer) enter(e entry) error {
	w.cur.entries = append(w.cur.entries, e)
	w.new[e.Hash] = true
	if w.cur.at < fileBytes {
		return nil
	}
	return w.rotate()
}

func (w *writer) rotate() error {
	if w.cur == nil {
		return nil
	}
	if err := w.s.db.Guard(fileBytes); err != nil {
		w.err = err
		return err
	}
	if err := w.cur.seal(w.s.at); err != nil {
		return w.fail(err)
	}
	w.done, w.cur = append(w.done, w.cur), nil
	return nil
}

func (w *writer) fail(err error) error {
	w.err = db.DiskError("packs.write", w.s.db.Dir, err)
	return w.err
}

// adder writes a pack of several segments, which all lie in one file.
type adder struct {
	w    *writer
	kind string
	segs []int64
	err  error
}

// adder takes the writer's lock until finish: a large pack is alone.
func (w *writer) adder(kind string) *adder {
	w.mu.Lock()
	return &adder{w: w, kind: kind, err: w.err}
}

func (a *adder) part(b []byte) {
	if a.err != nil {
		return
	}
	off, n, err := a.w.segment(compress(nil, b))
	a.segs, a.err = append(a.segs, off, n), err
}

func (a *adder) finish(d kernel.Digest, size int64) error {
	defer a.w.mu.Unlock()
	if a.err != nil || a.w.new[d] || a.w.s.has(d) {
		return a.err
	}
	return a.w.enter(entry{d, a.kind, size, a.segs})
}

var pieces = newPool(func() []byte { return make([]byte, segmentBytes) })

// AddReader implements kernel.PackWriter.
func (w *writer) AddReader(kind string, r io.Reader, size int64) (kernel.Digest, int64, error) {
	buf := pieces.get()
	defer pieces.put(buf)
	n, err := io.ReadFull(r, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // one piece
		if size >= 0 && int64(n) != size {
			return kernel.Digest{}, int64(n), kernel.E("packs.AddReader", kernel.Conflict, nil, "the size is %d, not %d", n, size)
		}
		d, err := w.Add(kind, buf[:n])
		return d, int64(n), err
	}
	if err != nil {
		return kernel.Digest{}, 0, err
	}
	return w.addLarge(kind, io.MultiReader(), buf, r, size)
}

func (w *writer) addLarge(kind string, _ io.Reader, buf []byte, r io.Reader, size int64) (kernel.Digest, int64, error) {
	h := sha256.New()
	a := w.adder(kind)
	total := int64(0)
	n, err := len(buf), error(nil)
	for n > 0 {
		h.Write(buf[:n])
		a.part(buf[:n])
		total += int64(n)
		if err != nil {
			break
		}
		n, err = io.ReadFull(r, buf)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		a.w.mu.Unlock()
		return kernel.Digest{}, total, err
	}
	if size >= 0 && total != size {
		a.w.mu.Unlock()
		return kernel.Digest{}, total, kernel.E("packs.AddReader", kernel.Conflict, nil, "the size is %d, not %d", total, size)
	}
	var d kernel.Digest
	h.Sum(d[:0])
	return d, total, a.finish(d, total)
}

// Seal implements kernel.PackWriter.
func (w *writer) Seal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.over {
		return kernel.E("packs.Seal", kernel.Invalid, nil, "the writer is closed")
	}
	if err := w.rotate(); err != nil {
		return err
	}
	w.over = true
	for _, f := range w.done {
		w.s.at("packs.index")
		if err := w.s.index(f.id, f.entries); err != nil {
			return w.fail(err)
		}
	}
	w.done = nil // theirs is the store now: a later Abort must not touch them
	return nil
}

// Abort implements kernel.PackWriter. After Seal it does nothing.
func (w *writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.cur != nil {
		w.cur.abort()
		w.cur = nil
	}
	for _, f := range w.done {
		_ = os.Remove(f.path)
	}
	w.done = nil
}

// LoadStat implements kernel.StatCache.
func (s *Store) LoadStat(ctx context.Context, workspace string) ([]byte, error) {
	f, sl, err := openFile(s.statPath(workspace), s.key)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errFile) {
		return nil, kernel.E("packs.LoadStat", kernel.NotFound, nil, "nothing is cached")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(f)
	if err == nil {
		raw, err = sl.open(raw, 0)
	}
	if err == nil {
		raw, err = footerJSON(raw)
	}
	if err != nil {
		return nil, kernel.E("packs.LoadStat", kernel.NotFound, err, "the cache does not hold")
	}
	return raw, nil
}

// SaveStat implements kernel.StatCache; it is not synced: it is a cache.
func (s *Store) SaveStat(ctx context.Context, workspace string, b []byte) error {
	if err := s.db.Guard(int64(len(b))); err != nil {
		return err
	}
	w, err := newFileWriter(filepath.Join(s.db.Dir, "stat"), s.key)
	if err != nil {
		return db.DiskError("packs.SaveStat", s.db.Dir, err)
	}
	_, err = w.f.Write(w.s.seal(nil, compress(nil, b), 0))
	if cerr := w.f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(w.path+".tmp", s.statPath(workspace))
	}
	if err != nil {
		os.Remove(w.path + ".tmp")
		return db.DiskError("packs.SaveStat", s.db.Dir, err)
	}
	return nil
}

func (s *Store) statPath(workspace string) string {
	d := kernel.SumDomain("stat/1", []byte(workspace))
	return filepath.Join(s.db.Dir, "stat", strings.TrimPrefix(d.String(), "sha256:")[:24]+".stat")
}
