package packs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"witan/kernel"
	"witan/stores/db"
)

// smallBytes is the largest pack kept in Badger: larger ones would fill its
// memory table for nothing.
const smallBytes = 128 << 10

// Options of Open.
type Options struct {
	DB    *db.DB
	Key   []byte // 32 bytes; nil = no encryption
	Log   *slog.Logger
	Crash func(point string) // called at named points, in crash tests
}

// Store implements kernel.Packs and kernel.StatCache.
type Store struct {
	db   *db.DB
	dir  string
	stat string
	key  []byte
	log  *slog.Logger
	at   func(string)
	view bool

	breaking sync.Mutex // one pack is set aside at a time
}

var (
	_ kernel.Packs     = (*Store)(nil)
	_ kernel.StatCache = (*Store)(nil)
)

// Open removes unfinished files and indexes finished ones that a crash left
// unindexed.
func Open(o Options) (*Store, error) {
	s := View(o)
	s.view = false
	return s, s.tidy()
}

// View returns the store without touching anything; it is for reading.
func View(o Options) *Store {
	s := &Store{db: o.DB, dir: filepath.Join(o.DB.Dir, "packs"), stat: filepath.Join(o.DB.Dir, "stat"), key: o.Key, log: o.Log, at: o.Crash, view: true}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.at == nil {
		s.at = func(string) {}
	}
	return s
}

// Put implements kernel.Packs.
func (s *Store) Put(ctx context.Context, kind string, b []byte) (kernel.Digest, error) {
	d := kernel.Sum(b)
	if err := ctx.Err(); err != nil {
		return d, err
	}
	if s.has(d) {
		return d, nil
	}
	if len(b) > smallBytes {
		w, err := s.Begin(ctx)
		if err != nil {
			return d, err
		}
		defer w.Abort()
		if _, err := w.Add(kind, b); err != nil {
			return d, err
		}
		return d, w.Seal()
	}
	v, err := encodeSmall(kind, b)
	if err != nil {
		return d, err
	}
	if err := s.db.Guard(int64(len(v))); err != nil {
		return d, err
	}
	s.at("packs.put.before")
	err = s.update(func(txn *badger.Txn) error { return txn.Set(key(prefixSmall, d), v) })
	if kernel.IsKind(err, kernel.Conflict) { // the same pack at the same time
		err = nil
	}
	s.at("packs.put.after")
	return d, err
}

func checkKind(kind string) error {
	if len(kind) > 32 {
		return kernel.E("packs", kernel.Invalid, nil, "a kind of pack has at most 32 bytes")
	}
	return nil
}

// encodeSmall is: length of kind, kind, length of the content, compressed content.
func encodeSmall(kind string, b []byte) ([]byte, error) {
	if err := checkKind(kind); err != nil {
		return nil, err
	}
	out := append([]byte{byte(len(kind))}, kind...)
	out = binary.AppendUvarint(out, uint64(len(b)))
	e := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(e)
	return compress(e, out, b), nil
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
	return s.db.View(func(txn *badger.Txn) error { _, _, err := find(txn, d); return err }) == nil
}

// find returns the entry of a pack: a small one, or the place of another.
func find(txn *badger.Txn, d kernel.Digest) (it *badger.Item, small bool, err error) {
	for _, prefix := range []string{prefixIndex, prefixSmall} {
		if it, err = txn.Get(key(prefix, d)); err == nil || !errors.Is(err, badger.ErrKeyNotFound) {
			return it, prefix == prefixSmall, err
		}
	}
	if _, err := txn.Get(key(prefixBroken, d)); err == nil {
		return nil, false, kernel.E("packs", kernel.Corrupt, nil, "pack %s was damaged and is set aside", d).WithNext("restore from a backup")
	}
	return nil, false, kernel.E("packs", kernel.NotFound, nil, "pack %s is unknown", d)
}

