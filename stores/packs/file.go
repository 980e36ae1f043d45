package packs

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"witan/kernel"
	"witan/stores/db"
)

// A pack file is: header (magic, salt), segments, footer segment, trailer
// (offset of the footer, CRC-32C of header and trailer, magic). A segment is a
// 32-bit length and that many bytes: zstd of at most segmentBytes, sealed with
// AES-256-GCM under a key of its own file and its number as nonce, or, without
// encryption, followed by its CRC-32C.
const (
	magic        = "WITANPK1"
	saltBytes    = 24
	headerBytes  = len(magic) + saltBytes
	trailerBytes = 8 + 4 + len(magic)
	segmentBytes = 1 << 20
	fileBytes    = 16 << 20 // a file is closed once it is larger
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entry is what a file's footer says of one pack.
type entry struct {
	Hash  kernel.Digest `json:"h"`
	Kind  string        `json:"k"`
	Bytes int64         `json:"b"`
	Segs  []int64       `json:"s"` // offset and number of each segment, alternating
}

// sealer protects the segments of one file.
type sealer struct {
	aead cipher.AEAD // nil without encryption
}

func newSealer(key, salt []byte) (*sealer, error) {
	if key == nil {
		return &sealer{}, nil
	}
	k, err := hkdf.Key(sha256.New, key, salt, "witan/packfile/1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &sealer{aead}, err
}

func nonce(n int64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 4, 12), uint64(n))
}

// seal appends the protected form of b, segment number n of the file, to dst.
func (s *sealer) seal(dst, b []byte, n int64) []byte {
	if s.aead != nil {
		return s.aead.Seal(dst, nonce(n), b, nil)
	}
	dst = append(dst, b...)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(binary.BigEndian.AppendUint64(b[:len(b):len(b)], uint64(n)), castagnoli))
}

var errSegment = errors.New("a segment does not match its checksum")

func (s *sealer) open(b []byte, n int64) ([]byte, error) {
	if s.aead != nil {
		out, err := s.aead.Open(b[:0], nonce(n), b, nil)
		if err != nil {
			return nil, errSegment
		}
		return out, nil
	}
	if len(b) < 4 {
		return nil, errSegment
	}
	body := b[:len(b)-4]
	sum := binary.BigEndian.Uint32(b[len(body):])
	if crc32.Checksum(binary.BigEndian.AppendUint64(bytes.Clone(body), uint64(n)), castagnoli) != sum {
		return nil, errSegment
	}
	return body, nil
}

var (
	encoders = newPool(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(err) // options are constants
		}
		return e
	})
	decoders = newPool(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(segmentBytes*2), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(err)
		}
		return d
	})
)

// pool keeps up to two idle values: as many as there are workers.
type pool[T any] struct {
	c   chan T
	new func() T
}

func newPool[T any](f func() T) *pool[T] { return &pool[T]{make(chan T, 2), f} }

func (p *pool[T]) get() T {
	select {
	case v := <-p.c:
		return v
	default:
		return p.new()
	}
}

func (p *pool[T]) put(v T) {
	select {
	case p.c <- v:
	default:
	}
}

// compress prefixes zstd bytes with 1, or the bytes themselves with 0 where
// compression gains nothing.
func compress(dst, b []byte) []byte {
	e := encoders.get()
	defer encoders.put(e)
	out := e.EncodeAll(b, append(dst, 1))
	if len(out)-len(dst)-1 >= len(b) {
		return append(append(dst[:len(dst):len(dst)], 0), b...)
	}
	return out
}

func decompress(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, errSegment
	}
	if b[0] == 0 {
		return b[1:], nil
	}
	d := decoders.get()
	defer decoders.put(d)
	return d.DecodeAll(b[1:], nil)
}

// writer builds one pack file.
type fileWriter struct {
	f       *os.File
	path    string // final
	id      string
	salt    []byte
	s       *sealer
	at      int64
	n       int64
	entries []entry
	buf     []byte
}

func newFileWriter(dir string, key []byte) (*fileWriter, error) {
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return nil, err
	}
	id := hex.EncodeToString(salt[:12])
	s, err := newSealer(key, salt)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, id+".pack")
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	w := &fileWriter{f: f, path: path, id: id, salt: salt, s: s}
	_, err = f.Write(append([]byte(magic), salt...))
	w.at = int64(headerBytes)
	return w, err
}

