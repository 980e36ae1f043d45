package packs

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A segment is: length of the rest after the number (32 bit), number (64 bit),
// and the zstd form of at most segmentBytes, protected. Protected means sealed with
// AES-256-GCM under the file's own key and the number as nonce, or, without a key,
// followed by the CRC-32C of number and bytes. Numbers only grow within a file
// and none is used twice, also not for bytes that were cut off again.
const (
	segmentHeader  = 4 + 8
	segmentBytes   = 1 << 20
	maxSealedBytes = segmentBytes + 64<<10 // nothing compressed is larger
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errSegment = errors.New("a segment does not match its checksum")
)

// sealer protects the segments of one file.
type sealer struct{ aead cipher.AEAD } // nil without a key

func newSealer(key, salt []byte) (sealer, error) {
	if key == nil {
		return sealer{}, nil
	}
	k, err := hkdf.Key(sha256.New, key, salt, "witan/packfile/1", 32)
	if err != nil {
		return sealer{}, err
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCM(block)
	return sealer{aead}, err
}

func nonce(n uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 4, 12), n)
}

func checksum(b []byte, n uint64) uint32 {
	return crc32.Update(crc32.Checksum(binary.BigEndian.AppendUint64(nil, n), castagnoli), castagnoli, b)
}

// seal appends segment n, which holds b, to dst.
func (s sealer) seal(dst, b []byte, n uint64) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, n)
	if s.aead != nil {
		dst = s.aead.Seal(dst, nonce(n), b, nil)
	} else {
		dst = append(dst, b...)
		dst = binary.BigEndian.AppendUint32(dst, checksum(b, n))
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-segmentHeader))
	return dst
}

// open reverses seal for all of b, in place.
func (s sealer) open(b []byte) ([]byte, error) {
	if len(b) < segmentHeader || int(binary.BigEndian.Uint32(b)) != len(b)-segmentHeader {
		return nil, errSegment
	}
	n, b := binary.BigEndian.Uint64(b[4:]), b[segmentHeader:]
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
	if checksum(body, n) != binary.BigEndian.Uint32(b[len(body):]) {
		return nil, errSegment
	}
	return body, nil
}

// readSegment reads and opens the next segment into buf; what it returns is valid
// until buf is used again. stored is what the segment takes.
func (s sealer) readSegment(r io.Reader, buf []byte) (b []byte, stored int64, err error) {
	buf = buf[:0]
	buf = append(buf, make([]byte, segmentHeader)...)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, 0, short(err)
	}
	n := int(binary.BigEndian.Uint32(buf))
	if n > maxSealedBytes {
		return nil, 0, errSegment
	}
	if need := segmentHeader + n; cap(buf) < need {
		buf = append(make([]byte, 0, need), buf...)
	}
	buf = buf[:segmentHeader+n]
	if _, err := io.ReadFull(r, buf[segmentHeader:]); err != nil {
		return nil, 0, short(err)
	}
	b, err = s.open(buf)
	return b, int64(len(buf)), err
}

// short makes an early end what it means here.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errSegment
	}
	return err
}

// Compressed bytes begin with what follows: as is, or zstd.
const (
	plain      = 0
	compressed = 1
)

func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

func newDecoder(limit uint64) *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(limit))
	if err != nil {
		panic(err)
	}
	return d
}

// Idle encoders and decoders are given back by the garbage collector.
var (
	encoders = sync.Pool{New: func() any { return newEncoder() }}
	decoders = sync.Pool{New: func() any { return newDecoder(2 * segmentBytes) }}
)

// compress appends the compressed form of b to dst, or b itself where that is
// not larger.
func compress(e *zstd.Encoder, dst, b []byte) []byte {
	at := len(dst)
	dst = e.EncodeAll(b, append(dst, compressed))
	if len(dst)-at-1 >= len(b) {
		dst = append(append(dst[:at], plain), b...)
	}
	return dst
}

// decompress appends the content of one segment to dst.
func decompress(dst, b []byte) ([]byte, error) {
	if len(b) == 0 || b[0] > compressed {
		return nil, errSegment
	}
	if b[0] == plain {
		return append(dst, b[1:]...), nil
	}
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	if len(dst) == 0 {
		return d.DecodeAll(b[1:], dst)
	}
	out, err := d.DecodeAll(b[1:], nil) // the decoder's limit counts what is in dst
	return append(dst, out...), err
}
