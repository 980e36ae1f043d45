package bus_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"witan/bus"
	"witan/kernel"
	"witan/kernel/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	for name, open := range map[string]func() kernel.Bus{
		"control":            func() kernel.Bus { return bus.NewControl() },
		"view":               func() kernel.Bus { return bus.NewView() },
		"memory":             func() kernel.Bus { return kerneltest.NewBus() },
		"chaos of no shares": func() kernel.Bus { return bus.Chaos(bus.NewControl(), 1, bus.ChaosOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			kerneltest.TestBus(t, func(*testing.T) kernel.Bus { return open() })
		})
	}
}

// TestControlRefusesWhenASubscriberHangs also pins the counters.
func TestControlRefusesWhenASubscriberHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bus.NewControl()
		block := make(chan struct{})
		if _, err := b.Subscribe("a", func(context.Context, kernel.Signal) { <-block }); err != nil {
			t.Fatal(err)
		}
		publish := func() error { return b.Publish(context.Background(), kernel.Signal{Topic: "a"}) }
		for range 65 { // one in the handler, 64 in the queue
			if err := publish(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		start := time.Now()
		if err := publish(); !kernel.IsKind(err, kernel.Timeout) || !errors.Is(err, bus.ErrFull) {
			t.Errorf("publish to a full queue: %v", err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("gave up after %v", took)
		}
		if got, want := b.Metrics(), (bus.Metrics{Published: 65, Undelivered: 65, Refused: 1}); got != want {
			t.Errorf("hanging: %+v, want %+v", got, want)
		}
		close(block)
		synctest.Wait()
		if got, want := b.Metrics(), (bus.Metrics{Published: 65, Delivered: 65, Refused: 1}); got != want {
			t.Errorf("drained: %+v, want %+v", got, want)
		}
		if left, err := b.Close(context.Background()); left != 0 || err != nil {
			t.Errorf("%d undelivered, %v", left, err)
		}
	})
}

// TestViewKeepsTheLatestAndTellsOfOverflow publishes more keys than fit while
// the subscriber hangs.
func TestViewKeepsTheLatestAndTellsOfOverflow(t *testing.T) {
	const room, over = 4096, 904
	b := bus.NewView()
	in, block, all := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var got []kernel.Signal
	_, err := b.Subscribe("v", func(_ context.Context, s kernel.Signal) {
		switch s.Key {
		case "first":
			close(in)
			<-block
			return
		case "last":
			defer close(all)
		}
		got = append(got, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	pub := func(key string, seq int) {
		if err := b.Publish(context.Background(), kernel.Signal{Topic: "v", Key: key, Seq: uint64(seq)}); err != nil {
			t.Fatal(err)
		}
	}
	pub("first", 0)
	<-in
	for seq := range 3 {
		for i := range room + over - 1 {
			if seq == 0 || i >= over { // those that fit, twice more
				pub(strconv.Itoa(i), seq)
			}
		}
	}
	pub("last", 2)
	if m := b.Metrics(); m.Overflow != over || m.Undelivered != room+1 {
		t.Errorf("%+v, want overflow %d, undelivered %d", m, over, room+1)
	}
	close(block)
	<-all
	if got[0].Topic != bus.TopicOverflow || got[0].Seq != over {
		t.Errorf("first %+v, want the overflow of %d", got[0], over)
	}
	if len(got) != room+1 {
		t.Fatalf("%d signals, want %d and the overflow", len(got), room)
	}
	for i, s := range got[1:] {
		if s.Seq != 2 || s.Key != "last" && s.Key != strconv.Itoa(over+i) {
			t.Fatalf("place %d: %+v", i, s)
		}
	}
	if left, err := b.Close(context.Background()); left != 0 || err != nil {
		t.Errorf("%d undelivered, %v", left, err)
	}
}

func TestChaos(t *testing.T) {
	const n = 200
	for _, c := range []struct {
		name                string
		opt                 bus.ChaosOptions
		lost, doubled, back bool
	}{
		{"nothing", bus.ChaosOptions{}, false, false, false},
		{"drop", bus.ChaosOptions{Drop: 0.3}, true, false, false},
		{"double", bus.ChaosOptions{Double: 0.3}, false, true, false},
		{"shuffle", bus.ChaosOptions{Shuffle: 0.3}, false, false, true},
		{"all", bus.ChaosOptions{Drop: 0.3, Double: 0.3, Shuffle: 0.3}, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, held := throughChaos(t, 7, c.opt, n)
			seen, doubled, back := map[uint64]bool{}, false, false
			for i, s := range got {
				doubled = doubled || seen[s]
				back = back || i > 0 && s < got[i-1]
				seen[s] = true
			}
			if lost := len(seen)+held < n; lost != c.lost || doubled != c.doubled || back != c.back {
				t.Errorf("lost %v, doubled %v, out of order %v; want %+v", lost, doubled, back, c)
			}
			again, _ := throughChaos(t, 7, c.opt, n)
			if !slices.Equal(got, again) {
				t.Error("one seed, two outcomes")
			}
		})
	}
}

// throughChaos returns what arrived of n signals and how many were held at Close.
func throughChaos(t *testing.T, seed uint64, opt bus.ChaosOptions, n int) (got []uint64, held int) {
	t.Helper()
	inner := bus.NewControl()
	b := bus.Chaos(inner, seed, opt)
	end := make(chan struct{})
	if _, err := b.Subscribe("a", func(_ context.Context, s kernel.Signal) {
		if s.Key == "end" {
			close(end)
			return
		}
		got = append(got, s.Seq)
	}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := b.Publish(context.Background(), kernel.Signal{Topic: "a", Seq: uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := inner.Publish(context.Background(), kernel.Signal{Topic: "a", Key: "end"}); err != nil {
		t.Fatal(err)
	}
	<-end
	held, err := b.Close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return got, held
}

func TestChaosCountsWhatItHeldBack(t *testing.T) {
	if _, held := throughChaos(t, 7, bus.ChaosOptions{Shuffle: 1}, 1); held != 1 {
		t.Errorf("%d undelivered, want the one held back", held)
	}
}

func TestStoppedDeliversNothing(t *testing.T) {
	inner := bus.NewControl()
	b := bus.Stopped(inner)
	end := make(chan struct{})
	if _, err := b.Subscribe("a", func(_ context.Context, s kernel.Signal) {
		if s.Key != "end" {
			t.Errorf("delivered %+v", s)
			return
		}
		close(end)
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(context.Background(), kernel.Signal{Topic: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := inner.Publish(context.Background(), kernel.Signal{Topic: "a", Key: "end"}); err != nil {
		t.Fatal(err)
	}
	<-end
	if left, err := b.Close(context.Background()); left != 0 || err != nil {
		t.Fatalf("%d undelivered, %v", left, err)
	}
}
