package db

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// logFile is a log as Badger writes it, with the places where entries begin.
func logFile(sizes ...int) (b []byte, starts []int) {
	random := rand.NewChaCha8([32]byte{1})
	b = make([]byte, logHeader)
	random.Read(b)
	for _, size := range sizes {
		start := len(b)
		starts = append(starts, start)
		b = append(b, 0x40, 0)
		b = binary.AppendUvarint(b, 30)
		b = binary.AppendUvarint(b, uint64(size))
		b = binary.AppendUvarint(b, 0)
		body := make([]byte, 30+size)
		random.Read(body)
		b = append(b, body...)
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	}
	return b, append(starts, len(b))
}

// logOnDisk is a log file that tests change in place.
type logOnDisk struct {
	t *testing.T
	f *os.File
}

func newLog(t *testing.T, b []byte) logOnDisk {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "00001.mem"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	l := logOnDisk{t, f}
	l.put(0, b...)
	return l
}

func (l logOnDisk) put(at int, b ...byte) {
	l.t.Helper()
	if _, err := l.f.WriteAt(b, int64(at)); err != nil {
		l.t.Fatal(err)
	}
}

func (l logOnDisk) check() string {
	l.t.Helper()
	why, err := checkLog(l.f.Name())
	if err != nil {
		l.t.Fatal(err)
	}
	return why
}

// TestLogTorn: a log whose last entry was cut off behind its head while it was
// written is whole.
func TestLogTorn(t *testing.T) {
	b, starts := logFile(600, 2, 200)
	l := newLog(t, make([]byte, 4096)) // zeros behind it
	l.put(0, b[:logHeader]...)
	for i, start := range starts[:3] {
		l.put(start, b[start:start+7]...)
		for at := start + 7; at < starts[i+1]-4; at++ {
			l.put(at, b[at])
			if why := l.check(); why != "" {
				t.Fatalf("entry %d cut after %d bytes: %s", i, at+1-start, why)
			}
		}
		l.put(starts[i+1]-4, b[starts[i+1]-4:starts[i+1]]...)
	}
}

// TestLogChanged: a changed byte is found wherever it is, also in a length and
// also where there should be nothing.
func TestLogChanged(t *testing.T) {
	b, starts := logFile(600, 2, 200, 2)
	random := rand.New(rand.NewPCG(1, 2))
	whole := append(b, make([]byte, 512)...)
	l := newLog(t, whole)
	if why := l.check(); why != "" {
		t.Fatal(why)
	}
	for at := logHeader; at < len(whole); at++ {
		for range 2 {
			bad := whole[at] ^ byte(1+random.IntN(255))
			l.put(at, bad)
			if why := l.check(); why == "" {
				t.Fatalf("byte %d (the log ends at %d) changed from %02x to %02x is not found", at, starts[4], whole[at], bad)
			}
		}
		l.put(at, whole[at])
	}
}
