package bus_test

import (
	"context"
	"testing"
	"time"

	"witan/bus"
	"witan/kernel"
)

// payload is made anew per message, as a real publisher does.
func payload() []byte { return make([]byte, 600) }

// BenchmarkControl gives the control bus as a ratio to a plain Go channel of the
// same run, and fails on a signal that came out of order or not at all.
func BenchmarkControl(b *testing.B) {
	floor := channelFloor()
	c := bus.NewControl()
	defer c.Close(context.Background())
	next, reorders, got := uint64(0), 0, 0
	end := make(chan struct{})
	if _, err := c.Subscribe("a", func(_ context.Context, s kernel.Signal) {
		if s.Key == "end" {
			close(end)
			return
		}
		if s.Seq < next {
			reorders++
		}
		got++
		next = s.Seq + 1
	}); err != nil {
		b.Fatal(err)
	}
	sent := 0
	for b.Loop() {
		if err := c.Publish(context.Background(), kernel.Signal{Topic: "a", Seq: uint64(sent), Body: payload()}); err != nil {
			b.Fatal(err)
		}
		sent++
	}
	perMsg := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	if err := c.Publish(context.Background(), kernel.Signal{Topic: "a", Key: "end"}); err != nil {
		b.Fatal(err)
	}
	<-end
	b.ReportMetric(floor/perMsg, "x-of-channel")
	b.ReportMetric(float64(reorders), "reorders")
	b.ReportMetric(float64(sent-got), "drops")
	if reorders != 0 || got != sent {
		b.Fatalf("%d out of order, %d dropped", reorders, sent-got)
	}
}

// BenchmarkView is a publisher whose subscriber keeps up or not: it never waits.
func BenchmarkView(b *testing.B) {
	v := bus.NewView()
	defer v.Close(context.Background())
	if _, err := v.Subscribe("a", func(context.Context, kernel.Signal) {}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := v.Publish(context.Background(), kernel.Signal{Topic: "a", Key: "run"}); err != nil {
			b.Fatal(err)
		}
	}
}

// channelFloor is the time of one message through a buffered channel, in ns.
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
		c <- kernel.Signal{Topic: "a", Seq: i, Body: payload()}
	}
	close(c)
	<-done
	return float64(time.Since(t0).Nanoseconds()) / n
}
