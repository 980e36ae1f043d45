package ledger

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
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
	path    string
	size    int64                        // guarded by mu
	dirty   bool                         // guarded by mu
	heads   map[kernel.RunID]kernel.Head // guarded by mu
	damaged []string
}

func readWitness(dir string) (*witness, error) {
	w := &witness{path: filepath.Join(dir, "witness"), heads: map[kernel.RunID]kernel.Head{}}
	b, err := os.ReadFile(w.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, kernel.E("ledger.Open", kernel.ReadOnly, err, "the witness cannot be read").WithNext("check the permissions of %s", dir)
	}
	w.size = int64(len(b))
	for len(b) > 0 {
		if len(b) < entryBytes {
			break // an append that a crash cut off
		}
		e := b[:entryBytes]
		b = b[entryBytes:]
		run, head, ok := decodeEntry(e)
		if !ok {
			w.damaged = append(w.damaged, "an entry does not match its checksum")
			continue
		}
		if head.Seq >= w.heads[run].Seq {
			w.heads[run] = head
		}
	}
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
	cut := w.size % entryBytes
	if len(w.damaged) == 0 && (cut > 0 || w.size/entryBytes > 1000+2*int64(len(w.heads))) {
		if err := w.rewrite(); err != nil {
			return nil, err
		}
	}
	if w.f, err = os.OpenFile(w.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, kernel.E("ledger.Open", kernel.ReadOnly, err, "the witness cannot be written").WithNext("check the permissions of %s", dir)
	}
	return w, nil
}

func (w *witness) rewrite() error {
	b := make([]byte, 0, len(w.heads)*entryBytes)
	for run, h := range w.heads {
		b = append(b, encodeEntry(run, h)...)
	}
	w.size = int64(len(b))
	return db.WriteFile(w.path, b)
}

func (w *witness) note(run kernel.RunID, h kernel.Head) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heads[run] = h
	w.dirty = true
	n, err := w.f.Write(encodeEntry(run, h))
	w.size += int64(n)
	if err != nil {
		// The record is durable; the witness is only behind. A cut entry is
		// removed so that later ones stay aligned.
		_ = w.f.Truncate(w.size - int64(n))
		w.size -= int64(n)
	}
	return nil
}

func (w *witness) sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dirty {
		return nil
	}
	if err := w.f.Sync(); err != nil {
		return kernel.E("ledger.Witness", kernel.Internal, err, "the witness cannot be synced")
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

func (w *witness) all() iter.Seq2[kernel.RunID, kernel.Head] { return maps.All(w.heads) }

func (w *witness) close() error {
	if w.f == nil {
		return nil
	}
	return errors.Join(w.sync(), w.f.Close())
}
