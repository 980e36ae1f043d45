package kerneltest_test

import (
	"context"
	"errors"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
)

// Without a plan the decorators change nothing.
func TestFaultsConform(t *testing.T) {
	f := kerneltest.NewFaults()
	kerneltest.TestLedger(t, func(*testing.T) kernel.Ledger { return f.Ledger(kerneltest.NewMem()) })
	kerneltest.TestPacks(t, func(*testing.T) kernel.Packs { return f.Packs(kerneltest.NewMem()) })
	kerneltest.TestConversations(t, func(*testing.T) kernel.Conversations { return f.Conversations(kerneltest.NewMem()) })
	kerneltest.TestStreams(t, func(*testing.T) kernel.Streams { return f.Streams(kerneltest.NewMem()) })
	kerneltest.TestQueue(t, func(*testing.T) kerneltest.QueueStore {
		m := kerneltest.NewMem()
		return kerneltest.QueueStore{Queue: f.Queue(m), Conversations: m}
	})
}

func TestFaults(t *testing.T) {
	ctx := context.Background()
	broken := errors.New("broken")
	f := kerneltest.NewFaults()
	l, p := f.Ledger(kerneltest.NewMem()), f.Packs(kerneltest.NewMem())
	f.Fail("Append", 2, broken)
	head, _, err := l.Append(ctx, kerneltest.Batch(kerneltest.Run(1), kernel.Head{}, 1, "a"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{broken, nil} {
		if _, _, err := l.Append(ctx, kerneltest.Batch(kerneltest.Run(1), head, 1, "b")); !errors.Is(err, want) {
			t.Fatalf("append %d: %v, want %v", i+2, err, want)
		}
	}
	if n := f.Calls("Append"); n != 3 {
		t.Fatalf("%d calls, want 3", n)
	}
	f.Fail("Summaries", 0, broken)
	for range 2 {
		for _, err := range l.Summaries(ctx) {
			if !errors.Is(err, broken) {
				t.Fatalf("summaries: %v", err)
			}
		}
	}
	f.Fail("PackWriter.Add", 1, broken)
	w, err := p.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // after the first error only Abort works
		if _, err := w.Add("text", []byte("a")); !errors.Is(err, broken) {
			t.Fatalf("add: %v", err)
		}
	}
	if err := w.Seal(); !errors.Is(err, broken) {
		t.Fatalf("seal: %v", err)
	}
	w.Abort()
}
