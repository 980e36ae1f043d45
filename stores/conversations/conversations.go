// Package conversations stores threads, messages, native sessions and the text
// of running attempts in Badger.
//
// Every write is one synchronous transaction. After a crash a message is there
// whole or not at all; stream chunks are there in order up to some point. Lists
// are counted, because Badger ends an iteration without an error at a block
// that it cannot read: a list that is not complete ends with a Corrupt error.
package conversations

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/stores/db"
)

// Key prefixes.
const (
	prefixConv    = "c/"
	keyTotal      = "ct"  // number of conversations
	prefixCount   = "cn/" // messages of a conversation
	prefixMessage = "m/"
	prefixPlace   = "mi/" // message id to its TurnSeq
	prefixTurn    = "t/"  // claim to first number
	prefixNext    = "tn/" // last number handed out
	prefixSession = "n/"
	prefixStream  = "x/"
)

// Store implements kernel.Conversations and kernel.Streams.
type Store struct{ db *db.DB }

var (
	_ kernel.Conversations = (*Store)(nil)
	_ kernel.Streams       = (*Store)(nil)
)

// Open returns the conversations of an open data directory.
func Open(d *db.DB) *Store { return &Store{d} }

// update runs f in a transaction of about n bytes, again when another writer of
// this host came first: each conflict means that somebody's write succeeded.
func (s *Store) update(n int, f func(txn *badger.Txn) error) error {
	if err := s.db.Guard(int64(n)); err != nil {
		return err
	}
	for {
		if again, err := s.try(f); !again {
			return err
		}
	}
}

func (s *Store) try(f func(txn *badger.Txn) error) (again bool, err error) {
	defer db.Damaged(&err)
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := f(txn); err != nil {
		return false, err
	}
	err = s.db.Commit(txn)
	return kernel.IsKind(err, kernel.Conflict), err
}

func getJSON(txn *badger.Txn, key string, v any) error {
	it, err := txn.Get([]byte(key))
	if err != nil {
		return err
	}
	return it.Value(func(b []byte) error {
		if err := json.Unmarshal(b, v); err != nil {
			return kernel.E("conversations.get", kernel.Corrupt, err, "entry %s is damaged", key).WithNext("run witan check")
		}
		return nil
	})
}

func setJSON(txn *badger.Txn, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return txn.Set([]byte(key), b)
}

func number(txn *badger.Txn, key string) (uint64, error) {
	it, err := txn.Get([]byte(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var n uint64
	err = it.Value(func(b []byte) error {
		if len(b) != 8 {
			return kernel.E("conversations.number", kernel.Corrupt, nil, "entry %s is damaged", key).WithNext("run witan check")
		}
		n = binary.BigEndian.Uint64(b)
		return nil
	})
	return n, err
}

func setNumber(txn *badger.Txn, key string, n uint64) error {
	return txn.Set([]byte(key), binary.BigEndian.AppendUint64(nil, n))
}

func increase(txn *badger.Txn, key string) error {
	n, err := number(txn, key)
	if err != nil {
		return err
	}
	return setNumber(txn, key, n+1)
}

// incomplete is the error at the end of a list that lacks something.
func incomplete(what string, got, want uint64) error {
	return kernel.E("conversations", kernel.Corrupt, nil, "%d of %d %s cannot be read", want-got, want, what).
		WithNext("run witan check; the others are as they were")
}

func unknown(id kernel.ConversationID) error {
	return kernel.E("conversations", kernel.NotFound, nil, "conversation %s is unknown", id).WithNext("see witan conversations")
}

func have(txn *badger.Txn, id kernel.ConversationID) error {
	_, err := txn.Get([]byte(prefixConv + string(id)))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return unknown(id)
	}
	return err
}

// PutConversation implements kernel.Conversations.
func (s *Store) PutConversation(ctx context.Context, c kernel.Conversation) error {
	return s.update(4096, func(txn *badger.Txn) error {
		_, err := txn.Get([]byte(prefixConv + string(c.ID)))
		if errors.Is(err, badger.ErrKeyNotFound) {
			err = increase(txn, keyTotal)
		}
		if err != nil {
			return err
		}
		return setJSON(txn, prefixConv+string(c.ID), c)
	})
}

// Conversation implements kernel.Conversations.
func (s *Store) Conversation(ctx context.Context, id kernel.ConversationID) (c kernel.Conversation, err error) {
	err = s.db.View(func(txn *badger.Txn) error { c, err = read(txn, id); return err })
	return c, err
}

func read(txn *badger.Txn, id kernel.ConversationID) (c kernel.Conversation, err error) {
	err = getJSON(txn, prefixConv+string(id), &c)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return c, unknown(id)
	}
	if err != nil {
		return c, err
	}
	n, err := number(txn, prefixCount+string(id))
	c.Messages = int(n)
	return c, err
}

