package packs

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"witan/kernel"
	"witan/stores/db"
)

// A stat file is: the header of a pack file and segments to its end, the last of
// them empty: a file that was cut is known.

func (s *Store) statPath(workspace string) string {
	d := kernel.SumDomain("stat/1", []byte(workspace))
	return filepath.Join(s.stat, hex.EncodeToString(d[:12])+".stat")
}

// LoadStat implements kernel.StatCache. A cache that does not hold is none.
func (s *Store) LoadStat(ctx context.Context, workspace string) ([]byte, error) {
	b, err := readStat(s.statPath(workspace), s.key)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errSegment), errors.Is(err, errFile), isZstd(err):
		return nil, kernel.E("packs.LoadStat", kernel.NotFound, err, "nothing is cached for the workspace")
	case err != nil:
		return nil, db.DiskError("packs.LoadStat", s.db.Dir, err)
	}
	return b, nil
}

func readStat(path string, key []byte) ([]byte, error) {
	f, sl, err := openFile(path, key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 0, segmentHeader+maxSealedBytes)
	out := make([]byte, 0, fi.Size())
	if b, _, err := sl.readSegment(f, buf); err != nil {
		return nil, err
	} else if head := make([]byte, headerBytes); !readHead(f, head) || string(b) != string(head) {
		return nil, errFile
	}
	for {
		b, _, err := sl.readSegment(f, buf)
		if err != nil {
			return nil, err
		}
		if len(b) == 0 {
			break
		}
		if out, err = decompress(out, b); err != nil {
			return nil, err
		}
	}
	if n, err := f.Read(buf[:1]); n > 0 || !errors.Is(err, io.EOF) {
		return nil, errFile // something behind the end
	}
	return out, nil
}

func readHead(f *os.File, head []byte) bool {
	_, err := f.ReadAt(head, 0)
	return err == nil && string(head[:len(magic)]) == magic
}

// SaveStat implements kernel.StatCache. It is not synced: losing it costs time only.
func (s *Store) SaveStat(ctx context.Context, workspace string, b []byte) error {
	if err := s.db.Guard(int64(len(b))); err != nil {
		return err
	}
	w, err := newFileWriter(s.stat, s.key)
	if err != nil {
		return db.DiskError("packs.SaveStat", s.db.Dir, err)
	}
	defer w.abort()
	if err = w.segment(w.header); err == nil { // covers the header
		e := encoders.Get().(*zstd.Encoder)
		defer encoders.Put(e)
		for part := range slices.Chunk(b, segmentBytes) {
			if err = w.segment(compress(e, nil, part)); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = w.segment(nil)
	}
	if err == nil {
		err = w.f.Close()
	}
	if err == nil {
		err = os.Rename(w.path+".tmp", s.statPath(workspace))
	}
	if err != nil {
		return db.DiskError("packs.SaveStat", s.db.Dir, err)
	}
	return nil
}

// forgetStats drops every cache: what they say is stored may not be any more.
func (s *Store) forgetStats() {
	files, _ := filepath.Glob(filepath.Join(s.stat, "*.stat"))
	for _, f := range files {
		_ = os.Remove(f)
	}
}
