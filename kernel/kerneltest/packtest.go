package kerneltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"

	"witan/kernel"
)

// Random gives n bytes that do not compress, the same for the same seed.
func Random(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	b := make([]byte, n)
	r.Read(b)
	return b
}

// contents are packs of every size class: nothing, small, compressible, larger
// than what a database keeps, several segments.
func contents() map[string][]byte {
	return map[string][]byte{
		"empty": {}, "one": {0}, "text": []byte("hello, world\n"), "zeros": make([]byte, 3<<20),
		"small": Random(1, 4000), "edge": Random(2, 128<<10), "over": Random(3, 128<<10+1),
		"segment": Random(4, 1<<20), "segments": Random(5, 2<<20+1),
	}
}

// TestPacks is the conformance suite of kernel.Packs; open gives an empty one.
func TestPacks(t *testing.T, open func(t *testing.T) kernel.Packs) {
	ctx := context.Background()
	for name, test := range map[string]func(*testing.T, context.Context, kernel.Packs){
		"put": packPut, "writer": packWriter, "reader": packReader, "abort": packAbort, "closed": packClosed,
		"concurrent": packConcurrent, "unknown": packUnknown, "owned": packOwned,
	} {
		t.Run(name, func(t *testing.T) { test(t, ctx, open(t)) })
	}
}

// hold fails unless p has b, by every way to ask.
func hold(t *testing.T, ctx context.Context, p kernel.Packs, kind string, b []byte) {
	t.Helper()
	d := kernel.Sum(b)
	if got := must[[]byte](t)(p.Get(ctx, d)); !bytes.Equal(got, b) {
		t.Fatalf("pack of %d bytes came back with %d", len(b), len(got))
	}
	info := must[kernel.PackInfo](t)(p.Stat(ctx, d))
	if info.Hash != d || info.Kind != kind || info.Bytes != int64(len(b)) || info.Stored < 0 {
		t.Fatalf("stat of a %s of %d bytes is %+v", kind, len(b), info)
	}
}

func listed(t *testing.T, ctx context.Context, p kernel.Packs) map[kernel.Digest]int {
	t.Helper()
	got := map[kernel.Digest]int{}
	for _, i := range must[[]kernel.PackInfo](t)(collect(p.List(ctx))) {
		got[i.Hash]++
	}
	return got
}

func packPut(t *testing.T, ctx context.Context, p kernel.Packs) {
	all := contents()
	for name, b := range all {
		for range 2 { // the second changes nothing
			if d := must[kernel.Digest](t)(p.Put(ctx, "text", b)); d != kernel.Sum(b) {
				t.Fatalf("%s is named %s", name, d)
			}
		}
		hold(t, ctx, p, "text", b)
	}
	got := listed(t, ctx, p)
	for name, b := range all {
		if got[kernel.Sum(b)] != 1 {
			t.Fatalf("%s is listed %d times", name, got[kernel.Sum(b)])
		}
	}
	if len(got) != len(all) {
		t.Fatalf("%d packs are listed, want %d", len(got), len(all))
	}
}

func packWriter(t *testing.T, ctx context.Context, p kernel.Packs) {
	stored := Random(9, 100)
	must[kernel.Digest](t)(p.Put(ctx, "task", stored))
	w := must[kernel.PackWriter](t)(p.Begin(ctx))
	all := contents()
	for _, b := range all {
		buf := bytes.Clone(b)
		if d := must[kernel.Digest](t)(w.Add("blob", buf)); d != kernel.Sum(b) || !w.Has(d) {
			t.Fatalf("pack of %d bytes: %s", len(b), d)
		}
		clear(buf) // it belongs to the caller again
		must[kernel.Digest](t)(w.Add("blob", b))
	}
	if !w.Has(kernel.Sum(stored)) || w.Has(kernel.Sum([]byte("nobody"))) {
		t.Fatal("has is wrong")
	}
	must[kernel.Digest](t)(w.Add("blob", stored))
	ok(t, w.Seal())
	for _, b := range all {
		hold(t, ctx, p, "blob", b)
	}
	hold(t, ctx, p, "task", stored)
	for d, n := range listed(t, ctx, p) {
		if n != 1 {
			t.Fatalf("%s is listed %d times", d, n)
		}
	}
	w = must[kernel.PackWriter](t)(p.Begin(ctx)) // nothing new
	must[kernel.Digest](t)(w.Add("blob", stored))
	ok(t, w.Seal())
	w = must[kernel.PackWriter](t)(p.Begin(ctx)) // nothing at all
	ok(t, w.Seal())
}

