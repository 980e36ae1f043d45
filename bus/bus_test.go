package bus_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"witan/bus"
	"witan/kernel"
	"witan/kernel/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func closing(t *testing.T, b kernel.Bus) kernel.Bus {
	t.Cleanup(func() {
		if _, err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestConformance(t *testing.T) {
	for name, open := range map[string]func() kernel.Bus{
		"control": func() kernel.Bus { return bus.NewControl() },
		"view":    func() kernel.Bus { return bus.NewView() },
		"memory":  func() kernel.Bus { return kerneltest.NewBus() },
	} {
		t.Run(name, func(t *testing.T) {
			kerneltest.TestBus(t, func(t *testing.T) kernel.Bus { return closing(t, open()) })
		})
	}
}

func TestControlRefusesWhenASubscriberHangs(t *testing.T) {
	b := bus.NewControl()
	block := make(chan struct{})
	if _, err := b.Subscribe("a", func(context.Context, kernel.Signal) { <-block }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	sent := 0
	for ; err == nil; sent++ {
		if sent == 65 { // one in the handler, 64 in the queue
			cancel()
		}
		err = b.Publish(ctx, kernel.Signal{Topic: "a"})
	}
	if !kernel.IsKind(err, kernel.Unavailable) || b.Metrics().Refused.Load() != 1 {
		t.Fatalf("%d sent, %v", sent, err)
	}
	close(block)
	_, _ = b.Close(context.Background())
}

func TestViewKeepsTheLatestAndTellsOfOverflow(t *testing.T) {
	b := bus.NewView()
	in, block := make(chan struct{}), make(chan struct{})
	var got []kernel.Signal
	all := make(chan struct{})
	first := true
	_, err := b.Subscribe("v", func(_ context.Context, s kernel.Signal) {
		if first {
			first = false
			close(in)
			<-block
			return
		}
		if got = append(got, s); s.Key == "last" {
			close(all)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	pub := func(key string, seq uint64) {
		if err := b.Publish(context.Background(), kernel.Signal{Topic: "v", Key: key, Seq: seq}); err != nil {
			t.Fatal(err)
		}
	}
	pub("first", 0)
	<-in
	for i := range uint64(100) {
		pub("same", i)
	}
	for i := range 5000 {
		pub(string(rune(0x4e00+i)), 1)
	}
	pub("last", 1)
	close(block)
	<-all
	if got[0].Topic != bus.TopicOverflow || got[0].Seq == 0 || len(got) > 4097 {
		t.Fatalf("%d signals, first %+v", len(got), got[0])
	}
	_, _ = b.Close(context.Background())
}

func TestChaosLosesDoublesAndReorders(t *testing.T) {
	inner := bus.NewControl()
	b := bus.Chaos(inner, 7, bus.ChaosOptions{Drop: 0.3, Double: 0.3, Shuffle: 0.3})
	var got []uint64
	if _, err := b.Subscribe("a", func(_ context.Context, s kernel.Signal) { got = append(got, s.Seq) }); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	if _, err := b.Subscribe("end", func(context.Context, kernel.Signal) { close(end) }); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(200) {
		if err := b.Publish(context.Background(), kernel.Signal{Topic: "a", Seq: i}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = b.Close(context.Background())
	seen, doubled, back := map[uint64]bool{}, false, false
	for i, s := range got {
		doubled = doubled || seen[s]
		back = back || i > 0 && s < got[i-1]
		seen[s] = true
	}
	if len(seen) == 200 || !doubled || !back {
		t.Fatalf("%d of 200 seen, doubled %v, out of order %v", len(seen), doubled, back)
	}
	if err := bus.Stopped(inner).Publish(context.Background(), kernel.Signal{}); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkControl prints the control bus as a ratio to a plain Go channel of
// the same run, with what was out of order or missing.
func BenchmarkControl(b *testing.B) {
	floor := channelFloor()
	c := bus.NewControl()
	next, bad := uint64(0), 0
	stop, err := c.Subscribe("a", func(_ context.Context, s kernel.Signal) {
		if s.Seq != next {
			bad++
		}
		next = s.Seq + 1
	})
	if err != nil {
		b.Fatal(err)
	}
	sent := uint64(0)
	for b.Loop() {
		if err := c.Publish(context.Background(), kernel.Signal{Topic: "a", Seq: sent, Body: make([]byte, 600)}); err != nil {
			b.Fatal(err)
		}
		sent++
	}
	for c.Metrics().Delivered.Load() < int64(sent) {
		runtime.Gosched()
	}
	perMsg := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(floor/perMsg, "x-of-channel")
	b.ReportMetric(float64(bad), "reorders")
	b.ReportMetric(float64(sent-next), "drops")
	stop()
	_, _ = c.Close(context.Background())
}

// channelFloor is the time of one 600-byte message through a buffered channel, in ns.
func channelFloor() float64 {
	const n = 1_000_000
	c, done := make(chan kernel.Signal, 64), make(chan struct{})
	go func() {
		for range c {
		}
		close(done)
	}()
	t0 := time.Now()
	for i := range uint64(n) {
		c <- kernel.Signal{Topic: "a", Seq: i, Body: make([]byte, 600)}
	}
	close(c)
	<-done
	return float64(time.Since(t0).Nanoseconds()) / n
}
