package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"witan/kernel"
	"witan/stores/db"
)

// The witness is a file of fixed-size entries, appended without a sync at each
// append and synced at stage boundaries. It is what notices that the database
// lost the end of its log. An entry is run (zero-padded), seq, hash, CRC-32C.
const (
	runBytes   = 48
	entryBytes = runBytes + 8 + 32 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type witness struct {
	mu      sync.Mutex
	f       *os.File // guarded by mu; nil for reading only
	dir     string
	path    string
	size    int64                        // of complete entries; guarded by mu
	cut     bool                         // when it was read, an incomplete entry followed
	gone    bool                         // when it was read, there was no file
	dirty   bool                         // guarded by mu
	heads   map[kernel.RunID]kernel.Head // guarded by mu
	damaged []string
}

func readWitness(dir string) (*witness, error) {
	w := &witness{dir: dir, path: filepath.Join(dir, "witness"), heads: map[kernel.RunID]kernel.Head{}}
	b, err := os.ReadFile(w.path)
	if w.gone = errors.Is(err, fs.ErrNotExist); err != nil && !w.gone {
		return nil, kernel.E("ledger.Open", kernel.ReadOnly, err, "the witness cannot be read").WithNext("check the permissions of %s", dir)
	}
	// An incomplete or empty entry at the end is an append that a crash cut off.
	size, written := int64(len(b)), int64(len(bytes.TrimRight(b, "\x00")))
	for ; w.size+entryBytes <= size && w.size < written; w.size += entryBytes {
		run, head, ok := decodeEntry(b[w.size:][:entryBytes])
		if !ok {
			w.damaged = append(w.damaged, fmt.Sprintf("the entry at byte %d does not match its checksum", w.size))
			continue
		}
		if head.Seq >= w.heads[run].Seq {
			w.heads[run] = head
		}
	}
	w.cut = size > w.size
	return w, nil
}

func encodeEntry(run kernel.RunID, h kernel.Head) []byte {
	e := make([]byte, runBytes, entryBytes)
	copy(e, run)
	e = append(e, encodeHead(h)...)
	return binary.BigEndian.AppendUint32(e, crc32.Checksum(e, castagnoli))
}

func decodeEntry(e []byte) (kernel.RunID, kernel.Head, bool) {
	if crc32.Checksum(e[:entryBytes-4], castagnoli) != binary.BigEndian.Uint32(e[entryBytes-4:]) {
		return "", kernel.Head{}, false
	}
	n := 0
	for n < runBytes && e[n] != 0 {
		n++
	}
	h, ok := decodeHead(e[runBytes : entryBytes-4])
	return kernel.RunID(e[:n]), h, ok
}

// openWitness reads the witness and makes it ready for appending; a file with
// mostly outdated entries is rewritten.
func openWitness(dir string) (*witness, error) {
	w, err := readWitness(dir)
	if err != nil {
		return nil, err
	}
	if len(w.damaged) == 0 && w.size/entryBytes > 1000+2*int64(len(w.heads)) {
		if err := w.rewrite(); err != nil {
			return nil, db.DiskError("ledger.Open", dir, err)
		}
	}
	if w.f, err = os.OpenFile(w.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, db.DiskError("ledger.Open", dir, err)
	}
	if w.cut { // so that later entries stay aligned
		if err := w.f.Truncate(w.size); err != nil {
			return nil, errors.Join(db.DiskError("ledger.Open", dir, err), w.f.Close())
		}
	}
	return w, nil
}

func (w *witness) rewrite() error {
	b := make([]byte, 0, len(w.heads)*entryBytes)
	for run, h := range w.heads {
		b = append(b, encodeEntry(run, h)...)
	}
	w.size, w.cut = int64(len(b)), false
	return db.WriteFile(w.path, b)
}

// note appends a head. The record is durable already, so an error is none of
// the append's: the witness is behind, and what was cut off is removed.
func (w *witness) note(run kernel.RunID, h kernel.Head) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.Seq > w.heads[run].Seq { // appends of one run may get here in any order
		w.heads[run] = h
	}
	w.dirty = true
	if _, err := w.f.Write(encodeEntry(run, h)); err != nil {
		_ = w.f.Truncate(w.size)
		return
	}
	w.size += entryBytes
}

func (w *witness) sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dirty {
		return nil
	}
	if err := datasync(w.f); err != nil {
		return db.DiskError("ledger.Witness", w.dir, err)
	}
	w.dirty = false
	return nil
}

func (w *witness) head(run kernel.RunID) (kernel.Head, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h, ok := w.heads[run]
	return h, ok
}

// runs are those that the witness knows.
func (w *witness) runs() []kernel.RunID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.heads))
}

func (w *witness) close() error {
	if w.f == nil {
		return nil
	}
	return errors.Join(w.sync(), w.f.Close())
}
