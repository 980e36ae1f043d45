package stores_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

// TestTableDamaged: a byte that changed in the middle of a table is met when
// its block is read. Runs in that block are named as damaged, all others can be
// read, and the host goes on.
func TestTableDamaged(t *testing.T) {
	for mode, encryption := range modes {
		t.Run(mode, func(t *testing.T) {
			keyed(t)
			dir := t.TempDir()
			const runs = 60
			s := open(t, stores.Options{Dir: dir, Encryption: encryption})
			for n := range runs {
				if _, _, err := s.Ledger.Append(context.Background(), kerneltest.Batch(kerneltest.Run(n), kernel.Head{}, 8, strings.Repeat("x", 1000))); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(3, 4))
			for range 5 {
				damagedTable(t, dir, random.Int64(), runs)
			}
		})
	}
}

func damagedTable(t *testing.T, dir string, at int64, runs int) {
	t.Helper()
	image := copyTree(t, dir)
	tables, err := filepath.Glob(filepath.Join(image, "db", "*.sst"))
	if err != nil || len(tables) != 1 {
		t.Fatal(tables, err)
	}
	b, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	at %= int64(len(b) - 100<<10)
	b[at] ^= 0x10
	if err := os.WriteFile(tables[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, stores.Options{Dir: image})
	defer s.Close()
	whole := 0
	for n := range runs {
		if readRun(t, s, kerneltest.Run(n)) {
			whole++
		}
	}
	if whole < runs-10 || whole == runs {
		t.Errorf("byte %d: %d of %d runs can be read", at, whole, runs)
	}
	rows := 0
	for _, err := range s.Ledger.Summaries(context.Background()) {
		if err != nil {
			t.Errorf("byte %d: %v", at, err)
		}
		rows++
	}
	if rows != runs {
		t.Errorf("byte %d: %d runs are listed, want %d", at, rows, runs)
	}
	damaged, _, err := s.CheckLive(context.Background(), func(stores.CheckRow) error { return nil })
	if err != nil || damaged == 0 {
		t.Errorf("byte %d: %d damages, %v", at, damaged, err)
	}
	if _, _, err := s.Ledger.Append(context.Background(), kerneltest.Batch(kerneltest.Run(runs), kernel.Head{}, 1, "new")); err != nil {
		t.Errorf("byte %d: %v", at, err)
	}
}

func readRun(t *testing.T, s *stores.Store, run kernel.RunID) bool {
	for _, err := range s.Ledger.Read(context.Background(), run, 1) {
		if err == nil {
			continue
		}
		if ke, ok := err.(*kernel.Error); !ok || ke.Kind != kernel.Corrupt || ke.Run != run {
			t.Errorf("%s: %v", run, err)
		}
		return false
	}
	return true
}
