package db

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
)

// Badger's log file: a 20-byte header (key id, base IV), then entries of
// meta, user meta, key and value length and expiry as varints, key, value and
// the CRC-32C of all that; zeros behind the last one. (Read from badger v4.9.6.)
const logHeader = 20

// checkLog walks a log. A log is damaged when an entry does not match its
// checksum and something other than zeros follows where the log should end,
// unless that is the beginning of an entry whose writing a crash cut off.
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
	why, err := tail(f, at)
	if why == "" || err != nil {
		return why, err
	}
	rest, err := io.ReadAll(io.NewSectionReader(f, at, mostTorn))
	if err != nil {
		return "", err
	}
	rest = bytes.TrimRight(rest, "\x00")
	if len(rest) == mostTorn || !torn(rest) {
		return why, nil
	}
	return tail(f, at+int64(len(rest)))
}

// mostTorn is more than the largest entry that we write.
const mostTorn = 2 << 20

// torn tells an entry that was never completed from one that changed later. b
// is what follows the last valid entry, without the zeros behind it. An
// incomplete entry has no checksum yet where its lengths say that it ends. A
// changed length can pretend the same; then there is a byte of the lengths whose
// right value makes the entry valid.
func torn(b []byte) bool {
	head, end := entrySize(b)
	if len(b) <= head || len(b) > end {
		return false // a byte behind the log, or a complete entry
	}
	padded := append(bytes.Clone(b), make([]byte, 64)...)
	for i := range min(head, len(b)) {
		was := padded[i]
		for v := range 256 {
			padded[i] = byte(v)
			if _, end := entrySize(padded); end <= len(b) &&
				crc32.Checksum(padded[:end], castagnoli) == binary.BigEndian.Uint32(padded[end:]) {
				return false
			}
		}
		padded[i] = was
	}
	return true
}

// entrySize gives the length of an entry's head and the place of its checksum.
func entrySize(b []byte) (head, end int) {
	head = 2
	var sizes int
	for i := range 3 {
		if head > len(b) {
			return head, head
		}
		l, n := binary.Uvarint(b[head:])
		if n <= 0 {
			return head + 1, head + 1
		}
		head += n
		if i < 2 {
			sizes += int(min(l, 1<<30))
		}
	}
	return head, head + sizes
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

// nothing is what is behind the last entry of a log; logs are mostly that.
var nothing [256 << 10]byte

// tail looks at what is behind the last valid entry.
func tail(f *os.File, at int64) (string, error) {
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return "", err
	}
	buf := make([]byte, len(nothing))
	for {
		n, err := f.Read(buf)
		if !bytes.Equal(buf[:n], nothing[:n]) {
			return fmt.Sprintf("zeros are expected from byte %d on, and something else follows", at), nil
		}
		if err == io.EOF {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
}
