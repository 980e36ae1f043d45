package packs

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/stores/db"
)

// CheckFiles verifies every byte of every pack file and cache below dir, without
// the database. It returns what is damaged and how many things it looked at; an
// error means that something could not be read.
func CheckFiles(dir string, key []byte) (bad []db.Damage, checked int, err error) {
	for _, part := range []struct {
		folder, suffix string
		check          func(path, file string, key []byte) (int, []db.Damage, error)
	}{{"packs", ".pack", checkFile}, {"stat", ".stat", checkStat}} {
		names, err := os.ReadDir(filepath.Join(dir, part.folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
		for _, n := range names {
			if !strings.HasSuffix(n.Name(), part.suffix) {
				continue
			}
			k, b, err := part.check(filepath.Join(dir, part.folder, n.Name()), part.folder+"/"+n.Name(), key)
			if err != nil {
				return nil, 0, err
			}
			checked, bad = checked+k, append(bad, b...)
		}
	}
	return bad, checked, nil
}

func checkStat(path, file string, key []byte) (int, []db.Damage, error) {
	_, err := readStat(path, key)
	if err == nil {
		return 1, nil, nil
	}
	if !damaged(err) {
		return 0, nil, err
	}
	return 1, []db.Damage{{Kind: "index", ID: filepath.Base(path), File: file, Reason: "the cache does not match its checksum; the next freeze makes it anew"}}, nil
}

// damaged tells bytes that do not hold from bytes that could not be read.
func damaged(err error) bool {
	return errors.Is(err, errSegment) || errors.Is(err, errFile) || isZstd(err)
}

// checkFile reads a pack file as its footer describes it: every byte belongs to
// the header, a segment, the footer or the trailer, and every pack matches its name.
func checkFile(path, file string, key []byte) (int, []db.Damage, error) {
	c := &checker{file: file}
	f, s, err := openFile(path, key)
	if err == nil {
		defer f.Close()
		err = c.all(f, s)
	}
	if damaged(err) {
		return 1, []db.Damage{{Kind: "blob", ID: filepath.Base(path), File: file, Reason: err.Error()}}, nil
	}
	return c.n, c.bad, err
}

type checker struct {
	file string
	n    int
	bad  []db.Damage
}

func (c *checker) note(kind, id, reason string) {
	c.bad = append(c.bad, db.Damage{Kind: kind, ID: id, File: c.file, Reason: reason})
}

// all returns an error that is damage of the file as a whole, or no damage.
func (c *checker) all(f *os.File, s sealer) error {
	ft, err := readFooter(f, s)
	if err != nil {
		return err
	}
	entries := slices.Clone(ft.entries)
	slices.SortFunc(entries, func(a, b entry) int { return int(a.Off - b.Off) })
	at := int64(headerBytes)
	for _, e := range entries {
		c.n++
		if e.Off != at { // no byte may lie between packs
			return errFile
		}
		at += e.Stored
		h := sha256.New()
		err := copySegments(f, s, e.place, h)
		switch {
		case damaged(err):
			c.note("pack", e.Hash.String(), err.Error())
		case err != nil:
			return err
		case kernel.Digest(h.Sum(nil)) != e.Hash:
			c.note("pack", e.Hash.String(), "the content does not match its hash")
		}
	}
	if at != ft.off {
		return errFile
	}
	return nil
}

// Check verifies the small packs, and that the file of each other one is there
// and has the place that the index names.
func (s *Store) Check(ctx context.Context) (bad []db.Damage, checked int, err error) {
	files := map[string]map[kernel.Digest]place{} // by file; one at a time would read footers again and again
	for info, err := range s.List(ctx) {
		checked++
		switch {
		case kernel.IsKind(err, kernel.Corrupt):
			bad = append(bad, db.Damage{Kind: "index", ID: info.Hash.String(), Reason: err.Error()})
			continue
		case err != nil:
			return bad, checked, err
		}
		d, err := s.checkPack(info.Hash, files)
		if err != nil {
			return bad, checked, err
		}
		bad = append(bad, d...)
	}
	return bad, checked, nil
}

func (s *Store) checkPack(d kernel.Digest, files map[string]map[kernel.Digest]place) (bad []db.Damage, err error) {
	err = s.db.View(func(txn *badger.Txn) error {
		it, small, err := find(txn, d)
		if err != nil {
			return err
		}
		return it.Value(func(v []byte) error {
			if small {
				_, _, body, err := decodeSmall(v)
				if err == nil {
					body, err = decompress(nil, body)
				}
				if err != nil || kernel.Sum(body) != d {
					bad = []db.Damage{{Kind: "pack", ID: d.String(), Reason: "the content does not match its hash"}}
				}
				return nil
			}
			file, p, err := decodeIndex(v)
			if err != nil {
				return err
			}
			held, seen := files[file]
			if !seen {
				if held, bad = s.places(file); bad != nil {
					held = nil
				}
				files[file] = held
			}
			if got, ok := held[d]; held != nil && (!ok || got != p) {
				bad = []db.Damage{{Kind: "index", ID: d.String(), File: "packs/" + file + ".pack", Reason: "the file does not hold the pack where the index says"}}
			}
			return nil
		})
	})
	return bad, err
}

// places lists what a file holds, or says once that it does not hold or is gone.
func (s *Store) places(file string) (map[kernel.Digest]place, []db.Damage) {
	var ft footer
	f, sl, err := openFile(filepath.Join(s.dir, file+".pack"), s.key)
	if err == nil {
		defer f.Close()
		ft, err = readFooter(f, sl)
	}
	if err != nil {
		return nil, []db.Damage{{Kind: "blob", ID: file + ".pack", File: "packs/" + file + ".pack", Reason: err.Error()}}
	}
	out := map[kernel.Digest]place{}
	for _, e := range ft.entries {
		out[e.Hash] = e.place
	}
	return out, nil
}
