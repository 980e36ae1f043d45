package packs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/stores/db"
)

// CheckFiles verifies every byte of every pack file and cache below dir, without the
// database. It returns what is damaged and how many things it looked at.
func CheckFiles(dir string, key []byte) ([]db.Damage, int, error) {
	names, err := os.ReadDir(filepath.Join(dir, "packs"))
	if err != nil && !os.IsNotExist(err) {
		return nil, 0, err
	}
	var bad []db.Damage
	checked := 0
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".pack") {
			continue
		}
		k, b := checkFile(filepath.Join(dir, "packs", n.Name()), "packs/"+n.Name(), key)
		checked, bad = checked+k, append(bad, b...)
	}
	stats, err := filepath.Glob(filepath.Join(dir, "stat", "*.stat"))
	if err != nil {
		return nil, 0, err
	}
	for _, p := range stats {
		checked++
		if !checkStat(p, key) {
			bad = append(bad, db.Damage{Kind: "index", ID: filepath.Base(p), File: "stat/" + filepath.Base(p), Reason: "the cache does not match its checksum; it is rebuilt by the next freeze"})
		}
	}
	return bad, checked, nil
}

func checkStat(path string, key []byte) bool {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < headerBytes || string(b[:len(magic)]) != magic {
		return false
	}
	s, err := newSealer(key, b[len(magic):headerBytes])
	if err != nil {
		return false
	}
	_, err = s.open(bytes.Clone(b[headerBytes:]), 0)
	return err == nil
}

// checkFile reads a pack file as its footer describes it: the segments must
// follow each other without a gap and every pack must match its hash.
func checkFile(path, file string, key []byte) (int, []db.Damage) {
	fail := func(id string, why error) []db.Damage {
		return []db.Damage{{Kind: "blob", ID: id, File: file, Reason: why.Error()}}
	}
	f, s, err := openFile(path, key)
	if err != nil {
		return 1, fail(file, err)
	}
	defer f.Close()
	entries, err := readFooter(f, s)
	if err != nil {
		return 1, fail(file, err)
	}
	bad := checkSegments(f, s, file)
	for _, e := range entries {
		h := sha256.New()
		for i := 0; i+1 < len(e.Segs); i += 2 {
			b, err := readSegment(f, s, e.Segs[i], e.Segs[i+1])
			if err != nil {
				bad = append(bad, fail(e.Hash.String(), err)...)
				break
			}
			h.Write(b)
		}
		var d kernel.Digest
		if h.Sum(d[:0]); d != e.Hash && (len(bad) == 0 || bad[len(bad)-1].ID != e.Hash.String()) {
			bad = append(bad, fail(e.Hash.String(), errSegment)...)
		}
	}
	return len(entries), bad
}

// checkSegments opens every segment in turn, also those that no entry names.
func checkSegments(f *os.File, s *sealer, file string) []db.Damage {
	var l [4]byte
	at := int64(headerBytes)
	fi, err := f.Stat()
	if err != nil {
		return []db.Damage{{Kind: "blob", ID: file, File: file, Reason: err.Error()}}
	}
	for n := int64(0); at < fi.Size()-int64(trailerBytes); n++ {
		if _, err := f.ReadAt(l[:], at); err != nil {
			return []db.Damage{{Kind: "blob", ID: file, File: file, Reason: err.Error()}}
		}
		b := make([]byte, binary.BigEndian.Uint32(l[:]))
		if _, err := f.ReadAt(b, at+4); err != nil {
			return []db.Damage{{Kind: "blob", ID: file, File: file, Reason: err.Error()}}
		}
		if _, err := s.open(b, n); err != nil {
			return []db.Damage{{Kind: "blob", ID: file, File: file, Reason: err.Error()}}
		}
		at += 4 + int64(len(b))
	}
	return nil
}

// Check verifies the small packs and that each index entry finds its pack.
func (s *Store) Check(ctx context.Context) (bad []db.Damage, checked int, err error) {
	err = s.db.View(func(txn *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.Prefix = []byte(prefixSmall)
		it := txn.NewIterator(o)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			var d kernel.Digest
			copy(d[:], it.Item().Key()[len(prefixSmall):])
			checked++
			if _, err := s.Get(ctx, d); err != nil {
				bad = append(bad, db.Damage{Kind: "pack", ID: d.String(), Reason: err.Error()})
			}
		}
		return nil
	})
	return bad, checked, err
}
