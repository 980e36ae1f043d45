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
	"maps"
	"slices"

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
func (l *Ledger) Append(ctx context.Context, b kernel.Batch) (_ kernel.Head, _ []kernel.Record, err error) {
	const op = "ledger.Append"
	defer db.Damaged(&err)
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
	seen, _ := l.w.head(b.Run) // before the transaction: other appends go on beside it
	txn := l.db.NewTransaction(true)
	defer txn.Discard()
	got, err := l.headIn(txn, b.Run)
	if err != nil {
		return b.Expect, nil, err
	}
	if got != b.Expect {
		return got, nil, &kernel.Error{Op: op, Kind: kernel.Conflict, Run: b.Run, What: "the head of the run moved"}
	}
	if seen.Seq > got.Seq { // a second chain must not grow where the first was lost
		return got, nil, shorter(op, b.Run, got, seen)
	}
	if err := l.claim(txn, b); err != nil {
		return got, nil, err
	}
	for i, r := range recs {
		err = errors.Join(err, txn.Set(recordKey(b.Run, r.Seq), enc[i]))
	}
	err = errors.Join(err, txn.Set([]byte(prefixHead+b.Run), encodeHead(head)), txn.Set([]byte(prefixSummary+b.Run), sum))
	if err != nil {
		return got, nil, kernel.E(op, kernel.Invalid, err, "the batch is too large").WithNext("append fewer records at once")
	}
	if err := l.db.Commit(txn); err != nil {
		return got, nil, err
	}
	l.db.At("ledger.append.after")
	l.w.note(b.Run, head)
	return head, recs, nil
}

// shorter is the error of a chain that ends before its witness.
func shorter(op string, run kernel.RunID, got, seen kernel.Head) error {
	e := kernel.E(op, kernel.Corrupt, nil, "the ledger of %s ends at record %d; its witness knows %d", run, got.Seq, seen.Seq)
	e.Run = run
	return e.WithNext("run witan check; other runs are not affected")
}

func (l *Ledger) headIn(txn *badger.Txn, run kernel.RunID) (kernel.Head, error) {
	b, err := get(txn, []byte(prefixHead+run))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return kernel.Head{}, nil
	}
	if err != nil {
		e := kernel.E("ledger.Head", kernel.Corrupt, err, "the head of %s cannot be read", run)
		e.Run = run
		return kernel.Head{}, e.WithNext("run witan check; other runs are not affected")
	}
	h, ok := decodeHead(b)
	if !ok {
		return h, &kernel.Error{Op: "ledger.Head", Kind: kernel.Corrupt, Run: run, What: "the head of the run is damaged", Next: "run witan check; other runs are not affected"}
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
func (l *Ledger) claim(txn *badger.Txn, b kernel.Batch) error {
	if b.Key == "" {
		return nil
	}
	k := []byte(prefixKey + b.Key)
	owner, err := get(txn, k)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return txn.Set(k, []byte(b.Run))
	}
	if err != nil {
		return db.DiskError("ledger.Append", l.db.Dir, err)
	}
	if string(owner) != string(b.Run) {
		return kernel.E("ledger.Append", kernel.Exists, nil, "the key is taken by %s", owner)
	}
	return nil
}

// Read implements kernel.Ledger. Where the head is lost, the records that are
// there and that the witness vouches for come before the error: one block of
// the database holds the heads of many runs.
func (l *Ledger) Read(ctx context.Context, run kernel.RunID, from uint64) iter.Seq2[kernel.Record, error] {
	return func(yield func(kernel.Record, error) bool) {
		db.Guarded(yield, func(yield func(kernel.Record, error) bool) {
			seen, _ := l.w.head(run) // before the transaction: appends go on beside it
			txn := l.db.NewTransaction(false)
			defer txn.Discard()
			head, after := l.headIn(txn, run)
			if after == nil && seen.Seq > head.Seq {
				after = shorter("ledger.Read", run, head, seen)
			}
			if after != nil {
				head = seen
			}
			if head.Seq == 0 && after == nil {
				after = kernel.E("ledger.Read", kernel.NotFound, nil, "run %s is unknown", run)
			}
			from = max(from, 1)
			var last kernel.Digest
			for seq := from; seq <= head.Seq; seq++ {
				b, err := get(txn, recordKey(run, seq))
				if errors.Is(err, badger.ErrKeyNotFound) && after != nil {
					break
				}
				var r kernel.Record
				if err == nil {
					r, err = kernel.DecodeRecord(b)
				}
				hash := kernel.HashRecord(b)
				switch {
				case kernel.IsKind(err, kernel.Newer):
				case err != nil:
					err = damaged(run, seq, err, "cannot be read")
				case r.Run != run || r.Seq != seq || seq > from && r.Prev != last || seq == 1 && !r.Prev.IsZero():
					err = damaged(run, seq, nil, "is not the one that belongs there")
				case seq == head.Seq && hash != head.Hash || seq == seen.Seq && hash != seen.Hash:
					err = damaged(run, seq, nil, "does not match its hash")
				}
				if !yield(r, err) || err != nil {
					return
				}
				last = hash
			}
			if after != nil {
				yield(kernel.Record{}, after)
			}
		})
	}
}

// damaged is the error of a record that does not hold.
func damaged(run kernel.RunID, seq uint64, err error, how string) error {
	e := kernel.E("ledger.Read", kernel.Corrupt, err, "record %d of %s %s", seq, run, how)
	e.Run = run
	return e.WithNext("run witan check; other runs are not affected")
}

