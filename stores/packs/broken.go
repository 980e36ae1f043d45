package packs

import (
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/stores/db"
)

// setAside keeps the stored bytes of a damaged pack in quarantine/ and takes it
// out of the index, so that the same content can be stored again. Failing to do
// so changes nothing: the pack stays damaged where it is.
func (s *Store) setAside(d kernel.Digest, file string, p place) {
	if s.view {
		return
	}
	s.breaking.Lock()
	defer s.breaking.Unlock()
	if err := s.setAsideLocked(d, file, p); err != nil {
		s.log.Error("damaged pack not set aside", "pack", d, "err", err)
		return
	}
	s.forgetStats()
	s.log.Error("damaged pack set aside", "pack", d)
}

func (s *Store) setAsideLocked(d kernel.Digest, file string, p place) error {
	name := filepath.Join(s.db.Dir, "quarantine", "pack-"+hex.EncodeToString(d[:8]))
	var err error
	if file != "" {
		err = s.keepSegments(name, file, p)
	} else {
		err = s.keepEntry(name, d)
	}
	if err != nil {
		return err
	}
	return s.update(func(txn *badger.Txn) error {
		for _, prefix := range []string{prefixSmall, prefixIndex} {
			if err := txn.Delete(key(prefix, d)); err != nil {
				return err
			}
		}
		return txn.Set(key(prefixBroken, d), nil)
	})
}

// keepEntry copies what the database holds of the pack.
func (s *Store) keepEntry(name string, d kernel.Digest) error {
	var v []byte
	err := s.db.View(func(txn *badger.Txn) error {
		it, _, err := find(txn, d)
		if err != nil {
			return err
		}
		v, err = it.ValueCopy(nil)
		return err
	})
	if err != nil {
		return err
	}
	return db.WriteFile(name, v)
}

// keepSegments copies what the file holds of the pack: of a lost file, nothing.
func (s *Store) keepSegments(name, file string, p place) error {
	const most = 64 << 20 // the rest stays in the file
	f, err := os.Open(filepath.Join(s.dir, file+".pack"))
	if errors.Is(err, os.ErrNotExist) {
		return db.WriteFile(name, nil)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, p.Off, min(p.Stored, most)))
	if err != nil {
		return err
	}
	return db.WriteFile(name, b)
}
