package stores_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

// median of durations.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkAppend measures one durable append of a 600-byte record against the
// floor: appending 600 bytes to a file and syncing them. Both alternate, so
// that what else the disk does falls on both.
func BenchmarkAppend(b *testing.B) {
	keyed(b)
	ctx := context.Background()
	s := fresh(b, true)
	f, err := os.OpenFile(filepath.Join(b.TempDir(), "floor"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := kerneltest.Random(1, 600)
	record := kerneltest.Batch(kerneltest.Run(1), kernel.Head{}, 1, strings.Repeat("x", 460))
	var head kernel.Head
	var floor, ours []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := datasync(f); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		record.Expect = head
		h, recs, err := s.Ledger.Append(ctx, record)
		if err != nil {
			b.Fatal(err)
		}
		floor, ours = append(floor, middle.Sub(start)), append(ours, time.Since(middle))
		if n := len(recs[0].Encode()); head.Seq == 0 && (n < 550 || n > 650) {
			b.Fatalf("the record has %d bytes", n)
		}
		head = h
	}
	low, high := median(floor), median(ours)
	b.ReportMetric(float64(low.Microseconds()), "floor-µs")
	b.ReportMetric(float64(high.Microseconds()), "append-µs")
	b.ReportMetric(float64(high)/float64(low), "x-of-floor")
}

// openAndList is what a command does before it can show the list of runs.
func openAndList(b *testing.B, dir string, want int) {
	s := open(b, stores.Options{Dir: dir})
	n := 0
	for _, err := range s.Ledger.Summaries(context.Background()) {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.StopTimer()
	if n != want {
		b.Fatalf("%d runs, want %d", n, want)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}

func BenchmarkOpenEmpty(b *testing.B) {
	keyed(b)
	dir := b.TempDir()
	if err := open(b, stores.Options{Dir: dir, Encryption: true}).Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		openAndList(b, dir, 0)
	}
}

// tenThousand is a closed directory with that many runs of four records.
func tenThousand(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	s := open(b, stores.Options{Dir: dir, Encryption: true})
	work := make(chan int)
	done := make(chan error)
	for range 16 { // appends of different runs share their syncs
		go func() {
			var err error
			for n := range work {
				if _, _, e := s.Ledger.Append(context.Background(), kerneltest.Batch(kerneltest.Run(n), kernel.Head{}, 4, strings.Repeat("x", 350))); e != nil {
					err = e
				}
			}
			done <- err
		}()
	}
	for n := range 10_000 {
		work <- n
	}
	close(work)
	for range 16 {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}

func BenchmarkOpen10000Runs(b *testing.B) {
	keyed(b)
	dir := tenThousand(b)
	for b.Loop() {
		openAndList(b, dir, 10_000)
	}
}
