package packs

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"unique"

	"github.com/klauspost/compress/zstd"

	"witan/kernel"
	"witan/stores/db"
)

// A pack file is: header (magic, salt), segments, a footer, a trailer (offset of
// the footer, CRC-32C of header and trailer, magic). The footer is segments, too:
// the list of packs, in the order of their segments.
const (
	magic        = "WITANPK1"
	saltBytes    = 24
	idBytes      = 12
	headerBytes  = len(magic) + saltBytes
	trailerBytes = 8 + 4 + len(magic)
	fileBytes    = 16 << 20 // a file is closed once it is larger
	maxFooter    = 1 << 30
)

var errFile = errors.New("header or footer of the file do not match their checksums")

// entry is what a footer says of one pack.
type entry struct {
	Hash kernel.Digest
	place
}

// place is where a pack is in a file, and what it is.
type place struct {
	Kind   string
	Bytes  int64 // of the content
	Off    int64 // of its first segment
	Stored int64 // of all its segments
}

func appendPlace(b []byte, p place) []byte {
	b = append(append(b, byte(len(p.Kind))), p.Kind...)
	for _, v := range []int64{p.Bytes, p.Off, p.Stored} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

// cutPlace reads what appendPlace wrote from the beginning of b.
func cutPlace(b []byte) (p place, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return p, nil, false
	}
	p.Kind, b = unique.Make(string(b[1:1+b[0]])).Value(), b[1+b[0]:]
	for _, v := range []*int64{&p.Bytes, &p.Off, &p.Stored} {
		u, n := binary.Uvarint(b)
		if n <= 0 || u > 1<<62 {
			return p, nil, false
		}
		*v, b = int64(u), b[n:]
	}
	return p, b, true
}

func encodeFooter(entries []entry) []byte {
	var b []byte
	for _, e := range entries {
		b = appendPlace(append(b, e.Hash[:]...), e.place)
	}
	return b
}

func decodeFooter(b []byte) ([]entry, error) {
	var out []entry
	for len(b) > 0 {
		var e entry
		if len(b) < len(e.Hash) {
			return nil, errFile
		}
		b = b[copy(e.Hash[:], b):]
		var ok bool
		if e.place, b, ok = cutPlace(b); !ok {
			return nil, errFile
		}
		out = append(out, e)
	}
	return out, nil
}

// fileWriter builds one pack file.
type fileWriter struct {
	f       *os.File
	path    string // final
	id      string
	header  []byte
	s       sealer
	at      int64
	n       uint64 // of the next segment
	sum     uint32 // CRC-32C of what was written
	entries []entry
	buf     []byte
}

// newID returns a random header and the file name that goes with it.
func newHeader() (header []byte, id string, err error) {
	header = append([]byte(magic), make([]byte, saltBytes)...)
	if _, err := rand.Read(header[len(magic):]); err != nil {
		return nil, "", err
	}
	return header, hex.EncodeToString(header[len(magic) : len(magic)+idBytes]), nil
}

func newFileWriter(dir string, key []byte) (*fileWriter, error) {
	header, id, err := newHeader()
	if err != nil {
		return nil, err
	}
	s, err := newSealer(key, header[len(magic):])
	if err != nil {
		return nil, err
	}
	w := &fileWriter{path: filepath.Join(dir, id+".pack"), id: id, header: header, s: s}
	if w.f, err = os.OpenFile(w.path+".tmp", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := w.write(header); err != nil {
		w.abort()
		return nil, err
	}
	return w, nil
}

func (w *fileWriter) write(b []byte) error {
	if _, err := w.f.Write(b); err != nil {
		return err
	}
	w.at += int64(len(b))
	w.sum = crc32.Update(w.sum, castagnoli, b)
	return nil
}

// segment writes one; b is compressed already.
func (w *fileWriter) segment(b []byte) error {
	w.buf = w.s.seal(w.buf[:0], b, w.n)
	w.n++
	return w.write(w.buf)
}

// mark is a place to go back to.
type mark struct {
	at  int64
	sum uint32
}

func (w *fileWriter) mark() mark { return mark{w.at, w.sum} }

// cut takes back what was written since m.
func (w *fileWriter) cut(m mark) error {
	if w.at == m.at {
		return nil
	}
	if err := w.f.Truncate(m.at); err != nil {
		return err
	}
	w.at, w.sum = m.at, m.sum
	_, err := w.f.Seek(m.at, io.SeekStart)
	return err
}

func trailer(header []byte, footer int64) []byte {
	t := binary.BigEndian.AppendUint64(nil, uint64(footer))
	sum := crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, t)
	return append(binary.BigEndian.AppendUint32(t, sum), magic...)
}

