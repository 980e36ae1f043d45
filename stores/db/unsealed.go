package db

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// openFile lists, while a database is open, its tables, and the beginnings of
// files that hold bytes without a checksum of their own: keys and initial
// vectors. It is written once Badger is open and removed when the seal takes over.
const openFile = "OPEN"

func (d *DB) writeOpenList(known map[string]sealed) error {
	dir := d.Dir
	live := tables{} // the others are being written: replayed logs become tables
	for _, t := range d.Tables() {
		live[t.ID] = true
	}
	var s seal
	entries, err := os.ReadDir(filepath.Join(dir, "db"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, "db", e.Name())
		f := sealed{Name: e.Name()}
		switch {
		case isTable(f.Name) && live.unfinished(f.Name):
			continue
		case isTable(f.Name):
			fi, err := e.Info()
			if err == nil {
				f, err = table(path, fi, known)
			}
			if err != nil {
				return err
			}
			s.Files = append(s.Files, f)
			continue
		case isLog(f.Name):
			f.Size = logHeader
		case f.Name == "KEYREGISTRY": // grows, and keeps its beginning
			fi, err := e.Info()
			if err != nil {
				return err
			}
			f.Size = fi.Size()
		default:
			continue
		}
		f.Sum, err = checksumStart(path, f.Size)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a replayed log that has just become a table
		}
		if err != nil {
			return err
		}
		s.Files = append(s.Files, f)
	}
	s.Sum = s.sum()
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, openFile), append(b, '\n'))
}

func isLog(name string) bool {
	return strings.HasSuffix(name, ".mem") || strings.HasSuffix(name, ".vlog")
}

// checksumStart is the checksum of the first size bytes; a shorter file has that of all.
func checksumStart(path string, size int64) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	_, err = io.Copy(h, io.LimitReader(f, size))
	return h.Sum32(), err
}

// checkUnsealed checks the files of a database that was not closed: logs entry
// by entry, the manifest change by change, what must be zero, and what the open
// list knows. Tables check themselves when the database is opened.
func checkUnsealed(dir string) ([]Damage, int, error) {
	starts, err := readSeal(dir, openFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // killed before it was written: there is none
		return []Damage{{Kind: "database", ID: openFile, File: openFile, Reason: "the list of open files is damaged"}}, 1, nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, "db"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	var out []Damage
	live := readTables(dir)
	for _, e := range entries {
		if isTable(e.Name()) && live.unfinished(e.Name()) {
			continue
		}
		why, err := checkOpenFile(filepath.Join(dir, "db", e.Name()), starts)
		if errors.Is(err, fs.ErrNotExist) {
			continue // of an open database, which has done with it
		}
		if err != nil {
			return nil, 0, err
		}
		if why != "" {
			out = append(out, Damage{Kind: "database", ID: e.Name(), File: "db/" + e.Name(), Reason: why})
		}
	}
	return out, len(entries), nil
}

func checkOpenFile(path string, starts seal) (why string, err error) {
	name := filepath.Base(path)
	for _, f := range starts.Files {
		if f.Name != name {
			continue
		}
		if sum, err := checksumStart(path, f.Size); err != nil || sum != f.Sum {
			return "it is not as it was when the database was opened", err
		}
		if isTable(name) {
			return "", nil
		}
	}
	switch {
	case isTable(name):
		b, err := tableTail(path)
		if err == nil && !indexHolds(path, b) {
			why = "the index does not match its checksum"
		}
		return why, err
	case isLog(name):
		return checkLog(path)
	case name == "MANIFEST":
		return checkManifest(path)
	case name == "DISCARD": // statistics of the value log, which stays empty
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		return tail(f, 0)
	}
	return "", nil
}

// checkManifest walks Badger's manifest: "Bdgr", two 16-bit versions, then
// changes of length, CRC-32C and bytes. Badger cuts off an incomplete last one.
func checkManifest(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if len(b) < 8 || !bytes.Equal(b[:8], []byte("Bdgr\x00\x00\x00\x08")) {
		return "the manifest does not begin as it must", nil
	}
	for at := 8; at < len(b); {
		rest := b[at:]
		if len(rest) < 8 || uint64(len(rest)-8) < uint64(binary.BigEndian.Uint32(rest)) {
			return fmt.Sprintf("the manifest breaks off at byte %d", at), nil
		}
		change := rest[8 : 8+binary.BigEndian.Uint32(rest)]
		if crc32.Checksum(change, castagnoli) != binary.BigEndian.Uint32(rest[4:]) {
			return fmt.Sprintf("a change at byte %d does not match its checksum", at), nil
		}
		at += 8 + len(change)
	}
	return "", nil
}
