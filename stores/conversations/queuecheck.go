package conversations

import (
	"context"
	"errors"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/stores/db"
)

// CheckQueues reads every queue and each of its entries and names what cannot be
// read; checked counts the entries.
func (s *Store) CheckQueues(ctx context.Context) (bad []db.Damage, checked int, err error) {
	for id, err := range s.Queues(ctx) {
		if kernel.IsKind(err, kernel.Corrupt) {
			return append(bad, db.Damage{Kind: "record", ID: "queues", Reason: err.Error()}), checked, nil
		}
		if err != nil {
			return bad, checked, err
		}
		more, n, err := s.checkQueue(id)
		if err != nil {
			return bad, checked, err
		}
		bad, checked = append(bad, more...), checked+n
	}
	return bad, checked, nil
}

func (s *Store) checkQueue(id kernel.ConversationID) (bad []db.Damage, n int, err error) {
	damage := func(what string, err error) {
		bad = append(bad, db.Damage{Kind: "record", ID: what, Conversation: id, Reason: err.Error()})
	}
	err = s.db.View(func(txn *badger.Txn) error {
		var q queueRow
		err := getJSON(txn, prefixQueue+string(id), &q)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil // it has become empty meanwhile
		}
		if err != nil {
			damage(string(id), err)
			return nil
		}
		for _, e := range q.Order {
			n++
			got, err := readEntry(txn, e)
			if err == nil && got.Conversation != id {
				err = kernel.E("conversations.CheckQueues", kernel.Corrupt, nil, "it belongs to %s", got.Conversation)
			}
			if err != nil {
				damage(string(e), err)
			}
		}
		return nil
	})
	return bad, n, err
}