func packReader(t *testing.T, ctx context.Context, p kernel.Packs) {
	w := must[kernel.PackWriter](t)(p.Begin(ctx))
	all := contents()
	all["segments twice"] = all["segments"]
	for name, b := range all {
		for _, size := range []int64{-1, int64(len(b))} {
			d, n, err := w.AddReader("blob", iotest.HalfReader(bytes.NewReader(b)), size)
			if err != nil || n != int64(len(b)) || d != kernel.Sum(b) {
				t.Fatalf("%s with size %d: %s, %d, %v", name, size, d, n, err)
			}
		}
	}
	ok(t, w.Seal())
	for _, b := range all {
		hold(t, ctx, p, "blob", b)
	}
	// A reader that fails, or is shorter or longer than it said, adds nothing
	// and leaves the writer's lock free.
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		r    io.Reader
		size int64
	}{
		"fails": {iotest.ErrReader(broken), -1}, "fails late": {io.MultiReader(bytes.NewReader(Random(7, 2<<20)), iotest.ErrReader(broken)), -1},
		"short": {bytes.NewReader([]byte("abc")), 4}, "long": {bytes.NewReader([]byte("abcd")), 3},
		"short by segments": {bytes.NewReader(Random(7, 2<<20)), 3 << 20}, "long by segments": {bytes.NewReader(Random(7, 3<<20)), 2 << 20},
	} {
		w := must[kernel.PackWriter](t)(p.Begin(ctx))
		if _, _, err := w.AddReader("blob", c.r, c.size); err == nil {
			t.Fatalf("%s: no error", name)
		}
		w.Abort()
	}
	if n := len(listed(t, ctx, p)); n != len(contents()) {
		t.Fatalf("%d packs, want %d", n, len(contents()))
	}
}

func packAbort(t *testing.T, ctx context.Context, p kernel.Packs) {
	w := must[kernel.PackWriter](t)(p.Begin(ctx))
	for i := range 20 { // more than one file of it
		must[kernel.Digest](t)(w.Add("blob", Random(uint64(i), 1<<20)))
	}
	w.Abort()
	w.Abort()
	for i := range 20 {
		_, err := p.Get(ctx, kernel.Sum(Random(uint64(i), 1<<20)))
		wantKind(t, err, kernel.NotFound)
	}
}

func packClosed(t *testing.T, ctx context.Context, p kernel.Packs) {
	for _, end := range []func(kernel.PackWriter) error{kernel.PackWriter.Seal, func(w kernel.PackWriter) error { w.Abort(); return nil }} {
		w := must[kernel.PackWriter](t)(p.Begin(ctx))
		ok(t, end(w))
		for _, size := range []int{10, 2 << 20} {
			if _, err := w.Add("blob", Random(11, size)); err == nil {
				t.Fatal("add after the end is no error")
			}
			if _, _, err := w.AddReader("blob", bytes.NewReader(Random(12, size)), -1); err == nil {
				t.Fatal("add of a reader after the end is no error")
			}
		}
		if err := w.Seal(); err == nil {
			t.Fatal("a second seal is no error")
		}
		w.Abort()
	}
}

func packConcurrent(t *testing.T, ctx context.Context, p kernel.Packs) {
	w := must[kernel.PackWriter](t)(p.Begin(ctx))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { // everybody adds the same and puts the same beside it
			for i := range 30 {
				b := Random(uint64(i), 50_000*(i%3+1))
				if _, err := w.Add("blob", b); err != nil {
					t.Error(err)
				}
				if _, err := p.Put(ctx, "text", fmt.Append(nil, "text ", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	ok(t, w.Seal())
	for i := range 30 {
		hold(t, ctx, p, "blob", Random(uint64(i), 50_000*(i%3+1)))
		hold(t, ctx, p, "text", fmt.Append(nil, "text ", i))
	}
	for d, n := range listed(t, ctx, p) {
		if n != 1 {
			t.Fatalf("%s is listed %d times", d, n)
		}
	}
}

func packUnknown(t *testing.T, ctx context.Context, p kernel.Packs) {
	d := kernel.Sum([]byte("nobody"))
	_, err := p.Get(ctx, d)
	wantKind(t, err, kernel.NotFound)
	_, err = p.Stat(ctx, d)
	wantKind(t, err, kernel.NotFound)
	_, err = p.Get(ctx, kernel.Digest{})
	wantKind(t, err, kernel.NotFound)
	if n := len(listed(t, ctx, p)); n != 0 {
		t.Fatalf("an empty store lists %d packs", n)
	}
}

// packOwned: neither what was put nor what was got is shared with the store.
func packOwned(t *testing.T, ctx context.Context, p kernel.Packs) {
	for _, size := range []int{100, 300_000} {
		b := Random(20, size)
		keep := bytes.Clone(b)
		d := must[kernel.Digest](t)(p.Put(ctx, "text", b))
		clear(b)
		clear(must[[]byte](t)(p.Get(ctx, d)))
		hold(t, ctx, p, "text", keep)
	}
}

// TestStatCache is the conformance suite of kernel.StatCache.
func TestStatCache(t *testing.T, open func(t *testing.T) kernel.StatCache) {
	ctx := context.Background()
	c := open(t)
	_, err := c.LoadStat(ctx, "/w")
	wantKind(t, err, kernel.NotFound)
	for _, b := range [][]byte{{}, []byte("first"), Random(1, 5<<20), make([]byte, 2<<20)} {
		ok(t, c.SaveStat(ctx, "/w", b))
		ok(t, c.SaveStat(ctx, "/other", []byte("other")))
		if got := must[[]byte](t)(c.LoadStat(ctx, "/w")); !bytes.Equal(got, b) {
			t.Fatalf("a cache of %d bytes came back with %d", len(b), len(got))
		}
	}
	_, err = c.LoadStat(ctx, "/third")
	wantKind(t, err, kernel.NotFound)
}
