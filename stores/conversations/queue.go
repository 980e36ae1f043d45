package conversations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/stores/db"
)

// Key prefixes of queues. A queue is one small row with the order of its
// entries, which every change reads and writes, so that changes at the same time
// are in conflict; each entry is a row of its own. Without entries there is no row.
const (
	prefixQueue    = "u/"
	keyQueues      = "ut"  // number of queues
	prefixEntry    = "ue/" // sum and JSON
	prefixEntryKey = "uk/" // conversation and key to a usedKey
)

var _ kernel.Queue = (*Store)(nil)

// queueRow is the order of a queue, and whether it is paused.
type queueRow struct {
	kernel.QueueState
	Order []kernel.EntryID `json:"order"`
}

// usedKey outlives its entry: a key adds once.
type usedKey struct {
	Entry kernel.EntryID `json:"entry"`
	Text  kernel.Digest  `json:"text"` // as it was added
}

func readQueue(txn *badger.Txn, id kernel.ConversationID) (q queueRow, err error) {
	if err := have(txn, id); err != nil {
		return q, err
	}
	err = getJSON(txn, prefixQueue+string(id), &q)
	if errors.Is(err, badger.ErrKeyNotFound) {
		err = nil
	}
	return q, err
}

// writeQueue stores the row; was is the number of entries it had before.
func writeQueue(txn *badger.Txn, id kernel.ConversationID, q queueRow, was int) error {
	n, err := number(txn, keyQueues)
	if err != nil {
		return err
	}
	key := prefixQueue + string(id)
	switch {
	case len(q.Order) == 0 && was == 0:
		return nil
	case len(q.Order) == 0:
		if err := setNumber(txn, keyQueues, n-min(n, 1)); err != nil {
			return err
		}
		return txn.Delete([]byte(key))
	case was == 0:
		if err := setNumber(txn, keyQueues, n+1); err != nil {
			return err
		}
	}
	return setJSON(txn, key, q)
}

func noEntry(e kernel.EntryID) error {
	return kernel.E("conversations.queue", kernel.NotFound, nil, "entry %s does not wait here", e).WithNext("see witan queue CONVERSATION")
}

// readEntry compares the row with its sum: its text goes to agents.
func readEntry(txn *badger.Txn, id kernel.EntryID) (e kernel.QueueEntry, err error) {
	it, err := txn.Get([]byte(prefixEntry + string(id)))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return e, noEntry(id)
	}
	if err != nil {
		return e, err
	}
	err = it.Value(func(b []byte) error {
		if len(b) < sha256.Size {
			return damagedEntry(id)
		}
		sum := sha256.Sum256(b[sha256.Size:])
		if !bytes.Equal(sum[:], b[:sha256.Size]) || json.Unmarshal(b[sha256.Size:], &e) != nil || e.ID != id {
			return damagedEntry(id)
		}
		return nil
	})
	return e, err
}

func damagedEntry(id kernel.EntryID) error {
	return kernel.E("conversations.queue", kernel.Corrupt, nil, "entry %s is damaged", id).WithNext("remove it from the queue and send it again")
}

func writeEntry(txn *badger.Txn, e kernel.QueueEntry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	return txn.Set([]byte(prefixEntry+string(e.ID)), append(sum[:], b...))
}

