package conversations

import (
	"context"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
)

// change runs f on a queue in which e waits and stores what it leaves.
func (s *Store) change(n int, id kernel.ConversationID, e kernel.EntryID, f func(*badger.Txn, *queueRow) error) error {
	return s.update(n+4096, func(txn *badger.Txn) error {
		q, err := readQueue(txn, id)
		if err != nil {
			return err
		}
		if !slices.Contains(q.Order, e) {
			return noEntry(e)
		}
		was := len(q.Order)
		if err := f(txn, &q); err != nil {
			return err
		}
		return writeQueue(txn, id, q, was)
	})
}

// free reads an entry that is not on its way.
func free(txn *badger.Txn, id kernel.EntryID) (kernel.QueueEntry, error) {
	e, err := readEntry(txn, id)
	if err == nil && e.Taken {
		err = kernel.E("conversations.queue", kernel.Conflict, nil, "entry %s is being sent", id).WithNext("see witan runs")
	}
	return e, err
}

// drop takes e out of the queue. A damaged or missing row does not keep it in.
func drop(txn *badger.Txn, q *queueRow, e kernel.EntryID) error {
	q.Order = slices.DeleteFunc(q.Order, func(o kernel.EntryID) bool { return o == e })
	return txn.Delete([]byte(prefixEntry + string(e)))
}

// EditEntry implements kernel.Queue.
func (s *Store) EditEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID, text string) error {
	if err := kernel.CheckQueueText("conversations.EditEntry", text); err != nil {
		return err
	}
	return s.change(len(text), id, e, func(txn *badger.Txn, _ *queueRow) error {
		got, err := free(txn, e)
		if err != nil {
			return err
		}
		got.Text = text
		return writeEntry(txn, got)
	})
}

// RemoveEntry implements kernel.Queue.
func (s *Store) RemoveEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID) error {
	return s.change(0, id, e, func(txn *badger.Txn, q *queueRow) error {
		if _, err := free(txn, e); err != nil && !kernel.IsKind(err, kernel.Corrupt) && !kernel.IsKind(err, kernel.NotFound) {
			return err
		}
		return drop(txn, q, e)
	})
}

// MoveEntry implements kernel.Queue.
func (s *Store) MoveEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID, place int) error {
	if place < 1 {
		return kernel.E("conversations.MoveEntry", kernel.Invalid, nil, "place %d does not exist", place).WithNext("places are counted from 1")
	}
	return s.change(0, id, e, func(txn *badger.Txn, q *queueRow) error {
		if _, err := free(txn, e); err != nil {
			return err
		}
		rest := slices.DeleteFunc(q.Order, func(o kernel.EntryID) bool { return o == e })
		q.Order = slices.Insert(rest, min(place-1, len(rest)), e)
		return nil
	})
}

// HoldEntry implements kernel.Queue.
func (s *Store) HoldEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID, held bool) error {
	return s.change(0, id, e, func(txn *badger.Txn, _ *queueRow) error {
		got, err := free(txn, e)
		if err != nil {
			return err
		}
		got.Held = held
		return writeEntry(txn, got)
	})
}

// TakeEntry implements kernel.Queue. A damaged entry stops the queue: what comes
// after it must not go first.
func (s *Store) TakeEntry(ctx context.Context, id kernel.ConversationID) (got kernel.QueueEntry, err error) {
	s.db.At("queue.take.before")
	defer s.db.At("queue.take.after")
	err = s.update(4096, func(txn *badger.Txn) error {
		q, err := readQueue(txn, id)
		if err != nil {
			return err
		}
		var first *kernel.QueueEntry
		for _, o := range q.Order {
			e, err := readEntry(txn, o)
			if err != nil {
				return kernel.E("conversations.TakeEntry", kernel.Corrupt, err, "entry %s cannot be read", o)
			}
			if e.Taken {
				got = e
				return nil
			}
			if first == nil && !e.Held {
				first = &e
			}
		}
		if first == nil || q.Paused {
			return kernel.E("conversations.TakeEntry", kernel.NotFound, nil, "nothing in the queue is to be sent")
		}
		got = *first
		got.Taken = true
		// The row is written too: what changes an entry meanwhile is in conflict with it.
		if err := writeQueue(txn, id, q, len(q.Order)); err != nil {
			return err
		}
		return writeEntry(txn, got)
	})
	return got, err
}

// ReturnEntry implements kernel.Queue.
func (s *Store) ReturnEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID) error {
	return s.change(0, id, e, func(txn *badger.Txn, _ *queueRow) error {
		got, err := readEntry(txn, e)
		if err != nil {
			return err
		}
		got.Taken = false
		return writeEntry(txn, got)
	})
}

// EntryDelivered implements kernel.Queue.
func (s *Store) EntryDelivered(ctx context.Context, id kernel.ConversationID, e kernel.EntryID) error {
	s.db.At("queue.delivered.before")
	defer s.db.At("queue.delivered.after")
	return s.update(4096, func(txn *badger.Txn) error {
		q, err := readQueue(txn, id)
		if err != nil || !slices.Contains(q.Order, e) {
			return err
		}
		was := len(q.Order)
		if err := drop(txn, &q, e); err != nil {
			return err
		}
		return writeQueue(txn, id, q, was)
	})
}

// PauseQueue implements kernel.Queue.
func (s *Store) PauseQueue(ctx context.Context, id kernel.ConversationID, reason, why string) error {
	return s.state(id, func(q *queueRow) {
		if !q.Paused {
			q.QueueState = kernel.QueueState{Paused: true, Reason: reason, Why: why}
		}
	})
}

// ResumeQueue implements kernel.Queue.
func (s *Store) ResumeQueue(ctx context.Context, id kernel.ConversationID) error {
	return s.state(id, func(q *queueRow) { q.QueueState = kernel.QueueState{} })
}

func (s *Store) state(id kernel.ConversationID, f func(*queueRow)) error {
	return s.update(4096, func(txn *badger.Txn) error {
		q, err := readQueue(txn, id)
		if err != nil {
			return err
		}
		f(&q)
		return writeQueue(txn, id, q, len(q.Order))
	})
}
