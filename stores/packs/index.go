package packs

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/stores/db"
)

// Key prefixes: p/ a small pack itself, i/ where another one is, f/ a file whose
// packs are all indexed, q/ a pack that was found damaged and set aside.
const (
	prefixSmall  = "p/"
	prefixIndex  = "i/"
	prefixFile   = "f/"
	prefixBroken = "q/"
)

func key(prefix string, d kernel.Digest) []byte { return append([]byte(prefix), d[:]...) }

// An index entry is the id of the file and the place in it.
func encodeIndex(id string, p place) ([]byte, error) {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != idBytes {
		return nil, kernel.E("packs.index", kernel.Invalid, err, "%q is not the name of a pack file", id)
	}
	return appendPlace(raw, p), nil
}

func decodeIndex(b []byte) (file string, p place, err error) {
	if len(b) < idBytes {
		return "", p, errIndex
	}
	file = hex.EncodeToString(b[:idBytes])
	p, rest, ok := cutPlace(b[idBytes:])
	if !ok || len(rest) > 0 {
		return "", p, errIndex
	}
	return file, p, nil
}

var errIndex = errors.New("an index entry is damaged")

// index makes the packs of a file findable; the file's own entry comes last, so
// that an index cut by a crash is done again.
func (s *Store) index(id string, entries []entry) error {
	wb := s.db.NewWriteBatch()
	defer wb.Cancel()
	for _, e := range entries {
		b, err := encodeIndex(id, e.place)
		if err != nil {
			return err
		}
		if err := wb.Set(key(prefixIndex, e.Hash), b); err != nil {
			return err
		}
	}
	if err := wb.Flush(); err != nil {
		return err
	}
	s.at("packs.index")
	return s.update(func(txn *badger.Txn) error { return txn.Set([]byte(prefixFile+id), nil) })
}

func (s *Store) update(f func(*badger.Txn) error) (err error) {
	defer db.Damaged(&err)
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := f(txn); err != nil {
		return db.DiskError("packs", s.db.Dir, err)
	}
	return s.db.Commit(txn)
}

// tidy removes unfinished files and indexes finished ones that a crash left
// unindexed. A file that does not hold stays where it is: Check names it.
func (s *Store) tidy() error {
	for _, dir := range []string{s.dir, s.stat} {
		names, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return kernel.E("packs.Open", kernel.ReadOnly, err, "%s cannot be read", dir).WithNext("check its permissions")
		}
		for _, n := range names {
			if strings.HasSuffix(n.Name(), ".tmp") {
				_ = os.Remove(filepath.Join(dir, n.Name()))
				continue
			}
			id, ok := strings.CutSuffix(n.Name(), ".pack")
			if !ok || s.indexed(id) {
				continue
			}
			if err := s.adopt(id); err != nil {
				s.log.Error("pack file not indexed", "file", n.Name(), "err", err)
			}
		}
	}
	return nil
}

func (s *Store) indexed(id string) bool {
	return s.db.View(func(txn *badger.Txn) error { _, err := txn.Get([]byte(prefixFile + id)); return err }) == nil
}

// adopt indexes a file by its own footer.
func (s *Store) adopt(id string) error {
	f, sl, err := openFile(filepath.Join(s.dir, id+".pack"), s.key)
	if err != nil {
		return err
	}
	defer f.Close()
	ft, err := readFooter(f, sl)
	if err != nil {
		return err
	}
	return s.index(id, ft.entries)
}

// Reindex rebuilds the index from the pack files alone. Files that do not hold
// are left out; err names the last of them.
func (s *Store) Reindex(ctx context.Context) (packs int, err error) {
	for _, prefix := range []string{prefixIndex, prefixFile} {
		if err := s.db.DropPrefix([]byte(prefix)); err != nil {
			return 0, db.DiskError("packs.Reindex", s.db.Dir, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*.pack"))
	for _, path := range files {
		if ctx.Err() != nil {
			return packs, ctx.Err()
		}
		name := filepath.Base(path)
		if aerr := s.adopt(strings.TrimSuffix(name, ".pack")); aerr != nil {
			err = kernel.E("packs.Reindex", kernel.Corrupt, aerr, "pack file %s cannot be indexed", name).WithNext("run witan check")
		}
	}
	for _, e := range s.List(ctx) {
		if e != nil {
			return packs, e
		}
		packs++
	}
	return packs, err
}