// Conversations implements kernel.Conversations.
func (s *Store) Conversations(ctx context.Context) iter.Seq2[kernel.Conversation, error] {
	return func(yield func(kernel.Conversation, error) bool) {
		db.Guarded(yield, func(yield func(kernel.Conversation, error) bool) {
			txn := s.db.NewTransaction(false)
			defer txn.Discard()
			want, err := number(txn, keyTotal)
			if err != nil {
				yield(kernel.Conversation{}, err)
				return
			}
			o := badger.DefaultIteratorOptions
			o.Reverse, o.PrefetchValues, o.Prefix = true, false, []byte(prefixConv)
			it := txn.NewIterator(o)
			defer it.Close()
			var got uint64
			for it.Seek(append([]byte(prefixConv), 0xff)); it.ValidForPrefix([]byte(prefixConv)); it.Next() {
				c, err := read(txn, kernel.ConversationID(it.Item().Key()[len(prefixConv):]))
				if err != nil {
					continue // counted below; it must not hide the others
				}
				got++
				if !yield(c, nil) {
					return
				}
			}
			if got < want {
				yield(kernel.Conversation{}, incomplete("conversations", got, want))
			}
		})
	}
}

func messageKey(id kernel.ConversationID, turn uint64, m kernel.MessageID) string {
	k := append([]byte(prefixMessage), id...)
	k = binary.BigEndian.AppendUint64(append(k, '/'), turn)
	return string(append(k, m...))
}

// PutMessage implements kernel.Conversations.
func (s *Store) PutMessage(ctx context.Context, m kernel.Message) error {
	return s.update(8192, func(txn *badger.Txn) error {
		if err := have(txn, m.Conversation); err != nil {
			return err
		}
		place := prefixPlace + string(m.Conversation) + "/" + string(m.ID)
		old, err := number(txn, place)
		if err != nil {
			return err
		}
		switch {
		case old == 0:
			if err := increase(txn, prefixCount+string(m.Conversation)); err != nil {
				return err
			}
		case old != m.TurnSeq+1:
			if err := txn.Delete([]byte(messageKey(m.Conversation, old-1, m.ID))); err != nil {
				return err
			}
		}
		if err := setNumber(txn, place, m.TurnSeq+1); err != nil {
			return err
		}
		return setJSON(txn, messageKey(m.Conversation, m.TurnSeq, m.ID), m)
	})
}

// Messages implements kernel.Conversations.
func (s *Store) Messages(ctx context.Context, id kernel.ConversationID, from uint64) iter.Seq2[kernel.Message, error] {
	return func(yield func(kernel.Message, error) bool) {
		db.Guarded(yield, func(yield func(kernel.Message, error) bool) {
			txn := s.db.NewTransaction(false)
			defer txn.Discard()
			if err := have(txn, id); err != nil {
				yield(kernel.Message{}, err)
				return
			}
			want, err := number(txn, prefixCount+string(id))
			if err != nil {
				yield(kernel.Message{}, err)
				return
			}
			prefix := []byte(prefixMessage + string(id) + "/")
			o := badger.DefaultIteratorOptions
			o.PrefetchValues, o.Prefix = false, prefix
			it := txn.NewIterator(o)
			defer it.Close()
			var got uint64
			for it.Rewind(); it.Valid(); it.Next() {
				if turn := binary.BigEndian.Uint64(it.Item().Key()[len(prefix):]); turn < from {
					got++
					continue
				}
				var m kernel.Message
				if it.Item().Value(func(b []byte) error { return json.Unmarshal(b, &m) }) != nil {
					continue // counted below; it must not hide the others
				}
				got++
				if !yield(m, nil) {
					return
				}
			}
			if got < want {
				yield(kernel.Message{}, incomplete("messages of "+string(id), got, want))
			}
		})
	}
}

