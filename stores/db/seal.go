package db

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"witan/kernel"
)

// Damage is one thing that does not hold. File is relative to the data
// directory; Run and Conversation are empty where they are not known.
type Damage struct {
	Kind         string
	ID           string
	Conversation kernel.ConversationID
	Run          kernel.RunID
	File         string
	Reason       string
	Quarantined  string // relative path of the copy, "" if none
}

const sealFile = "SEAL"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal lists the files of a cleanly closed database with their checksums.
type seal struct {
	Files []sealed `json:"files"`
	Sum   uint32   `json:"sum"` // CRC-32C of the list
}

type sealed struct {
	Name  string `json:"name"`
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime"`
	Sum   uint32 `json:"sum"`
	Tail  uint32 `json:"tail,omitempty"` // of a table's last tailBytes
}

func (s seal) sum() uint32 {
	b, _ := json.Marshal(s.Files)
	return crc32.Checksum(b, castagnoli)
}

func readSeal(dir, name string) (seal, error) {
	var s seal
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil || s.Sum != s.sum() {
		return s, fmt.Errorf("%s is damaged", name)
	}
	if want, _ := json.Marshal(s); !bytes.Equal(want, bytes.TrimSuffix(b, []byte("\n"))) {
		return s, fmt.Errorf("%s is damaged", name)
	}
	return s, nil
}

// writeSeal checksums the database's files. Tables never change, so what the
// list of the last open says of one is taken over.
func writeSeal(dir string) error {
	known := knownTables(dir)
	var s seal
	entries, err := os.ReadDir(filepath.Join(dir, "db"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if fi.IsDir() || e.Name() == "LOCK" {
			continue
		}
		path := filepath.Join(dir, "db", e.Name())
		if fi.Mode().Perm() != 0o600 {
			if err := os.Chmod(path, 0o600); err != nil {
				return err
			}
		}
		f := sealed{Name: e.Name(), Size: fi.Size(), Mtime: fi.ModTime().UnixNano()}
		if isTable(f.Name) {
			f, err = table(path, fi, known)
		} else {
			f.Sum, err = checksum(path)
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
	return WriteFile(filepath.Join(dir, sealFile), append(b, '\n'))
}

func checksum(path string) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	_, err = io.Copy(h, f)
	return h.Sum32(), err
}

// CheckFiles compares the files of a database with its seal, or, where it was
// not closed, checks each by what it says of itself (see checkUnsealed). It opens nothing for
// writing. It returns what is damaged and how many files were looked at.
func CheckFiles(dir string) ([]Damage, int, error) {
	s, err := readSeal(dir, sealFile)
	if err != nil && !os.IsNotExist(err) {
		return []Damage{{Kind: "database", ID: sealFile, File: sealFile, Reason: "the seal is damaged"}}, 1, nil
	}
	if err != nil {
		return checkUnsealed(dir)
	}
	var out []Damage
	seen := map[string]bool{}
	for _, f := range s.Files {
		seen[f.Name] = true
		file := "db/" + f.Name
		sum, err := checksum(filepath.Join(dir, "db", f.Name))
		switch {
		case os.IsNotExist(err):
			out = append(out, Damage{Kind: "database", ID: f.Name, File: file, Reason: "file is gone"})
		case err != nil:
			return nil, 0, err
		case sum != f.Sum:
			out = append(out, Damage{Kind: "database", ID: f.Name, File: file, Reason: "bytes do not match the seal"})
		}
	}
	return out, len(s.Files), nil
}

// setAsideDamagedLogs copies logs that Badger would cut to quarantine/.
func setAsideDamagedLogs(dir string) ([]Damage, error) {
	if _, err := os.Stat(filepath.Join(dir, sealFile)); err == nil {
		return nil, nil
	}
	found, _, err := checkUnsealed(dir)
	if err != nil {
		return nil, DiskError("db.Open", dir, err)
	}
	found = slices.DeleteFunc(found, func(d Damage) bool { return !strings.HasSuffix(d.ID, ".mem") })
	for i, d := range found {
		b, err := os.ReadFile(filepath.Join(dir, d.File))
		if err != nil {
			return nil, DiskError("db.Open", dir, err)
		}
		name := fmt.Sprintf("%s.%08x", d.ID, crc32.Checksum(b, castagnoli))
		if err := WriteFile(filepath.Join(dir, "quarantine", name), b); err != nil {
			return nil, DiskError("db.Open", dir, err)
		}
		found[i].Quarantined = "quarantine/" + name
	}
	return found, nil
}
