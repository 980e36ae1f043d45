// Package ledger is the append-only record of every run, in Badger, with a
// witness beside it.
//
// Guarantees: Append is one synchronous transaction with a compare-and-set on
// the run's head; Read verifies every hash, the chain, and that it is not
// shorter than the witness remembers. After a crash either the whole batch is
// there or nothing of it; the witness may be behind the ledger, never ahead of it.
package ledger

import (
	"bytes"
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
	prefixRecord  = "l/"
	prefixHead    = "h/"
	prefixSummary = "s/"
	prefixKey     = "k/"
)

// Ledger implements kernel.Ledger.
type Ledger struct {
	db *db.DB
	w  *witness
}

var _ kernel.Ledger = (*Ledger)(nil)

// Open returns the ledger of an open data directory.
func Open(d *db.DB) (*Ledger, error) {
	w, err := openWitness(d.Dir)
	if err != nil {
		return nil, err
	}
	return &Ledger{d, w}, nil
}

// OpenView returns a ledger for reading only.
func OpenView(d *db.DB) (*Ledger, error) {
	w, err := readWitness(d.Dir)
	return &Ledger{d, w}, err
}

// Close closes the witness.
func (l *Ledger) Close() error { return l.w.close() }

func recordKey(run kernel.RunID, seq uint64) []byte {
	k := append([]byte(prefixRecord), run...)
	return binary.BigEndian.AppendUint64(append(k, '/'), seq)
}

func encodeHead(h kernel.Head) []byte {
	return append(binary.BigEndian.AppendUint64(nil, h.Seq), h.Hash[:]...)
}

func decodeHead(b []byte) (kernel.Head, bool) {
	var h kernel.Head
	if len(b) != 8+len(h.Hash) {
		return h, false
	}
	h.Seq = binary.BigEndian.Uint64(b)
	copy(h.Hash[:], b[8:])
	return h, true
}

// Append implements kernel.Ledger.
func (l *Ledger) Append(ctx context.Context, b kernel.Batch) (kernel.Head, []kernel.Record, error) {
	const op = "ledger.Append"
	recs, enc, head, err := kernel.Chain(b.Expect, b.Records)
	if err != nil {
		return b.Expect, nil, err
	}
	sum, err := json.Marshal(b.Summary)
	if err != nil {
		return b.Expect, nil, err
	}
	size := int64(len(sum))
	for _, e := range enc {
		size += int64(len(e))
	}
	if err := l.db.Guard(size); err != nil {
		return b.Expect, nil, err
	}
	l.db.At("ledger.append.before")
	txn := l.db.NewTransaction(true)
	defer txn.Discard()
	got, err := headIn(txn, b.Run)
	if err != nil {
		return b.Expect, nil, err
	}
	if got != b.Expect {
		return got, nil, &kernel.Error{Op: op, Kind: kernel.Conflict, Run: b.Run, What: "the head of the run moved"}
	}
	if err := claim(txn, b); err != nil {
		return got, nil, err
	}
	for i, r := range recs {
		err = errors.Join(err, txn.Set(recordKey(b.Run, r.Seq), enc[i]))
	}
	err = errors.Join(err, txn.Set([]byte(prefixHead+b.Run), encodeHead(head)), txn.Set([]byte(prefixSummary+b.Run), sum))
	if err != nil {
		return got, nil, kernel.E(op, kernel.Internal, err, "the batch is too large")
	}
	if err := l.db.Commit(txn); err != nil {
		return got, nil, err
	}
	l.db.At("ledger.append.after")
	return head, recs, l.w.note(b.Run, head)
}

func headIn(txn *badger.Txn, run kernel.RunID) (kernel.Head, error) {
	b, err := get(txn, []byte(prefixHead+run))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return kernel.Head{}, nil
	}
	if err != nil {
		return kernel.Head{}, err
	}
	h, ok := decodeHead(b)
	if !ok {
		return h, &kernel.Error{Op: "ledger.Head", Kind: kernel.Corrupt, Run: run, What: "the head of the run is damaged"}
	}
	return h, nil
}

func get(txn *badger.Txn, k []byte) ([]byte, error) {
	it, err := txn.Get(k)
	if err != nil {
		return nil, err
	}
	return it.ValueCopy(nil)
}

// claim takes the idempotency key for the run, or finds it taken.
func claim(txn *badger.Txn, b kernel.Batch) error {
	if b.Key == "" {
		return nil
	}
	k := []byte(prefixKey + b.Key)
	owner, err := get(txn, k)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return txn.Set(k, []byte(b.Run))
	}
	if err == nil && string(owner) != string(b.Run) {
		return kernel.E("ledger.Append", kernel.Exists, nil, "the key is taken by %s", owner)
	}
	return err
}

