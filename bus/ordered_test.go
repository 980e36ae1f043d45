package bus_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"witan/bus"
)

func msg(id string) *message.Message { return message.NewMessage(id, nil) }

func TestNackBringsTheMessageBackBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bus.New(bus.Config{NackDelay: time.Second})
		defer b.Close()
		in, err := b.Subscribe(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Publish("a", msg("1"), msg("2")); err != nil {
			t.Fatal(err)
		}
		first := <-in
		synctest.Wait()
		select {
		case m := <-in:
			t.Fatalf("%s came while 1 was not acked", m.UUID)
		default:
		}
		start := time.Now()
		first.Nack()
		again := <-in
		if again.UUID != "1" || time.Since(start) != time.Second {
			t.Fatalf("%s came after %v", again.UUID, time.Since(start))
		}
		again.Ack()
		if m := <-in; m.UUID != "2" {
			t.Fatalf("%s came after 1", m.UUID)
		}
	})
}

// TestPublishIsBounded fills a queue that nobody reads.
func TestPublishIsBounded(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name    string
		maxWait time.Duration
		ctx     context.Context
		closes  bool
		want    error
		after   time.Duration
	}{
		{"by the option", 3 * time.Second, context.Background(), false, bus.ErrFull, 3 * time.Second},
		{"by its context", 0, cancelled, false, context.Canceled, 0},
		{"by close", 0, context.Background(), true, bus.ErrClosed, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bus.New(bus.Config{Buffer: 2, MaxWait: c.maxWait})
				defer b.Close()
				if _, err := b.Subscribe(context.Background(), "a"); err != nil {
					t.Fatal(err)
				}
				for range 3 { // one on offer, two in the queue
					if err := b.Publish("a", msg("x")); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if c.closes {
					time.AfterFunc(time.Minute, func() { b.Close() })
				}
				start := time.Now()
				err := b.PublishContext(c.ctx, "a", msg("y"))
				if !errors.Is(err, c.want) || time.Since(start) != c.after {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(start), c.want, c.after)
				}
				left, err := b.CloseContext(context.Background())
				if left != 3 || err != nil {
					t.Errorf("%d undelivered, %v; want the 3 accepted", left, err)
				}
			})
		})
	}
}

// TestAPublisherWaitingForItsTurnIsBounded has a second publisher behind one
// that waits for room.
func TestAPublisherWaitingForItsTurnIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bus.New(bus.Config{Buffer: 1})
		if _, err := b.Subscribe(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
		first := make(chan error)
		go func() { first <- b.Publish("a", msg("1"), msg("2"), msg("3")) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := b.PublishContext(ctx, "a", msg("4")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second publisher: %v", err)
		}
		if _, err := b.Subscribe(context.Background(), "a"); err != nil {
			t.Errorf("subscribe beside a blocked publisher: %v", err)
		}
		if err := b.Publish("b", msg("5")); err != nil {
			t.Errorf("publish on another topic: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-first; !errors.Is(err, bus.ErrClosed) {
			t.Errorf("publisher blocked at close: %v", err)
		}
	})
}

func TestASubscriberThatLeavesFreesItsPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bus.New(bus.Config{Buffer: 1})
		defer b.Close()
		ctx, leave := context.WithCancel(context.Background())
		if _, err := b.Subscribe(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		go func() { result <- b.Publish("a", msg("1"), msg("2"), msg("3")) }()
		synctest.Wait()
		select {
		case err := <-result:
			t.Fatalf("three messages found room for two: %v", err)
		default:
		}
		leave()
		if err := <-result; err != nil {
			t.Errorf("publish after the subscriber left: %v", err)
		}
		if n := b.Undelivered(); n != 0 {
			t.Errorf("%d undelivered to nobody", n)
		}
	})
}

func TestCloseCountsWhatIsNotAcked(t *testing.T) {
	b := bus.New(bus.Config{})
	in, err := b.Subscribe(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(context.Background())
	gone, err := b.Subscribe(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2", "3"} {
		if err := b.Publish("a", msg(id)); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	for range gone { // until closed: who left misses nothing
	}
	(<-in).Ack()
	second := <-in
	if n := b.Undelivered(); n != 2 {
		t.Errorf("%d undelivered before close, want 2", n)
	}
	for range 2 {
		if left, err := b.CloseContext(context.Background()); left != 2 || err != nil {
			t.Errorf("%d undelivered, %v; want 2", left, err)
		}
	}
	if second.Ack(); second.Context().Err() == nil {
		t.Error("the message's context outlives the bus")
	}
	if _, ok := <-in; ok {
		t.Error("a message after close")
	}
	if err := b.Publish("a", msg("4")); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("publish: %v", err)
	}
	if _, err := b.Subscribe(context.Background(), "a"); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("subscribe: %v", err)
	}
}
