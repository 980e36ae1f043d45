package db

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Damage is one thing that does not hold. File is relative to the data directory.
type Damage struct {
	Kind        string
	ID          string
	File        string
	Reason      string
	Quarantined string // relative path of the copy, "" if none
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
}

func (s seal) sum() uint32 {
	b, _ := json.Marshal(s.Files)
	return crc32.Checksum(b, castagnoli)
}

func readSeal(dir string) (seal, error) {
	var s seal
	b, err := os.ReadFile(filepath.Join(dir, sealFile))
	if err != nil {
		return s, err
	}
	want, _ := json.Marshal(s)
	if err := json.Unmarshal(b, &s); err != nil || s.Sum != s.sum() {
		return s, fmt.Errorf("SEAL is damaged")
	}
	if want, _ = json.Marshal(s); !bytes.Equal(want, bytes.TrimSuffix(b, []byte("\n"))) {
		return s, fmt.Errorf("SEAL is damaged")
	}
	return s, nil
}

// writeSeal checksums the database's files. Tables never change, so what the
// kept list of the last seal says of one is taken over.
func writeSeal(dir string) error {
	known := map[string]sealed{}
	if old, err := readSealCache(dir); err == nil {
		for _, f := range old.Files {
			known[f.Name] = f
		}
	}
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
		if k, ok := known[f.Name]; ok && strings.HasSuffix(f.Name, ".sst") && k.Size == f.Size && k.Mtime == f.Mtime {
			f.Sum = k.Sum
		} else if f.Sum, err = checksum(path); err != nil {
			return err
		}
		s.Files = append(s.Files, f)
	}
	s.Sum = s.sum()
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(dir, sealFile), append(b, '\n')); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "stat", "seal.cache"), b, 0o600)
}

// readSealCache reads the list of the last seal; it is removed by nobody, so it
// survives the open that removes SEAL. It saves time only.
func readSealCache(dir string) (seal, error) {
	var s seal
	b, err := os.ReadFile(filepath.Join(dir, "stat", "seal.cache"))
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err == nil && s.Sum != s.sum() {
		err = fmt.Errorf("damaged")
	}
	return s, err
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
// not closed, checks the write-ahead logs entry by entry. It opens nothing for
// writing. It returns what is damaged and how many files were looked at.
func CheckFiles(dir string) ([]Damage, int, error) {
	s, err := readSeal(dir)
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

// checkUnsealed checks the logs of a database that was not closed.
func checkUnsealed(dir string) ([]Damage, int, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "db", "*.mem"))
	if err != nil {
		return nil, 0, err
	}
	slices.Sort(logs)
	var out []Damage
	for _, path := range logs {
		why, err := checkLog(path)
		if err != nil {
			return nil, 0, err
		}
		if why != "" {
			out = append(out, Damage{Kind: "database", ID: filepath.Base(path), File: "db/" + filepath.Base(path), Reason: why})
		}
	}
	return out, len(logs), nil
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

// Badger's log file: a 20-byte header (key id, base IV), then entries of
// meta, user meta, key and value length and expiry as varints, key, value and
// the CRC-32C of all that; zeros behind the last one. (Read from badger v4.9.6.)
const logHeader = 20

// checkLog walks a log. A log is damaged when an entry does not match its
// checksum and something other than zeros follows where the log should end.
func checkLog(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 256<<10)
	if _, err := r.Discard(logHeader); err != nil {
		return "", nil // shorter than its header: nothing was ever written
	}
	at := int64(logHeader)
	for {
		n, ok, err := logEntry(r)
		if err != nil {
			return "", err
		}
		if !ok {
			break
		}
		at += n
	}
	return tail(f, at)
}

// logEntry reads one entry; ok is false at the end of the valid ones.
func logEntry(r *bufio.Reader) (n int64, ok bool, err error) {
	h := crc32.New(castagnoli)
	cr := &countReader{r: io.TeeReader(r, h), one: r, h: h}
	var meta [2]byte
	if _, err := io.ReadFull(cr, meta[:]); err != nil {
		return 0, false, ignoreEOF(err)
	}
	var l [3]uint64
	for i := range l {
		if l[i], err = binary.ReadUvarint(cr); err != nil {
			return 0, false, ignoreEOF(err)
		}
	}
	if l[0] == 0 || l[0] > 1<<16 || l[1] > 1<<30 {
		return 0, false, nil
	}
	if _, err := io.CopyN(io.Discard, cr, int64(l[0]+l[1])); err != nil {
		return 0, false, ignoreEOF(err)
	}
	var sum [4]byte
	if _, err := io.ReadFull(r, sum[:]); err != nil {
		return 0, false, ignoreEOF(err)
	}
	return cr.n + 4, binary.BigEndian.Uint32(sum[:]) == h.Sum32(), nil
}

func ignoreEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF || strings.Contains(err.Error(), "overflow") {
		return nil
	}
	return err
}

type countReader struct {
	r   io.Reader
	one *bufio.Reader
	h   io.Writer
	n   int64
}

func (c *countReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *countReader) ReadByte() (byte, error) {
	b, err := c.one.ReadByte()
	if err == nil {
		c.n++
		_, err = c.h.Write([]byte{b})
	}
	return b, err
}

// tail looks at what is behind the last valid entry.
func tail(f *os.File, at int64) (string, error) {
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return "", err
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return fmt.Sprintf("the log breaks off at byte %d and goes on behind it", at), nil
			}
		}
		if err == io.EOF {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
}