// segment writes one and returns its place.
func (w *fileWriter) segment(compressed []byte) (off, n int64, err error) {
	w.buf = append(w.buf[:0], 0, 0, 0, 0)
	w.buf = w.s.seal(w.buf, compressed, w.n)
	binary.BigEndian.PutUint32(w.buf, uint32(len(w.buf)-4))
	off, n = w.at, w.n
	if _, err = w.f.Write(w.buf); err != nil {
		return 0, 0, err
	}
	w.at += int64(len(w.buf))
	w.n++
	return off, n, nil
}

func trailer(header []byte, footer int64) []byte {
	t := binary.BigEndian.AppendUint64(nil, uint64(footer))
	sum := crc32.Checksum(append(bytes.Clone(header), t...), castagnoli)
	return append(binary.BigEndian.AppendUint32(t, sum), magic...)
}

// seal finishes the file: footer, trailer, sync, read-back, rename, sync of the folder.
func (w *fileWriter) seal(at func(string)) error {
	b, err := json.Marshal(w.entries)
	if err != nil {
		return err
	}
	// The footer may be larger than a segment: it is one piece of its own.
	off, _, err := w.segment(compress(nil, b))
	if err != nil {
		return err
	}
	head := append([]byte(magic), w.salt...)
	if _, err := w.f.Write(trailer(head, off)); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	if got, err := readFooter(w.f, w.s); err != nil || len(got) != len(w.entries) {
		return fmt.Errorf("the file reads back differently: %w", err)
	}
	if err := w.f.Close(); err != nil {
		return err
	}
	at("packs.seal.before_rename")
	if err := os.Rename(w.path+".tmp", w.path); err != nil {
		return err
	}
	err = db.SyncDir(filepath.Dir(w.path))
	at("packs.seal.after_rename")
	return err
}

func (w *fileWriter) abort() {
	w.f.Close()
	os.Remove(w.path + ".tmp")
}

var errFile = errors.New("the file is damaged")

// readFooter checks header and trailer and returns the entries.
func readFooter(f *os.File, s *sealer) ([]entry, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if size < int64(headerBytes+trailerBytes) {
		return nil, errFile
	}
	head := make([]byte, headerBytes)
	tail := make([]byte, trailerBytes)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(tail, size-int64(trailerBytes)); err != nil {
		return nil, err
	}
	off := int64(binary.BigEndian.Uint64(tail))
	if string(head[:len(magic)]) != magic || !bytes.Equal(tail, trailer(head, off)) || off < int64(headerBytes) || off > size-int64(trailerBytes)-4 {
		return nil, errFile
	}
	raw := make([]byte, size-int64(trailerBytes)-off)
	if _, err := f.ReadAt(raw, off); err != nil {
		return nil, err
	}
	if int64(binary.BigEndian.Uint32(raw)) != int64(len(raw)-4) {
		return nil, errFile
	}
	n, err := countSegments(f, off)
	if err != nil {
		return nil, err
	}
	b, err := s.open(raw[4:], n)
	if err != nil {
		return nil, err
	}
	if b, err = footerJSON(b); err != nil {
		return nil, errFile
	}
	var out []entry
	return out, json.Unmarshal(b, &out)
}

func footerJSON(b []byte) ([]byte, error) {
	if len(b) > 0 && b[0] == 1 {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return d.DecodeAll(b[1:], nil)
	}
	return decompress(b)
}

// countSegments walks the lengths up to end: the footer's nonce is their number.
func countSegments(f *os.File, end int64) (int64, error) {
	var l [4]byte
	n := int64(0)
	for at := int64(headerBytes); at < end; n++ {
		if _, err := f.ReadAt(l[:], at); err != nil {
			return 0, err
		}
		at += 4 + int64(binary.BigEndian.Uint32(l[:]))
		if at > end {
			return 0, errFile
		}
	}
	return n, nil
}

// openFile opens a pack file with its sealer.
func openFile(path string, key []byte) (*os.File, *sealer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	head := make([]byte, headerBytes)
	if _, err := io.ReadFull(f, head); err != nil {
		f.Close()
		return nil, nil, errFile
	}
	s, err := newSealer(key, head[len(magic):])
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, s, nil
}

// readSegment reads the raw bytes of one segment.
func readSegment(f *os.File, s *sealer, off, n int64) ([]byte, error) {
	var l [4]byte
	if _, err := f.ReadAt(l[:], off); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(l[:])
	if size > 2*segmentBytes {
		return nil, errFile
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, off+4); err != nil {
		return nil, err
	}
	b, err := s.open(b, n)
	if err != nil {
		return nil, err
	}
	return decompress(b)
}
