package db

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
)

// Badger reads the end of each table when it opens, its last block before it
// compares a checksum, and ends the process when that does not make sense. So
// the ends are compared with the lists of the last seal or open first.

// tailBytes holds a table's index and last block.
const tailBytes = 64 << 10

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// knownTables is what SEAL says of tables, or OPEN after a crash and while open.
func knownTables(dir string) map[string]sealed {
	list, err := readSeal(dir, sealFile)
	if err != nil {
		list, _ = readSeal(dir, openFile) // without both, tables speak for themselves
	}
	known := map[string]sealed{}
	for _, f := range list.Files {
		if isTable(f.Name) {
			known[f.Name] = f
		}
	}
	return known
}

// table describes a table. Tables never change, so what is known is taken over.
func table(path string, fi fs.FileInfo, known map[string]sealed) (sealed, error) {
	f := sealed{Name: fi.Name(), Size: fi.Size(), Mtime: fi.ModTime().UnixNano()}
	if k, ok := known[f.Name]; ok && k.Size == f.Size && k.Mtime == f.Mtime {
		return k, nil
	}
	var err error
	if f.Sum, err = checksum(path); err != nil {
		return f, err
	}
	b, err := tableTail(path)
	f.Tail = crc32.Checksum(b, castagnoli)
	return f, err
}

func tableTail(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(fi.Size()-tailBytes, 0)
	return io.ReadAll(io.NewSectionReader(f, from, fi.Size()-from))
}

// checkTails compares the ends of all tables before Badger reads them.
func checkTails(dir string, known map[string]sealed) error {
	paths, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil {
		return err
	}
	live := readTables(dir)
	for _, path := range paths {
		if live.unfinished(filepath.Base(path)) {
			continue
		}
		b, err := tableTail(path)
		if err != nil {
			return DiskError("db.Open", dir, err)
		}
		f, ok := known[filepath.Base(path)]
		if ok && f.Tail != crc32.Checksum(b, castagnoli) || !ok && !indexHolds(path, b) {
			return kernel.E("db.Open", kernel.Corrupt, nil, "the table %s is damaged", path).
				WithNext("run witan check; restore from a backup; nothing was changed")
		}
	}
	return nil
}

// tables are those that the manifest names; nil where it cannot be read, which
// is said elsewhere.
type tables map[uint64]bool

func readTables(dir string) tables {
	f, err := os.Open(filepath.Join(dir, "db", badger.ManifestFilename))
	if err != nil {
		return nil
	}
	defer f.Close()
	m, _, err := badger.ReplayManifestFile(f, 0, badger.DefaultOptions(""))
	if err != nil {
		return nil
	}
	live := tables{}
	for id := range m.Tables {
		live[id] = true
	}
	return live
}

// unfinished tells a table that a kill left half-written from one that counts.
// Badger removes it at the next open; its content is still in a log.
func (live tables) unfinished(name string) bool {
	id, err := strconv.ParseUint(strings.TrimSuffix(name, ".sst"), 10, 64)
	return err == nil && live != nil && !live[id]
}

// indexHolds checks the end of a table that no list names: index, its length,
// its checksum as a protocol buffer, the length of that. (Read from badger v4.9.6.)
func indexHolds(path string, tail []byte) bool {
	n := len(tail)
	if n < 8 {
		return false
	}
	sumBytes := int(binary.BigEndian.Uint32(tail[n-4:]))
	if sumBytes < 0 || sumBytes > 16 || n < 8+sumBytes {
		return false
	}
	sum := tail[n-4-sumBytes : n-4]
	at := n - 8 - sumBytes
	size := int64(binary.BigEndian.Uint32(tail[at:]))
	index := tail[:at]
	if size > int64(len(index)) { // a large one: read it from the file
		b, err := os.ReadFile(path)
		if err != nil || size > int64(len(b)-len(tail)+at) {
			return false
		}
		index = b[:len(b)-len(tail)+at]
	}
	crc := crc32.Checksum(index[int64(len(index))-size:], castagnoli)
	return bytes.Equal(sum, binary.AppendUvarint([]byte{2 << 3}, uint64(crc)))
}
