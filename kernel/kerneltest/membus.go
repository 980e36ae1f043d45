package kerneltest

import (
	"context"
	"slices"
	"sync"

	"witan/kernel"
)

// Bus is a kernel.Bus for tests: in order, one goroutine per subscription, no bound.
type Bus struct {
	mu     sync.Mutex
	subs   []*memSub // guarded by mu
	closed bool      // guarded by mu

	ctx    context.Context // of the handlers; ends with Close
	giveUp context.CancelFunc
}

type memSub struct {
	topic string
	mu    sync.Mutex
	cond  *sync.Cond
	queue []kernel.Signal // guarded by mu
	stop  bool            // guarded by mu
	done  chan struct{}
}

// NewBus returns an open bus.
func NewBus() *Bus {
	b := &Bus{}
	b.ctx, b.giveUp = context.WithCancel(context.Background())
	return b
}

// Publish implements kernel.Bus.
func (b *Bus) Publish(ctx context.Context, s kernel.Signal) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return kernel.E("kerneltest.Publish", kernel.Unavailable, nil, "the bus is closed")
	}
	for _, sub := range b.subs {
		if sub.topic == s.Topic {
			sub.mu.Lock()
			sub.queue = append(sub.queue, s)
			sub.mu.Unlock()
			sub.cond.Signal()
		}
	}
	return nil
}

// Subscribe implements kernel.Bus.
func (b *Bus) Subscribe(topic string, h func(context.Context, kernel.Signal)) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, kernel.E("kerneltest.Subscribe", kernel.Unavailable, nil, "the bus is closed")
	}
	sub := &memSub{topic: topic, done: make(chan struct{})}
	sub.cond = sync.NewCond(&sub.mu)
	b.subs = append(b.subs, sub)
	go sub.loop(b.ctx, h)
	return func() {
		b.mu.Lock()
		if !b.closed { // Close counts what its subscriptions hold
			b.subs = slices.DeleteFunc(b.subs, func(s *memSub) bool { return s == sub })
		}
		b.mu.Unlock()
		sub.end()
		<-sub.done
	}, nil
}

func (s *memSub) loop(ctx context.Context, h func(context.Context, kernel.Signal)) {
	defer close(s.done)
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.stop {
			s.cond.Wait()
		}
		if s.stop {
			s.mu.Unlock()
			return
		}
		sig := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		h(ctx, sig)
	}
}

func (s *memSub) end() {
	s.mu.Lock()
	s.stop = true
	s.mu.Unlock()
	s.cond.Signal()
}

// Close implements kernel.Bus.
func (b *Bus) Close(ctx context.Context) (int, error) {
	b.mu.Lock()
	b.closed = true
	subs := b.subs // no longer changed
	b.mu.Unlock()
	defer b.giveUp()
	left := 0
	var err error
	for _, s := range subs {
		s.end()
	}
	for _, s := range subs {
		select {
		case <-s.done:
		case <-ctx.Done():
			left++ // the handler has it
			err = kernel.E("kerneltest.Close", kernel.Timeout, ctx.Err(), "a handler is still running")
		}
		s.mu.Lock()
		left += len(s.queue)
		s.mu.Unlock()
	}
	return left, err
}
