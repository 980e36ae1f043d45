package stores_test

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"witan/stores"
)

func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// anonymous is the memory of this process that no file backs, in bytes.
func anonymous(b *testing.B) int64 {
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Anonymous:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb << 10
		}
	}
	b.Fatal("the system does not say how much memory is anonymous")
	return 0
}

// BenchmarkIdleMemory reports the anonymous memory that an open store adds.
func BenchmarkIdleMemory(b *testing.B) {
	keyed(b)
	dir := filled(b, true)
	var most, total int64
	for b.Loop() {
		debug.FreeOSMemory()
		before := anonymous(b)
		s := open(b, stores.Options{Dir: dir})
		debug.FreeOSMemory()
		after := anonymous(b)
		most, total = max(most, after-before), max(total, after)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB-added")
	b.ReportMetric(float64(total)/(1<<20), "MiB-process")
}