// AddEntry implements kernel.Queue.
func (s *Store) AddEntry(ctx context.Context, e kernel.QueueEntry) (got kernel.QueueEntry, again bool, err error) {
	if err := kernel.CheckQueueText("conversations.AddEntry", e.Text); err != nil {
		return e, false, err
	}
	err = s.update(len(e.Text)+len(e.Options)+4096, func(txn *badger.Txn) (err error) {
		q, err := readQueue(txn, e.Conversation)
		if err != nil {
			return err
		}
		if got, again, err = seen(txn, e); again || err != nil {
			return err
		}
		if len(q.Order) >= kernel.MaxQueue {
			return kernel.E("conversations.AddEntry", kernel.Invalid, nil, "the queue has %d entries, and no more fit", len(q.Order)).
				WithNext("wait until one is sent, or remove one")
		}
		if _, err := txn.Get([]byte(prefixEntry + string(e.ID))); !errors.Is(err, badger.ErrKeyNotFound) {
			if err == nil {
				err = kernel.E("conversations.AddEntry", kernel.Exists, nil, "entry %s exists", e.ID)
			}
			return err
		}
		got = e
		got.Held, got.Taken = false, false
		if e.Key != "" {
			if err := setJSON(txn, entryKey(e), usedKey{e.ID, kernel.Sum([]byte(e.Text))}); err != nil {
				return err
			}
		}
		if err := writeEntry(txn, got); err != nil {
			return err
		}
		q.Order = append(q.Order, e.ID)
		return writeQueue(txn, e.Conversation, q, len(q.Order)-1)
	})
	return got, again, err
}

func entryKey(e kernel.QueueEntry) string {
	return prefixEntryKey + string(e.Conversation) + "/" + e.Key
}

// seen finds what an addition's key already stands for.
func seen(txn *badger.Txn, e kernel.QueueEntry) (kernel.QueueEntry, bool, error) {
	if e.Key == "" {
		return e, false, nil
	}
	var u usedKey
	err := getJSON(txn, entryKey(e), &u)
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		return e, false, nil
	case err != nil:
		return e, false, err
	case u.Text != kernel.Sum([]byte(e.Text)):
		return e, false, kernel.E("conversations.AddEntry", kernel.Invalid, nil, "key %q belongs to %s with another text", e.Key, u.Entry).
			WithNext("use another --key")
	}
	got, err := readEntry(txn, u.Entry)
	if kernel.IsKind(err, kernel.NotFound) { // it has left the queue
		e.ID, e.Held, e.Taken = u.Entry, false, false
		return e, true, nil
	}
	return got, err == nil, err
}

// Entries implements kernel.Queue.
func (s *Store) Entries(ctx context.Context, id kernel.ConversationID) (out []kernel.QueueEntry, st kernel.QueueState, err error) {
	err = s.db.View(func(txn *badger.Txn) error {
		q, err := readQueue(txn, id)
		if err != nil {
			return err
		}
		st = q.QueueState
		for _, e := range q.Order {
			got, rerr := readEntry(txn, e)
			if rerr == nil {
				out = append(out, got)
			} else if err == nil {
				err = kernel.E("conversations.Entries", kernel.Corrupt, nil, "entry %s cannot be read", e).
					WithNext("run witan check; remove it from the queue and send it again")
			}
		}
		return err
	})
	return out, st, err
}

// Entry implements kernel.Queue.
func (s *Store) Entry(ctx context.Context, e kernel.EntryID) (got kernel.QueueEntry, err error) {
	err = s.db.View(func(txn *badger.Txn) error { got, err = readEntry(txn, e); return err })
	return got, err
}

// Queues implements kernel.Queue.
func (s *Store) Queues(ctx context.Context) iter.Seq2[kernel.ConversationID, error] {
	return func(yield func(kernel.ConversationID, error) bool) {
		db.Guarded(yield, func(yield func(kernel.ConversationID, error) bool) {
			txn := s.db.NewTransaction(false)
			defer txn.Discard()
			want, err := number(txn, keyQueues)
			if err != nil {
				yield("", err)
				return
			}
			o := badger.DefaultIteratorOptions
			o.PrefetchValues, o.Prefix = false, []byte(prefixQueue)
			it := txn.NewIterator(o)
			defer it.Close()
			var got uint64
			for it.Rewind(); it.Valid(); it.Next() {
				got++
				if !yield(kernel.ConversationID(slices.Clone(it.Item().Key()[len(prefixQueue):])), nil) {
					return
				}
			}
			if got < want {
				yield("", incomplete("queues", got, want))
			}
		})
	}
}
