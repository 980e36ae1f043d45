package kerneltest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"witan/kernel"
)

// TestBus is the conformance suite of kernel.Bus. Each signal has its own key,
// so that it also holds for a bus that keeps only the latest signal per key.
// open returns a fresh bus; the suite closes it.
func TestBus(t *testing.T, open func(t *testing.T) kernel.Bus) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, kernel.Bus)
	}{
		{"what is published arrives whole", busContent},
		{"one publisher's order is kept", busOrder},
		{"all subscribers see one order", busOneOrder},
		{"a blocked subscriber does not hold up another topic", busBlocked},
		{"a handler may publish to another topic", busNested},
		{"no delivery after stop, which may be repeated", busStop},
		{"a closed bus refuses", busClosed},
		{"close gives up at its deadline and tells the handler", busDeadline},
		{"close accounts for every accepted signal", busAccount},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t)
			t.Cleanup(func() { closeBus(t, b) })
			c.run(t, b)
		})
	}
}

func closeBus(t *testing.T, b kernel.Bus) int {
	t.Helper()
	left, err := b.Close(context.Background())
	if err != nil {
		t.Errorf("close: %v", err)
	}
	return left
}

func subscribe(t *testing.T, b kernel.Bus, topic string, h func(context.Context, kernel.Signal)) (stop func()) {
	t.Helper()
	stop, err := b.Subscribe(topic, h)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

func publish(t *testing.T, b kernel.Bus, s kernel.Signal) {
	t.Helper()
	if err := b.Publish(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// signal is the n-th of one publisher.
func signal(topic, by string, n int) kernel.Signal {
	return kernel.Signal{Topic: topic, Run: "run_1", Seq: uint64(n), Key: fmt.Sprint(by, "/", n)}
}

func busContent(t *testing.T, b kernel.Bus) {
	got := make(chan kernel.Signal, 1)
	subscribe(t, b, "a", func(_ context.Context, s kernel.Signal) { got <- s })
	for _, want := range []kernel.Signal{
		{Topic: "a", Run: "run_1", Seq: 1<<64 - 1, Key: "k", Body: []byte(`{"x":[1]}`)},
		{Topic: "a"},
	} {
		publish(t, b, want)
		s := <-got
		if s.Topic != want.Topic || s.Run != want.Run || s.Seq != want.Seq || s.Key != want.Key || string(s.Body) != string(want.Body) {
			t.Errorf("got %+v, want %+v", s, want)
		}
	}
}

func busOrder(t *testing.T, b kernel.Bus) {
	const n = 500
	var got []int
	all := make(chan struct{})
	var running atomic.Int32
	subscribe(t, b, "a", func(_ context.Context, s kernel.Signal) {
		if running.Add(1) != 1 {
			t.Error("two handler calls at once")
		}
		if got = append(got, int(s.Seq)); len(got) == n {
			close(all)
		}
		running.Add(-1)
	})
	for i := range n {
		publish(t, b, signal("a", "p", i))
	}
	<-all
	for i, s := range got {
		if s != i {
			t.Fatalf("signal %d came at place %d", s, i)
		}
	}
}

func busOneOrder(t *testing.T, b kernel.Bus) {
	const subscribers, publishers, each = 3, 4, 100
	var got [subscribers][]string
	var all sync.WaitGroup
	for i := range got {
		all.Add(1)
		subscribe(t, b, "a", func(_ context.Context, s kernel.Signal) {
			if got[i] = append(got[i], s.Key); len(got[i]) == publishers*each {
				all.Done()
			}
		})
	}
	for p := range publishers {
		all.Go(func() {
			for i := range each {
				if err := b.Publish(t.Context(), signal("a", fmt.Sprint(p), i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range got {
		if !slices.Equal(got[i], got[0]) {
			t.Fatalf("subscribers 0 and %d saw different orders", i)
		}
	}
}

func busBlocked(t *testing.T, b kernel.Bus) {
	block, in, got := make(chan struct{}), make(chan struct{}), make(chan struct{})
	subscribe(t, b, "slow", func(context.Context, kernel.Signal) { close(in); <-block })
	subscribe(t, b, "quick", func(context.Context, kernel.Signal) { close(got) })
	publish(t, b, kernel.Signal{Topic: "slow"})
	<-in
	publish(t, b, kernel.Signal{Topic: "quick"})
	<-got
	close(block)
}

func busNested(t *testing.T, b kernel.Bus) {
	got := make(chan struct{})
	subscribe(t, b, "one", func(ctx context.Context, s kernel.Signal) {
		if err := b.Publish(ctx, kernel.Signal{Topic: "two"}); err != nil {
			t.Error(err)
		}
	})
	subscribe(t, b, "two", func(context.Context, kernel.Signal) { close(got) })
	publish(t, b, kernel.Signal{Topic: "one"})
	<-got
}

func busStop(t *testing.T, b kernel.Bus) {
	var stopped atomic.Bool
	arrived := make(chan struct{}, 1)
	stop := subscribe(t, b, "a", func(context.Context, kernel.Signal) {
		if stopped.Load() {
			t.Error("delivered after stop")
		}
		select {
		case arrived <- struct{}{}:
		default:
		}
	})
	other := make(chan struct{})
	subscribe(t, b, "a", func(_ context.Context, s kernel.Signal) {
		if s.Key == "end" {
			close(other)
		}
	})
	for i := range 50 {
		publish(t, b, signal("a", "before", i))
	}
	<-arrived
	stop()
	stopped.Store(true)
	stop()
	for i := range 200 { // more than any queue holds: a stopped subscription blocks nobody
		publish(t, b, signal("a", "after", i))
	}
	publish(t, b, kernel.Signal{Topic: "a", Key: "end"})
	<-other
	if left := closeBus(t, b); left != 0 {
		t.Errorf("%d undelivered: a stopped subscription misses nothing", left)
	}
	stop() // also after close
}

func busClosed(t *testing.T, b kernel.Bus) {
	stop := subscribe(t, b, "a", func(context.Context, kernel.Signal) {})
	for range 2 {
		if left := closeBus(t, b); left != 0 {
			t.Errorf("%d undelivered of none", left)
		}
	}
	if err := b.Publish(t.Context(), kernel.Signal{Topic: "a"}); !kernel.IsKind(err, kernel.Unavailable) {
		t.Errorf("publish on a closed bus: %v", err)
	}
	if _, err := b.Subscribe("a", func(context.Context, kernel.Signal) {}); !kernel.IsKind(err, kernel.Unavailable) {
		t.Errorf("subscribe on a closed bus: %v", err)
	}
	stop()
}

func busDeadline(t *testing.T, b kernel.Bus) {
	in := make(chan struct{})
	subscribe(t, b, "a", func(ctx context.Context, _ kernel.Signal) { close(in); <-ctx.Done() })
	publish(t, b, kernel.Signal{Topic: "a", Key: "held"})
	<-in
	publish(t, b, kernel.Signal{Topic: "a", Key: "waiting"})
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if left, err := b.Close(late); err == nil || left != 2 {
		t.Errorf("close with a running handler: %d undelivered, %v; want 2 and an error", left, err)
	}
	if left := closeBus(t, b); left != 1 {
		t.Errorf("%d undelivered after the handler returned, want 1", left)
	}
}

// busAccount closes while publishers run: what they were told was accepted was
// delivered or is counted.
func busAccount(t *testing.T, b kernel.Bus) {
	const publishers, each = 4, 500
	delivered := 0 // read after Close, which waits for handlers
	flowing := make(chan struct{})
	subscribe(t, b, "a", func(context.Context, kernel.Signal) {
		if delivered++; delivered == 5 {
			close(flowing)
		}
	})
	var accepted atomic.Int64
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for i := range each {
				err := b.Publish(context.Background(), signal("a", fmt.Sprint(p), i))
				if err != nil {
					if !kernel.IsKind(err, kernel.Unavailable) {
						t.Errorf("publish at close: %v", err)
					}
					return
				}
				accepted.Add(1)
			}
		})
	}
	<-flowing
	other := make(chan int)
	go func() { other <- closeBus(t, b) }()
	left := closeBus(t, b)
	if n := <-other; n != left {
		t.Errorf("two closers count %d and %d undelivered", left, n)
	}
	wg.Wait()
	if n := int(accepted.Load()); n > delivered+left || delivered+left > publishers*each {
		t.Errorf("accepted %d, delivered %d, undelivered %d", n, delivered, left)
	}
}
