package db

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// streamPiece is the plain size of one sealed piece of a stream.
const streamPiece = 256 << 10

// StreamKey seals backups; nil without encryption.
func (d *DB) StreamKey() []byte {
	if d.master == nil {
		return nil
	}
	return subkey(d.master, "stream")
}

// OpenEmpty opens the directory of a restore, whose FORMAT is there and whose
// database is not.
func OpenEmpty(ctx context.Context, dir string) (*DB, error) {
	if err := os.MkdirAll(filepath.Join(dir, "db"), 0o700); err != nil {
		return nil, DiskError("db.OpenEmpty", dir, err)
	}
	if _, err := ReadFormat(dir); err != nil {
		return nil, err
	}
	return Open(ctx, Options{Dir: dir})
}

// SealWriter writes a stream in pieces: length, last-flag in the associated
// data, AES-256-GCM. Without a key it passes bytes through.
type SealWriter struct {
	w    io.Writer
	aead cipher.AEAD
	n    uint64
	buf  []byte
	err  error
}

// NewSealWriter returns a writer; Close must be called.
func NewSealWriter(w io.Writer, key []byte) *SealWriter {
	s := &SealWriter{w: w}
	if key != nil {
		s.aead, s.err = gcm(key)
	}
	return s
}

func gcm(key []byte) (cipher.AEAD, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(b)
}

func (s *SealWriter) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.aead == nil {
		return s.w.Write(b)
	}
	n := len(b)
	for len(b) > 0 && s.err == nil {
		k := min(len(b), streamPiece-len(s.buf))
		s.buf, b = append(s.buf, b[:k]...), b[k:]
		if len(s.buf) == streamPiece {
			s.flush(false)
		}
	}
	return n, s.err
}

func aad(n uint64, last bool) []byte {
	b := binary.BigEndian.AppendUint64(nil, n)
	if last {
		return append(b, 1)
	}
	return append(b, 0)
}

func (s *SealWriter) flush(last bool) {
	out := s.aead.Seal(nil, nil, s.buf, aad(s.n, last))
	head := binary.BigEndian.AppendUint32(nil, uint32(len(out)))
	if _, s.err = s.w.Write(append(head, out...)); s.err == nil {
		s.n++
		s.buf = s.buf[:0]
	}
}

// Close writes the last piece.
func (s *SealWriter) Close() error {
	if s.err == nil && s.aead != nil {
		s.flush(true)
	}
	return s.err
}

// NewSealReader reads what a SealWriter wrote; a cut or changed stream is an error.
func NewSealReader(r io.Reader, key []byte) (io.Reader, error) {
	if key == nil {
		return r, nil
	}
	a, err := gcm(key)
	return &sealReader{r: r, aead: a}, err
}

type sealReader struct {
	r    io.Reader
	aead cipher.AEAD
	n    uint64
	rest []byte
	last bool
}

// ErrStream says that a dump or its seal does not hold.
var ErrStream = errors.New("the dump of the database is cut or changed")

func (s *sealReader) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.last {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *sealReader) next() error {
	var head [4]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return ErrStream
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > streamPiece+64 {
		return ErrStream
	}
	in := make([]byte, size)
	if _, err := io.ReadFull(s.r, in); err != nil {
		return ErrStream
	}
	for _, last := range []bool{false, true} {
		if out, err := s.aead.Open(nil, nil, in, aad(s.n, last)); err == nil {
			s.rest, s.last = out, last
			s.n++
			return nil
		}
	}
	return ErrStream
}
