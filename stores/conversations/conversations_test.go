package conversations_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores/conversations"
	"witan/stores/db"
)

// TestIncomplete: what is gone or damaged does not hide the rest of a list, and
// the list does not end as if it was complete.
func TestIncomplete(t *testing.T) {
	id := kerneltest.Conv(1).ID
	messageKey := binary.BigEndian.AppendUint64([]byte("m/"+string(id)+"/"), 1)
	for name, c := range map[string]struct {
		damage                  func(*badger.Txn) error
		conversations, messages int
	}{
		"whole":                {func(*badger.Txn) error { return nil }, 3, 3},
		"message gone":         {func(txn *badger.Txn) error { return txn.Delete(append(messageKey, "msg_1"...)) }, 3, 2},
		"message damaged":      {func(txn *badger.Txn) error { return txn.Set(append(messageKey, "msg_1"...), []byte("{")) }, 3, 2},
		"conversation gone":    {func(txn *badger.Txn) error { return txn.Delete([]byte("c/" + kerneltest.Conv(2).ID)) }, 2, 3},
		"conversation damaged": {func(txn *badger.Txn) error { return txn.Set([]byte("c/"+kerneltest.Conv(0).ID), []byte("{")) }, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := db.Open(t.Context(), db.Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			s := conversations.Open(d)
			for n := range 3 {
				for range 2 { // the second time nothing is new
					if err := s.PutConversation(t.Context(), kerneltest.Conv(n)); err != nil {
						t.Fatal(err)
					}
				}
				m := kernel.Message{ID: kernel.MessageID(fmt.Sprint("msg_", n)), Conversation: kerneltest.Conv(1).ID, TurnSeq: uint64(n)}
				if n == 0 {
					continue
				}
				for range 2 {
					if err := s.PutMessage(t.Context(), m); err != nil {
						t.Fatal(err)
					}
				}
			}
			first := kernel.Message{ID: "msg_0", Conversation: id}
			if err := s.PutMessage(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			if err := d.Update(c.damage); err != nil {
				t.Fatal(err)
			}
			got, err := 0, error(nil)
			for _, e := range s.Conversations(t.Context()) {
				if err = e; e == nil {
					got++
				}
			}
			want(t, got, c.conversations, err)
			for from := range uint64(3) {
				got = int(from)
				for _, e := range s.Messages(t.Context(), id, from) {
					if err = e; e == nil {
						got++
					}
				}
				if from < 2 { // later, what is gone is before the place
					want(t, got, c.messages, err)
				}
			}
		})
	}
}

// want wants so many of three, and an error exactly when some are not there.
func want(t *testing.T, got, want int, err error) {
	t.Helper()
	if got != want || kernel.IsKind(err, kernel.Corrupt) != (want < 3) {
		t.Fatalf("%d of %d, %v", got, want, err)
	}
}