// Read implements kernel.Ledger.
func (l *Ledger) Read(ctx context.Context, run kernel.RunID, from uint64) iter.Seq2[kernel.Record, error] {
	return func(yield func(kernel.Record, error) bool) {
		txn := l.db.NewTransaction(false)
		defer txn.Discard()
		bad := func(what string, args ...any) {
			e := kernel.E("ledger.Read", kernel.Corrupt, nil, what, args...)
			e.Run = run
			yield(kernel.Record{}, e.WithNext("run witan check; other runs are not affected"))
		}
		head, err := headIn(txn, run)
		seen, known := l.w.head(run)
		if err != nil {
			yield(kernel.Record{}, err)
			return
		}
		if head.Seq == 0 {
			if known {
				bad("the ledger of %s is gone; its witness knows %d records", run, seen.Seq)
				return
			}
			yield(kernel.Record{}, kernel.E("ledger.Read", kernel.NotFound, nil, "run %s is unknown", run))
			return
		}
		if known && seen.Seq > head.Seq {
			bad("the ledger of %s ends at record %d; its witness knows %d", run, head.Seq, seen.Seq)
			return
		}
		from = max(from, 1)
		var last kernel.Digest
		for seq := from; seq <= head.Seq; seq++ {
			b, err := get(txn, recordKey(run, seq))
			if err != nil {
				bad("record %d of %s is missing", seq, run)
				return
			}
			r, err := kernel.DecodeRecord(b)
			if err != nil && kernel.IsKind(err, kernel.Newer) {
				yield(r, err)
				return
			}
			if err != nil || r.Run != run || r.Seq != seq || seq > from && r.Prev != last || seq == 1 && !r.Prev.IsZero() {
				bad("record %d of %s is damaged", seq, run)
				return
			}
			last = kernel.HashRecord(b)
			if seq == head.Seq && last != head.Hash || known && seq == seen.Seq && last != seen.Hash {
				bad("record %d of %s does not match its hash", seq, run)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Head implements kernel.Ledger.
func (l *Ledger) Head(ctx context.Context, run kernel.RunID) (kernel.Head, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	h, err := headIn(txn, run)
	if err == nil && h.Seq == 0 {
		err = kernel.E("ledger.Head", kernel.NotFound, nil, "run %s is unknown", run)
	}
	return h, err
}

// Summaries implements kernel.Ledger.
func (l *Ledger) Summaries(ctx context.Context) iter.Seq2[kernel.RunSummary, error] {
	return func(yield func(kernel.RunSummary, error) bool) {
		txn := l.db.NewTransaction(false)
		defer txn.Discard()
		o := badger.DefaultIteratorOptions
		o.Reverse, o.PrefetchValues, o.Prefix = true, false, []byte(prefixSummary)
		it := txn.NewIterator(o)
		defer it.Close()
		for it.Seek(append([]byte(prefixSummary), 0xff)); it.ValidForPrefix([]byte(prefixSummary)); it.Next() {
			s, err := decodeSummary(it.Item())
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

func decodeSummary(it *badger.Item) (s kernel.RunSummary, err error) {
	run := kernel.RunID(bytes.TrimPrefix(it.Key(), []byte(prefixSummary)))
	err = it.Value(func(b []byte) error { return json.Unmarshal(b, &s) })
	if err != nil || s.Run != run {
		return s, &kernel.Error{Op: "ledger.Summaries", Kind: kernel.Corrupt, Run: run, What: "the row of " + string(run) + " is damaged", Next: "run witan check"}
	}
	return s, nil
}

// Summary implements kernel.Ledger.
func (l *Ledger) Summary(ctx context.Context, run kernel.RunID) (kernel.RunSummary, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	it, err := txn.Get([]byte(prefixSummary + run))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return kernel.RunSummary{}, kernel.E("ledger.Summary", kernel.NotFound, nil, "run %s is unknown", run)
	}
	if err != nil {
		return kernel.RunSummary{}, err
	}
	return decodeSummary(it)
}

// ByKey implements kernel.Ledger.
func (l *Ledger) ByKey(ctx context.Context, key string) (kernel.RunID, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	b, err := get(txn, []byte(prefixKey+key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return "", kernel.E("ledger.ByKey", kernel.NotFound, nil, "no run has this key")
	}
	return kernel.RunID(b), err
}

// Witness implements kernel.Ledger.
func (l *Ledger) Witness(ctx context.Context) error {
	l.db.At("ledger.witness")
	return l.w.sync()
}

// Check reads every run's chain and gives what does not hold, with the number
// of records that do. Runs that only the witness knows are named too.
func (l *Ledger) Check(ctx context.Context) (bad []db.Damage, records int, err error) {
	runs := map[kernel.RunID]bool{}
	for _, prefix := range []string{prefixHead, prefixSummary} {
		err := l.db.DB.View(func(txn *badger.Txn) error {
			o := badger.DefaultIteratorOptions
			o.PrefetchValues, o.Prefix = false, []byte(prefix)
			it := txn.NewIterator(o)
			defer it.Close()
			for it.Rewind(); it.Valid(); it.Next() {
				runs[kernel.RunID(bytes.TrimPrefix(it.Item().KeyCopy(nil), []byte(prefix)))] = true
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	for run := range l.w.all() {
		runs[run] = true
	}
	for run := range runs {
		s := kernel.NewState(run)
		for r, err := range l.Read(ctx, run, 1) {
			if err == nil {
				err = s.Apply(r)
			}
			if err != nil {
				bad = append(bad, db.Damage{Kind: "record", ID: string(run), Reason: err.Error()})
				break
			}
			records++
		}
		if _, err := l.Summary(ctx, run); err != nil && len(bad) == 0 {
			bad = append(bad, db.Damage{Kind: "record", ID: string(run), Reason: err.Error()})
		}
	}
	for _, why := range l.w.damaged {
		bad = append(bad, db.Damage{Kind: "witness", ID: "witness", File: "witness", Reason: why})
	}
	return bad, records, nil
}