// ReserveTurns implements kernel.Conversations.
func (s *Store) ReserveTurns(ctx context.Context, id kernel.ConversationID, claim string, n int) (first uint64, err error) {
	key := prefixTurn + string(id) + "/" + claim
	err = s.db.View(func(txn *badger.Txn) error { first, err = number(txn, key); return err })
	if err != nil || first > 0 {
		return first, err
	}
	err = s.update(512, func(txn *badger.Txn) (err error) {
		if err := have(txn, id); err != nil {
			return err
		}
		if first, err = number(txn, key); err != nil || first > 0 {
			return err
		}
		last, err := number(txn, prefixNext+string(id))
		if err != nil {
			return err
		}
		first = last + 1
		if err := setNumber(txn, key, first); err != nil {
			return err
		}
		return setNumber(txn, prefixNext+string(id), last+uint64(n))
	})
	return first, err
}

func sessionKey(id kernel.ConversationID, a kernel.AgentID) string {
	return prefixSession + string(id) + "/" + string(a)
}

// Session implements kernel.Conversations.
func (s *Store) Session(ctx context.Context, id kernel.ConversationID, a kernel.AgentID) (v kernel.Session, err error) {
	err = s.db.View(func(txn *badger.Txn) error { return getJSON(txn, sessionKey(id, a), &v) })
	if errors.Is(err, badger.ErrKeyNotFound) {
		err = kernel.E("conversations.Session", kernel.NotFound, nil, "%s has no session", a)
	}
	return v, err
}

// PutSession implements kernel.Conversations.
func (s *Store) PutSession(ctx context.Context, id kernel.ConversationID, a kernel.AgentID, v kernel.Session) error {
	return s.update(1024, func(txn *badger.Txn) error {
		if err := have(txn, id); err != nil {
			return err
		}
		return setJSON(txn, sessionKey(id, a), v)
	})
}

// ForgetSession implements kernel.Conversations.
func (s *Store) ForgetSession(ctx context.Context, id kernel.ConversationID, a kernel.AgentID) error {
	return s.update(64, func(txn *badger.Txn) error { return txn.Delete([]byte(sessionKey(id, a))) })
}

// AppendStream implements kernel.Streams.
func (s *Store) AppendStream(ctx context.Context, a kernel.AttemptID, chunk []byte) error {
	const most = 512 << 10 // of one value; longer chunks are split
	for len(chunk) > 0 {
		part := chunk[:min(len(chunk), most)]
		chunk = chunk[len(part):]
		err := s.update(len(part), func(txn *badger.Txn) error {
			n, err := number(txn, prefixStream+string(a))
			if err != nil {
				return err
			}
			if err := setNumber(txn, prefixStream+string(a), n+1); err != nil {
				return err
			}
			return txn.Set(chunkKey(a, n), part)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func chunkKey(a kernel.AttemptID, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(prefixStream+string(a)+"/"), n)
}

// ReadStream implements kernel.Streams.
func (s *Store) ReadStream(ctx context.Context, a kernel.AttemptID) (out []byte, err error) {
	err = s.db.View(func(txn *badger.Txn) error {
		n, err := number(txn, prefixStream+string(a))
		for i := uint64(0); i < n && err == nil; i++ {
			var it *badger.Item
			if it, err = txn.Get(chunkKey(a, i)); err == nil {
				err = it.Value(func(b []byte) error { out = append(out, b...); return nil })
			}
		}
		return err
	})
	return out, err
}

// DropStream implements kernel.Streams. It deletes from the end, so that a crash
// in the middle leaves a shorter stream.
func (s *Store) DropStream(ctx context.Context, a kernel.AttemptID) error {
	const most = 1000 // chunks of one transaction, which Badger bounds
	var n uint64
	err := s.db.View(func(txn *badger.Txn) (err error) { n, err = number(txn, prefixStream+string(a)); return err })
	for n > 0 && err == nil {
		err = s.update(64, func(txn *badger.Txn) error {
			if n, err = number(txn, prefixStream+string(a)); err != nil {
				return err
			}
			left := n - min(n, most)
			for i := left; i < n; i++ {
				if err := txn.Delete(chunkKey(a, i)); err != nil {
					return err
				}
			}
			n = left
			if n == 0 {
				return txn.Delete([]byte(prefixStream + string(a)))
			}
			return setNumber(txn, prefixStream+string(a), n)
		})
	}
	return err
}