// seal finishes the file: footer, trailer, read-back, sync, rename, sync of the folder.
// After an error nothing is left of it, unless only the folder could not be synced.
func (w *fileWriter) seal(at func(string)) (err error) {
	defer func() {
		if err != nil {
			w.abort()
		}
	}()
	e := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(e)
	off := w.at
	for rest := range slices.Chunk(encodeFooter(w.entries), segmentBytes) {
		if err := w.segment(compress(e, nil, rest)); err != nil {
			return err
		}
	}
	if err := w.write(trailer(w.header, off)); err != nil {
		return err
	}
	if err := w.verify(); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
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

// verify reads the file back: what is on its way to the disk must be what was
// meant, and the footer must say what the index will be told.
func (w *fileWriter) verify() error {
	sum, buf := uint32(0), slices.Grow(w.buf[:0], 256<<10)
	buf = buf[:cap(buf)]
	for at := int64(0); ; {
		n, err := w.f.ReadAt(buf, at)
		sum, at = crc32.Update(sum, castagnoli, buf[:n]), at+int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	got, err := readFooter(w.f, w.s)
	if err != nil {
		return err
	}
	if sum != w.sum || !slices.Equal(got.entries, w.entries) {
		return errors.New("the file reads back differently")
	}
	return nil
}

// abort removes what seal has not renamed.
func (w *fileWriter) abort() {
	w.f.Close()
	os.Remove(w.path + ".tmp")
}

// footer is what a file says of itself. Segments end at off.
type footer struct {
	entries []entry
	off     int64
}

// readFooter checks header, footer and trailer. errFile and errSegment mean that
// they do not hold, any other error that the file could not be read.
func readFooter(f *os.File, s sealer) (footer, error) {
	fi, err := f.Stat()
	if err != nil {
		return footer{}, err
	}
	size := fi.Size()
	if size < int64(headerBytes+trailerBytes) {
		return footer{}, errFile
	}
	head, tail := make([]byte, headerBytes), make([]byte, trailerBytes)
	if _, err := f.ReadAt(head, 0); err != nil {
		return footer{}, err
	}
	end := size - int64(trailerBytes)
	if _, err := f.ReadAt(tail, end); err != nil {
		return footer{}, err
	}
	off := int64(binary.BigEndian.Uint64(tail))
	if string(head[:len(magic)]) != magic || !bytes.Equal(tail, trailer(head, off)) || off < int64(headerBytes) || off > end || end-off > maxFooter {
		return footer{}, errFile
	}
	var raw []byte
	r := io.NewSectionReader(f, off, end-off)
	for at := off; at < end; {
		b, n, err := s.readSegment(r, nil)
		if err == nil {
			raw, err = decompress(raw, b)
		}
		if err != nil {
			return footer{}, err
		}
		at += n
	}
	entries, err := decodeFooter(raw)
	return footer{entries, off}, err
}

// openFile opens a pack file with its sealer.
func openFile(path string, key []byte) (*os.File, sealer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, sealer{}, err
	}
	head := make([]byte, headerBytes)
	if _, err = io.ReadFull(f, head); err != nil {
		err = errFile
	}
	var s sealer
	if err == nil {
		s, err = newSealer(key, head[len(magic):])
	}
	if err != nil {
		f.Close()
		return nil, sealer{}, err
	}
	return f, s, nil
}

// copySegments writes the content of the segments at p to w. It checks segments,
// not the name of the pack.
func copySegments(f io.ReaderAt, s sealer, p place, w io.Writer) error {
	r := io.NewSectionReader(f, p.Off, p.Stored)
	var buf, out []byte
	for left := p.Stored; left > 0; {
		b, n, err := s.readSegment(r, buf)
		if err == nil {
			out, err = decompress(out[:0], b)
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		left -= n
		if buf == nil && left > 0 {
			buf = make([]byte, 0, segmentHeader+maxSealedBytes)
		}
	}
	return nil
}
