package kerneltest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"witan/kernel"
)

// epoch is the time of everything the suites write.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// Run gives the nth run id of a suite; ids sort by n.
func Run(n int) kernel.RunID { return kernel.RunID(fmt.Sprintf("%s%020d", kernel.RunPrefix, n)) }

// Notices gives n records for Append, each with text in its body.
func Notices(run kernel.RunID, n int, text string) []kernel.Record {
	recs := make([]kernel.Record, n)
	for i := range recs {
		recs[i] = kernel.Record{Run: run, At: epoch, Kind: kernel.NoticeRec, Body: []byte(fmt.Sprintf(`{"code":"test","text":%q}`, text))}
	}
	return recs
}

// Batch is an append of n notices behind head.
func Batch(run kernel.RunID, head kernel.Head, n int, text string) kernel.Batch {
	return kernel.Batch{Run: run, Expect: head, Records: Notices(run, n, text),
		Summary: kernel.RunSummary{Run: run, Conversation: "conv_1", Status: kernel.RunRunning, Plan: "ask", Created: epoch}}
}

// collect reads a sequence to its end or first error.
func collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for v, err := range seq {
		if err != nil {
			return out, err
		}
		out = append(out, v)
	}
	return out, nil
}

// wantKind fails unless err is of the kind.
func wantKind(t *testing.T, err error, k kernel.Kind) {
	t.Helper()
	if !kernel.IsKind(err, k) {
		t.Fatalf("error is %v, want kind %q", err, k)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// ok fails on an error.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLedger is the conformance suite of kernel.Ledger; open gives an empty one.
func TestLedger(t *testing.T, open func(t *testing.T) kernel.Ledger) {
	ctx := context.Background()
	for name, test := range map[string]func(*testing.T, context.Context, kernel.Ledger){
		"chain": ledgerChain, "conflict": ledgerConflict, "key": ledgerKey, "unknown": ledgerUnknown,
		"limit": ledgerLimit, "summaries": ledgerSummaries, "concurrent": ledgerConcurrent, "early end": ledgerEarlyEnd,
	} {
		t.Run(name, func(t *testing.T) { test(t, ctx, open(t)) })
	}
}

func add(t *testing.T, ctx context.Context, l kernel.Ledger, b kernel.Batch) kernel.Head {
	t.Helper()
	h, _, err := l.Append(ctx, b)
	ok(t, err)
	return h
}

func ledgerChain(t *testing.T, ctx context.Context, l kernel.Ledger) {
	var head kernel.Head
	var want []kernel.Record
	for i, text := range []string{"plain", "zero \x00 byte, quote \" and ü", strings.Repeat("long ", 2000)} {
		h, recs, err := l.Append(ctx, Batch(Run(1), head, i+1, fmt.Sprintf("%x", text)))
		ok(t, err)
		if len(recs) != i+1 || h.Seq != head.Seq+uint64(i+1) {
			t.Fatalf("append of %d gave %d records and head %d after %d", i+1, len(recs), h.Seq, head.Seq)
		}
		head, want = h, append(want, recs...)
		ok(t, l.Witness(ctx))
	}
	if got := must[kernel.Head](t)(l.Head(ctx, Run(1))); got != head {
		t.Fatalf("head is %v, want %v", got, head)
	}
	for from := range head.Seq + 2 {
		got := must[[]kernel.Record](t)(collect(l.Read(ctx, Run(1), from)))
		skip := int(max(from, 1)) - 1
		if len(got) != len(want)-skip {
			t.Fatalf("read from %d gave %d records, want %d", from, len(got), len(want)-skip)
		}
		for i, r := range got {
			if w := want[skip+i]; string(r.Encode()) != string(w.Encode()) {
				t.Fatalf("record is %s, want %s", r.Encode(), w.Encode())
			}
		}
	}
	var prev kernel.Head
	for _, r := range want {
		if r.Prev != prev.Hash || r.Seq != prev.Seq+1 {
			t.Fatalf("record %d does not follow %d", r.Seq, prev.Seq)
		}
		prev = kernel.Head{Seq: r.Seq, Hash: kernel.HashRecord(r.Encode())}
	}
	if prev != head {
		t.Fatalf("the chain ends at %v, the head is %v", prev, head)
	}
}

func ledgerConflict(t *testing.T, ctx context.Context, l kernel.Ledger) {
	first := add(t, ctx, l, Batch(Run(1), kernel.Head{}, 1, "a"))
	second := add(t, ctx, l, Batch(Run(1), first, 1, "b"))
	wrong := second
	wrong.Hash[0] ^= 1
	for _, expect := range []kernel.Head{{}, first, wrong, {Seq: second.Seq + 1, Hash: second.Hash}} {
		b := Batch(Run(1), expect, 1, "c")
		b.Key, b.Summary.Title = "unused", "changed"
		_, _, err := l.Append(ctx, b)
		wantKind(t, err, kernel.Conflict)
	}
	if got := must[kernel.Head](t)(l.Head(ctx, Run(1))); got != second {
		t.Fatalf("a refused append moved the head to %v", got)
	}
	if s := must[kernel.RunSummary](t)(l.Summary(ctx, Run(1))); s.Title != "" {
		t.Fatal("a refused append changed the summary")
	}
	_, err := l.ByKey(ctx, "unused")
	wantKind(t, err, kernel.NotFound)
}

func ledgerKey(t *testing.T, ctx context.Context, l kernel.Ledger) {
	b := Batch(Run(1), kernel.Head{}, 1, "a")
	b.Key = "key/with\xffbytes"
	head := add(t, ctx, l, b)
	if got := must[kernel.RunID](t)(l.ByKey(ctx, b.Key)); got != Run(1) {
		t.Fatalf("the key belongs to %s", got)
	}
	again := Batch(Run(1), head, 1, "b")
	again.Key = b.Key
	add(t, ctx, l, again) // the owner may name it again
	other := Batch(Run(2), kernel.Head{}, 1, "c")
	other.Key = b.Key
	_, _, err := l.Append(ctx, other)
	wantKind(t, err, kernel.Exists)
	_, err = l.Head(ctx, Run(2))
	wantKind(t, err, kernel.NotFound)
	_, err = l.Summary(ctx, Run(2))
	wantKind(t, err, kernel.NotFound)
}

func ledgerUnknown(t *testing.T, ctx context.Context, l kernel.Ledger) {
	_, err := l.Head(ctx, Run(9))
	wantKind(t, err, kernel.NotFound)
	_, err = collect(l.Read(ctx, Run(9), 1))
	wantKind(t, err, kernel.NotFound)
	_, err = l.Summary(ctx, Run(9))
	wantKind(t, err, kernel.NotFound)
	_, err = l.ByKey(ctx, "none")
	wantKind(t, err, kernel.NotFound)
	if got := must[[]kernel.RunSummary](t)(collect(l.Summaries(ctx))); len(got) != 0 {
		t.Fatalf("an empty ledger lists %d runs", len(got))
	}
}

func ledgerLimit(t *testing.T, ctx context.Context, l kernel.Ledger) {
	head := add(t, ctx, l, Batch(Run(1), kernel.Head{}, 1, strings.Repeat("x", kernel.MaxRecordBytes-1000)))
	b := Batch(Run(1), head, 2, "small")
	b.Records[1].Body = Notices(Run(1), 1, strings.Repeat("x", kernel.MaxRecordBytes))[0].Body
	_, _, err := l.Append(ctx, b)
	wantKind(t, err, kernel.Invalid)
	if got := must[[]kernel.Record](t)(collect(l.Read(ctx, Run(1), 1))); len(got) != 1 {
		t.Fatalf("%d records after a refused batch, want 1", len(got))
	}
}

func ledgerSummaries(t *testing.T, ctx context.Context, l kernel.Ledger) {
	for _, n := range []int{3, 1, 2} {
		head := add(t, ctx, l, Batch(Run(n), kernel.Head{}, 1, "a"))
		b := Batch(Run(n), head, 1, "b")
		b.Summary.Title = fmt.Sprint("title ", n)
		add(t, ctx, l, b)
	}
	got := must[[]kernel.RunSummary](t)(collect(l.Summaries(ctx)))
	if len(got) != 3 {
		t.Fatalf("%d runs listed, want 3", len(got))
	}
	for i, s := range got {
		if n := 3 - i; s.Run != Run(n) || s.Title != fmt.Sprint("title ", n) || !s.Created.Equal(epoch) {
			t.Fatalf("row %d is %+v", i, s)
		}
	}
}

// ledgerConcurrent: of two appends that expect the same head one wins.
func ledgerConcurrent(t *testing.T, ctx context.Context, l kernel.Ledger) {
	const writers, each = 4, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				for {
					head, err := l.Head(ctx, Run(1))
					if err != nil && !kernel.IsKind(err, kernel.NotFound) {
						t.Error(err)
						return
					}
					_, _, err = l.Append(ctx, Batch(Run(1), head, 1, fmt.Sprint(w, i)))
					if err == nil {
						break
					}
					if !kernel.IsKind(err, kernel.Conflict) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if got := must[[]kernel.Record](t)(collect(l.Read(ctx, Run(1), 1))); len(got) != writers*each {
		t.Fatalf("%d records, want %d", len(got), writers*each)
	}
}

// ledgerEarlyEnd: a reader may stop, and may append while it reads.
func ledgerEarlyEnd(t *testing.T, ctx context.Context, l kernel.Ledger) {
	head := add(t, ctx, l, Batch(Run(1), kernel.Head{}, 5, "a"))
	n := 0
	for _, err := range l.Read(ctx, Run(1), 1) {
		ok(t, err)
		if n++; n == 2 {
			head = add(t, ctx, l, Batch(Run(1), head, 1, "b"))
			break
		}
	}
	for range l.Summaries(ctx) {
		break
	}
	if got := must[[]kernel.Record](t)(collect(l.Read(ctx, Run(1), 1))); len(got) != 6 || head.Seq != 6 {
		t.Fatalf("%d records, head %d, want 6", len(got), head.Seq)
	}
}
