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
func NewBus() *Bus { return &Bus{} }

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
	go sub.loop(h)
	return func() {
		b.mu.Lock()
		b.subs = slices.DeleteFunc(b.subs, func(s *memSub) bool { return s == sub })
		b.mu.Unlock()
		sub.end()
	}, nil
}

func (s *memSub) loop(h func(context.Context, kernel.Signal)) {
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
		h(context.Background(), sig)
	}
}

func (s *memSub) end() {
	s.mu.Lock()
	s.stop = true
	s.mu.Unlock()
	s.cond.Signal()
	<-s.done
}

// Close implements kernel.Bus.
func (b *Bus) Close(ctx context.Context) (int, error) {
	b.mu.Lock()
	subs := b.subs
	b.subs, b.closed = nil, true
	b.mu.Unlock()
	left := 0
	for _, s := range subs {
		s.end()
		left += len(s.queue)
	}
	return left, nil
}
