package conversations_test

import (
	"testing"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores/conversations"
	"witan/stores/db"
)

func queueOf(t *testing.T, n int) (*db.DB, *conversations.Store) {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	s := conversations.Open(d)
	if err := s.PutConversation(t.Context(), kerneltest.Conv(1)); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, _, err := s.AddEntry(t.Context(), kerneltest.Entry(1, i)); err != nil {
			t.Fatal(err)
		}
	}
	return d, s
}

// TestDamagedEntry: an entry that cannot be read is named, does not hide the
// others, holds the queue up, and can be removed.
func TestDamagedEntry(t *testing.T) {
	id, broken := kerneltest.Conv(1).ID, kerneltest.Entry(1, 0).ID
	row := []byte("ue/" + broken)
	for name, damage := range map[string]func(*badger.Txn) error{
		"gone":  func(txn *badger.Txn) error { return txn.Delete(row) },
		"short": func(txn *badger.Txn) error { return txn.Set(row, []byte("{}")) },
		"another text": func(txn *badger.Txn) error {
			it, err := txn.Get(row)
			if err != nil {
				return err
			}
			b, err := it.ValueCopy(nil)
			if err != nil {
				return err
			}
			b[len(b)-3] ^= 1
			return txn.Set(row, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			d, s := queueOf(t, 3)
			if bad, n, err := s.CheckQueues(ctx); err != nil || n != 3 || len(bad) != 0 {
				t.Fatalf("check: %v of %d, %v", bad, n, err)
			}
			if err := d.Update(damage); err != nil {
				t.Fatal(err)
			}
			es, _, err := s.Entries(ctx, id)
			if !kernel.IsKind(err, kernel.Corrupt) || len(es) != 2 {
				t.Fatalf("%d entries, %v", len(es), err)
			}
			if _, err := s.TakeEntry(ctx, id); !kernel.IsKind(err, kernel.Corrupt) {
				t.Fatalf("take: %v", err)
			}
			bad, n, err := s.CheckQueues(ctx)
			if err != nil || n != 3 || len(bad) != 1 || bad[0].ID != string(broken) || bad[0].Conversation != id {
				t.Fatalf("check: %+v of %d, %v", bad, n, err)
			}
			if err := s.RemoveEntry(ctx, id, broken); err != nil {
				t.Fatal(err)
			}
			if e, err := s.TakeEntry(ctx, id); err != nil || e.ID != kerneltest.Entry(1, 1).ID {
				t.Fatalf("%+v, %v", e, err)
			}
		})
	}
}

// TestQueueGone: a queue whose row is gone is missed, not forgotten.
func TestQueueGone(t *testing.T) {
	t.Parallel()
	d, s := queueOf(t, 1)
	if err := d.Update(func(txn *badger.Txn) error { return txn.Delete([]byte("u/" + kerneltest.Conv(1).ID)) }); err != nil {
		t.Fatal(err)
	}
	bad, _, err := s.CheckQueues(t.Context())
	if err != nil || len(bad) != 1 {
		t.Fatalf("check: %+v, %v", bad, err)
	}
}
