package kerneltest

import (
	"context"
	"sync"
	"testing"

	"witan/kernel"
)

// TestBus is the conformance suite of kernel.Bus. latest says that the bus
// keeps only the latest signal per key; the suite then uses a key per signal.
func TestBus(t *testing.T, open func(t *testing.T) kernel.Bus) {
	ctx := context.Background()
	t.Run("order", func(t *testing.T) {
		b := open(t)
		const n = 500
		var mu sync.Mutex
		var got []uint64
		all := make(chan struct{})
		stop, err := b.Subscribe("a", func(_ context.Context, s kernel.Signal) {
			mu.Lock()
			defer mu.Unlock()
			if got = append(got, s.Seq); len(got) == n {
				close(all)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		for i := range uint64(n) {
			if err := b.Publish(ctx, kernel.Signal{Topic: "a", Run: "run_1", Seq: i, Key: string(rune('a' + i)), Body: []byte(`{"x":1}`)}); err != nil {
				t.Fatal(err)
			}
		}
		<-all
		for i, s := range got {
			if s != uint64(i) {
				t.Fatalf("signal %d came at place %d", s, i)
			}
		}
	})
	t.Run("content", func(t *testing.T) {
		b := open(t)
		got := make(chan kernel.Signal, 1)
		stop, err := b.Subscribe("a", func(_ context.Context, s kernel.Signal) { got <- s })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		want := kernel.Signal{Topic: "a", Run: "run_1", Seq: 1 << 60, Key: "k", Body: []byte(`{"x":[1]}`)}
		if err := b.Publish(ctx, want); err != nil {
			t.Fatal(err)
		}
		s := <-got
		if s.Topic != want.Topic || s.Run != want.Run || s.Seq != want.Seq || s.Key != want.Key || string(s.Body) != string(want.Body) {
			t.Fatalf("got %+v", s)
		}
	})
	t.Run("a slow subscriber does not hold up another topic", func(t *testing.T) {
		b := open(t)
		block, got := make(chan struct{}), make(chan struct{})
		stop1, err := b.Subscribe("slow", func(context.Context, kernel.Signal) { <-block })
		if err != nil {
			t.Fatal(err)
		}
		stop2, err := b.Subscribe("quick", func(context.Context, kernel.Signal) { close(got) })
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range []string{"slow", "quick"} {
			if err := b.Publish(ctx, kernel.Signal{Topic: topic}); err != nil {
				t.Fatal(err)
			}
		}
		<-got
		close(block)
		stop1()
		stop2()
	})
	t.Run("a handler may publish to another topic", func(t *testing.T) {
		b := open(t)
		got := make(chan struct{})
		stop1, err := b.Subscribe("one", func(ctx context.Context, s kernel.Signal) {
			_ = b.Publish(ctx, kernel.Signal{Topic: "two"})
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop1()
		stop2, err := b.Subscribe("two", func(context.Context, kernel.Signal) { close(got) })
		if err != nil {
			t.Fatal(err)
		}
		defer stop2()
		if err := b.Publish(ctx, kernel.Signal{Topic: "one"}); err != nil {
			t.Fatal(err)
		}
		<-got
	})
	t.Run("nothing after stop", func(t *testing.T) {
		b := open(t)
		n := 0
		stop, err := b.Subscribe("a", func(context.Context, kernel.Signal) { n++ })
		if err != nil {
			t.Fatal(err)
		}
		stop()
		stop()
		if err := b.Publish(ctx, kernel.Signal{Topic: "a"}); err != nil {
			t.Fatal(err)
		}
		if n != 0 {
			t.Fatal("delivered after stop")
		}
	})
	t.Run("closed", func(t *testing.T) {
		b := open(t)
		if _, err := b.Subscribe("a", func(context.Context, kernel.Signal) {}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := b.Close(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Publish(ctx, kernel.Signal{Topic: "a"}); err == nil {
			t.Fatal("publish on a closed bus is no error")
		}
		if _, err := b.Subscribe("a", func(context.Context, kernel.Signal) {}); err == nil {
			t.Fatal("subscribe on a closed bus is no error")
		}
	})
}