// Get implements kernel.Packs.
func (s *Store) Get(ctx context.Context, d kernel.Digest) ([]byte, error) {
	var out bytes.Buffer
	if _, err := s.CopyTo(ctx, d, &out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// CopyTo writes a pack to w in bounded memory. What it wrote is worth something
// only when it returns nil: the name is checked at the end. A pack that does not
// hold is Corrupt, and set aside.
func (s *Store) CopyTo(ctx context.Context, d kernel.Digest, w io.Writer) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	out := &hashing{w: w}
	var file string
	var p place
	err := s.db.View(func(txn *badger.Txn) error {
		it, small, err := find(txn, d)
		if err != nil {
			return err
		}
		return it.Value(func(v []byte) error {
			if !small {
				file, p, err = decodeIndex(v)
				return err
			}
			_, size, body, err := decodeSmall(v)
			if err != nil {
				return err
			}
			b, err := decompress(make([]byte, 0, min(size, segmentBytes)), body)
			if err == nil {
				_, err = out.Write(b)
			}
			return err
		})
	})
	if err == nil && file != "" {
		if b, ok := w.(*bytes.Buffer); ok {
			b.Grow(int(min(p.Bytes, 64<<20)))
		}
		err = s.copyPlace(file, p, out)
	}
	switch {
	case out.err != nil:
		return out.n, kernel.E("packs.Get", kernel.Internal, out.err, "pack %s cannot be passed on", d)
	case err == nil && out.sum() == d:
		return out.n, nil
	case err == nil, errors.Is(err, errSegment), errors.Is(err, errIndex), errors.Is(err, errFile), errors.Is(err, fs.ErrNotExist), isZstd(err):
		s.setAside(d, file, p)
		return out.n, kernel.E("packs.Get", kernel.Corrupt, err, "pack %s does not match its hash", d).WithNext("run witan check; restore from a backup")
	case kernel.KindOf(err) != kernel.Internal:
		return out.n, err
	}
	return out.n, kernel.E("packs.Get", kernel.Internal, err, "pack %s cannot be read", d).WithNext("try again; nothing was changed")
}

func isZstd(err error) bool {
	for _, e := range []error{zstd.ErrMagicMismatch, zstd.ErrReservedBlockType, zstd.ErrCompressedSizeTooBig, zstd.ErrWindowSizeExceeded,
		zstd.ErrDecoderSizeExceeded, zstd.ErrFrameSizeMismatch, zstd.ErrFrameSizeExceeded, zstd.ErrCRCMismatch, io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *Store) copyPlace(file string, p place, w io.Writer) error {
	f, sl, err := openFile(filepath.Join(s.dir, file+".pack"), s.key)
	if err != nil {
		return err
	}
	defer f.Close()
	return copySegments(f, sl, p, w)
}

// hashing passes bytes on and names them.
type hashing struct {
	w   io.Writer
	h   sumWriter
	n   int64
	err error // of w
}

func (h *hashing) Write(b []byte) (int, error) {
	if h.h == nil {
		h.h = sha256.New()
	}
	h.h.Write(b)
	n, err := h.w.Write(b)
	h.n += int64(n)
	if err != nil {
		h.err = err
	}
	return n, err
}

func (h *hashing) sum() (d kernel.Digest) {
	if h.h == nil {
		return kernel.Sum(nil)
	}
	h.h.Sum(d[:0])
	return d
}

type sumWriter interface {
	io.Writer
	Sum([]byte) []byte
}

// Stat implements kernel.Packs.
func (s *Store) Stat(ctx context.Context, d kernel.Digest) (info kernel.PackInfo, err error) {
	err = s.db.View(func(txn *badger.Txn) error {
		it, small, err := find(txn, d)
		if err != nil {
			return err
		}
		info, err = describe(d, it, small)
		return err
	})
	return info, err
}

func describe(d kernel.Digest, it *badger.Item, small bool) (kernel.PackInfo, error) {
	info := kernel.PackInfo{Hash: d, Stored: it.ValueSize()}
	err := it.Value(func(v []byte) (err error) {
		if small {
			info.Kind, info.Bytes, _, err = decodeSmall(v)
			return err
		}
		_, p, err := decodeIndex(v)
		info.Kind, info.Bytes, info.Stored = p.Kind, p.Bytes, p.Stored
		return err
	})
	if err != nil {
		return info, kernel.E("packs.Stat", kernel.Corrupt, err, "the entry of pack %s is damaged", d).WithNext("run witan check")
	}
	return info, nil
}

// List implements kernel.Packs.
func (s *Store) List(ctx context.Context) iter.Seq2[kernel.PackInfo, error] {
	return func(yield func(kernel.PackInfo, error) bool) {
		db.Guarded(yield, func(yield func(kernel.PackInfo, error) bool) {
			txn := s.db.NewTransaction(false)
			defer txn.Discard()
			for _, prefix := range []string{prefixIndex, prefixSmall} {
				if !list(ctx, txn, prefix, yield) {
					return
				}
			}
		})
	}
}

func list(ctx context.Context, txn *badger.Txn, prefix string, yield func(kernel.PackInfo, error) bool) bool {
	o := badger.DefaultIteratorOptions
	o.Prefix = []byte(prefix)
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			yield(kernel.PackInfo{}, err)
			return false
		}
		var d kernel.Digest
		copy(d[:], it.Item().Key()[len(prefix):])
		if prefix == prefixSmall {
			if _, err := txn.Get(key(prefixIndex, d)); err == nil {
				continue // it is in both, and was listed
			}
		}
		info, err := describe(d, it.Item(), prefix == prefixSmall)
		if !yield(info, err) || err != nil {
			return false
		}
	}
	return true
}