// Head implements kernel.Ledger.
func (l *Ledger) Head(ctx context.Context, run kernel.RunID) (h kernel.Head, err error) {
	defer db.Damaged(&err)
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	h, err = l.headIn(txn, run)
	if err == nil && h.Seq == 0 {
		err = kernel.E("ledger.Head", kernel.NotFound, nil, "run %s is unknown", run)
	}
	return h, err
}

// ReasonRowDamaged is the reason in a row that stands for one that cannot be read.
const ReasonRowDamaged = "row_damaged"

// Summaries implements kernel.Ledger. A run whose row is damaged or gone has one
// that says so: it must not hide the others, nor be hidden. (Badger ends an
// iteration without an error at a block that it cannot read.)
func (l *Ledger) Summaries(ctx context.Context) iter.Seq2[kernel.RunSummary, error] {
	return func(yield func(kernel.RunSummary, error) bool) {
		db.Guarded(yield, func(yield func(kernel.RunSummary, error) bool) {
			known := l.w.runs() // before the transaction: every one of them is in it
			slices.Sort(known)
			txn := l.db.NewTransaction(false)
			defer txn.Discard()
			o := badger.DefaultIteratorOptions
			o.Reverse, o.PrefetchValues, o.Prefix = true, false, []byte(prefixSummary)
			it := txn.NewIterator(o)
			defer it.Close()
			for it.Seek(append([]byte(prefixSummary), 0xff)); it.ValidForPrefix([]byte(prefixSummary)); it.Next() {
				s, err := decodeSummary(it.Item())
				run := summaryRun(it.Item())
				if err != nil {
					s = damagedRow(run)
				}
				for n := len(known); n > 0 && known[n-1] >= run; n = len(known) {
					gone := known[n-1]
					known = known[:n-1]
					if gone > run && !yield(damagedRow(gone), nil) {
						return
					}
				}
				if !yield(s, nil) {
					return
				}
			}
			for _, gone := range slices.Backward(known) {
				if !yield(damagedRow(gone), nil) {
					return
				}
			}
		})
	}
}

func damagedRow(run kernel.RunID) kernel.RunSummary {
	return kernel.RunSummary{Run: run, Status: kernel.RunInterruptedSt, Reason: ReasonRowDamaged}
}

func summaryRun(it *badger.Item) kernel.RunID {
	return kernel.RunID(bytes.TrimPrefix(it.Key(), []byte(prefixSummary)))
}

func decodeSummary(it *badger.Item) (s kernel.RunSummary, err error) {
	run := summaryRun(it)
	err = it.Value(func(b []byte) error { return json.Unmarshal(b, &s) })
	if err != nil || s.Run != run {
		return kernel.RunSummary{}, &kernel.Error{Op: "ledger.Summaries", Kind: kernel.Corrupt, Run: run, What: "the row of " + string(run) + " is damaged", Next: "run witan check"}
	}
	return s, nil
}

// Summary implements kernel.Ledger.
func (l *Ledger) Summary(ctx context.Context, run kernel.RunID) (s kernel.RunSummary, err error) {
	defer db.Damaged(&err)
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	it, err := txn.Get([]byte(prefixSummary + run))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return kernel.RunSummary{}, kernel.E("ledger.Summary", kernel.NotFound, nil, "run %s is unknown", run)
	}
	if err != nil {
		e := kernel.E("ledger.Summary", kernel.Corrupt, err, "the row of %s cannot be read", run)
		e.Run = run
		return kernel.RunSummary{}, e.WithNext("run witan check; other runs are not affected")
	}
	return decodeSummary(it)
}

// ByKey implements kernel.Ledger.
func (l *Ledger) ByKey(ctx context.Context, key string) (run kernel.RunID, err error) {
	defer db.Damaged(&err)
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	b, err := get(txn, []byte(prefixKey+key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return "", kernel.E("ledger.ByKey", kernel.NotFound, nil, "no run has this key")
	}
	if err != nil {
		return "", db.DiskError("ledger.ByKey", l.db.Dir, err)
	}
	return kernel.RunID(b), nil
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
		err := l.db.View(func(txn *badger.Txn) error {
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
	for _, run := range l.w.runs() {
		runs[run] = true
	}
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		n, err := l.checkRun(ctx, run)
		records += n
		if err != nil {
			row, _ := l.Summary(ctx, run) // may be damaged too
			bad = append(bad, db.Damage{Kind: "record", ID: string(run), Conversation: row.Conversation, Run: run, Reason: err.Error()})
		}
	}
	w, err := readWitness(l.db.Dir) // the file as it is now
	if err != nil {
		return nil, 0, err
	}
	if w.gone && len(runs) > 0 { // it is made before the first record
		bad = append(bad, db.Damage{Kind: "witness", ID: "witness", File: "witness", Reason: "the file is gone: nothing vouches for the ends of the ledgers"})
	}
	for _, why := range w.damaged {
		bad = append(bad, db.Damage{Kind: "witness", ID: "witness", File: "witness", Reason: why})
	}
	return bad, records, nil
}

// checkRun reads a run and gives the number of records before the first error.
func (l *Ledger) checkRun(ctx context.Context, run kernel.RunID) (n int, err error) {
	s := kernel.NewState(run)
	for r, err := range l.Read(ctx, run, 1) {
		if err == nil {
			err = s.Apply(r)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	_, err = l.Summary(ctx, run)
	return n, err
}
