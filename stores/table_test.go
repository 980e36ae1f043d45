package stores_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

const runs, perRun, messages = 60, 8, 150

// TestTableDamaged: a byte that changed in the middle of a table is met when
// its block is read. Runs in that block are named as damaged, all others can be
// read, and the host goes on.
func TestTableDamaged(t *testing.T) {
	for mode, encryption := range modes {
		t.Run(mode, func(t *testing.T) {
			keyed(t)
			dir := t.TempDir()
			s := open(t, stores.Options{Dir: dir, Encryption: encryption})
			for n := range runs {
				if _, _, err := s.Ledger.Append(context.Background(), kerneltest.Batch(kerneltest.Run(n), kernel.Head{}, perRun, strings.Repeat("x", 1000))); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Conversations.PutConversation(context.Background(), kerneltest.Conv(1)); err != nil {
				t.Fatal(err)
			}
			for n := range messages {
				m := kernel.Message{ID: kernel.MessageID(fmt.Sprint("msg_", n)), Conversation: kerneltest.Conv(1).ID, TurnSeq: uint64(n), Status: strings.Repeat("x", 1000)}
				if err := s.Conversations.PutMessage(context.Background(), m); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(3, 4))
			for range 5 {
				damagedTable(t, dir, random.Int64())
			}
		})
	}
}

func damagedTable(t *testing.T, dir string, at int64) {
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
	records, whole := 0, true
	for n := range runs {
		k, ok := readRun(t, s, kerneltest.Run(n))
		records += k
		whole = whole && ok
	}
	if complete := readMessages(t, s); records < (runs-5)*perRun || whole && complete {
		t.Errorf("byte %d: %d of %d records can be read, all: %t, all messages: %t", at, records, runs*perRun, whole, complete)
	}
	_, _, err = s.Backup(context.Background(), filepath.Join(t.TempDir(), "backup"))
	wantKind(t, err, kernel.Corrupt)
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

// readRun gives the number of records before the first error, which must name the run.
func readRun(t *testing.T, s *stores.Store, run kernel.RunID) (n int, whole bool) {
	for _, err := range s.Ledger.Read(context.Background(), run, 1) {
		if err != nil {
			if ke, ok := err.(*kernel.Error); !ok || ke.Kind != kernel.Corrupt || ke.Run != run {
				t.Errorf("%s: %v", run, err)
			}
			return n, false
		}
		n++
	}
	return n, true
}

// readMessages says whether all messages were there; if not, an error must say so.
func readMessages(t *testing.T, s *stores.Store) bool {
	n := 0
	for _, err := range s.Conversations.Messages(context.Background(), kerneltest.Conv(1).ID, 0) {
		if err != nil {
			wantKind(t, err, kernel.Corrupt)
			return false
		}
		n++
	}
	if n != messages {
		t.Errorf("%d messages without an error, want %d", n, messages)
	}
	return true
}

// TestTableUnfinished: a table that a kill left half-written is no damage; its
// content is still in a log.
func TestTableUnfinished(t *testing.T) {
	keyed(t)
	ctx := context.Background()
	live := filled(t, true)
	s := open(t, stores.Options{Dir: live})
	dir := copyTree(t, live)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "db", "000099.sst"), make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, _, err := stores.Check(ctx, dir, func(r stores.CheckRow) error { t.Errorf("%+v", r); return nil })
	if err != nil || damaged > 0 {
		t.Fatalf("%d damages, %v", damaged, err)
	}
	s = open(t, stores.Options{Dir: dir})
	defer s.Close()
	wantAll(t, s)
}
