package kerneltest

import (
	"context"
	"io"
	"iter"
	"sync"

	"witan/kernel"
)

// Faults decides which calls of the decorated stores fail. A call that fails
// does not reach the store. It may be used by several goroutines.
type Faults struct {
	mu    sync.Mutex
	plan  map[string]map[int]error // method to number of the call to error; guarded by mu
	calls map[string]int           // guarded by mu
}

// NewFaults returns a plan in which nothing fails.
func NewFaults() *Faults {
	return &Faults{plan: map[string]map[int]error{}, calls: map[string]int{}}
}

// Fail makes the nth call (from 1, counted from the start) of a method fail
// with err. Methods have the names of the ports' ("Append", "Put",
// "PackWriter.Seal", …). n = 0 means every call.
func (f *Faults) Fail(method string, n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan[method] == nil {
		f.plan[method] = map[int]error{}
	}
	f.plan[method][n] = err
}

// Calls is how often a method was called.
func (f *Faults) Calls(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// at counts a call and returns its error.
func (f *Faults) at(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
	if err := f.plan[method][f.calls[method]]; err != nil {
		return err
	}
	return f.plan[method][0]
}

// seq is a sequence that fails before its first value, if at all.
func seq[T any](f *Faults, method string, inner func() iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := f.at(method); err != nil {
			var zero T
			yield(zero, err)
			return
		}
		inner()(yield)
	}
}

// call runs inner unless its turn is to fail.
func call[T any](f *Faults, method string, inner func() (T, error)) (T, error) {
	if err := f.at(method); err != nil {
		var zero T
		return zero, err
	}
	return inner()
}

// do is call for methods that return an error only.
func do(f *Faults, method string, inner func() error) error {
	if err := f.at(method); err != nil {
		return err
	}
	return inner()
}

// Ledger decorates l.
func (f *Faults) Ledger(l kernel.Ledger) kernel.Ledger { return &faultLedger{l, f} }

type faultLedger struct {
	l kernel.Ledger
	f *Faults
}

func (d *faultLedger) Append(ctx context.Context, b kernel.Batch) (kernel.Head, []kernel.Record, error) {
	if err := d.f.at("Append"); err != nil {
		return b.Expect, nil, err
	}
	return d.l.Append(ctx, b)
}

func (d *faultLedger) Read(ctx context.Context, run kernel.RunID, from uint64) iter.Seq2[kernel.Record, error] {
	return seq(d.f, "Read", func() iter.Seq2[kernel.Record, error] { return d.l.Read(ctx, run, from) })
}

func (d *faultLedger) Head(ctx context.Context, run kernel.RunID) (kernel.Head, error) {
	return call(d.f, "Head", func() (kernel.Head, error) { return d.l.Head(ctx, run) })
}

func (d *faultLedger) Summaries(ctx context.Context) iter.Seq2[kernel.RunSummary, error] {
	return seq(d.f, "Summaries", func() iter.Seq2[kernel.RunSummary, error] { return d.l.Summaries(ctx) })
}

func (d *faultLedger) Summary(ctx context.Context, run kernel.RunID) (kernel.RunSummary, error) {
	return call(d.f, "Summary", func() (kernel.RunSummary, error) { return d.l.Summary(ctx, run) })
}

func (d *faultLedger) ByKey(ctx context.Context, key string) (kernel.RunID, error) {
	return call(d.f, "ByKey", func() (kernel.RunID, error) { return d.l.ByKey(ctx, key) })
}

func (d *faultLedger) Witness(ctx context.Context) error {
	return do(d.f, "Witness", func() error { return d.l.Witness(ctx) })
}

// Packs decorates p and the writers it gives.
func (f *Faults) Packs(p kernel.Packs) kernel.Packs { return &faultPacks{p, f} }

type faultPacks struct {
	p kernel.Packs
	f *Faults
}

func (d *faultPacks) Put(ctx context.Context, kind string, b []byte) (kernel.Digest, error) {
	return call(d.f, "Put", func() (kernel.Digest, error) { return d.p.Put(ctx, kind, b) })
}

func (d *faultPacks) Get(ctx context.Context, h kernel.Digest) ([]byte, error) {
	return call(d.f, "Get", func() ([]byte, error) { return d.p.Get(ctx, h) })
}

func (d *faultPacks) Stat(ctx context.Context, h kernel.Digest) (kernel.PackInfo, error) {
	return call(d.f, "Stat", func() (kernel.PackInfo, error) { return d.p.Stat(ctx, h) })
}

func (d *faultPacks) List(ctx context.Context) iter.Seq2[kernel.PackInfo, error] {
	return seq(d.f, "List", func() iter.Seq2[kernel.PackInfo, error] { return d.p.List(ctx) })
}

func (d *faultPacks) Begin(ctx context.Context) (kernel.PackWriter, error) {
	return call(d.f, "Begin", func() (kernel.PackWriter, error) {
		w, err := d.p.Begin(ctx)
		return &faultWriter{PackWriter: w, f: d.f}, err
	})
}

// faultWriter keeps the promise that after the first error only Abort works.
type faultWriter struct {
	kernel.PackWriter
	f    *Faults
	mu   sync.Mutex
	fail error // guarded by mu
}

func (w *faultWriter) at(method string) error {
	err := w.f.at(method)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail == nil {
		w.fail = err
	}
	return w.fail
}

func (w *faultWriter) Add(kind string, b []byte) (kernel.Digest, error) {
	if err := w.at("PackWriter.Add"); err != nil {
		return kernel.Digest{}, err
	}
	return w.PackWriter.Add(kind, b)
}

func (w *faultWriter) AddReader(kind string, r io.Reader, size int64) (kernel.Digest, int64, error) {
	if err := w.at("PackWriter.AddReader"); err != nil {
		return kernel.Digest{}, 0, err
	}
	return w.PackWriter.AddReader(kind, r, size)
}

func (w *faultWriter) Seal() error {
	if err := w.at("PackWriter.Seal"); err != nil {
		return err
	}
	return w.PackWriter.Seal()
}
