package bus

import (
	"context"
	"slices"
	"sync"

	"witan/kernel"
)

// maxKeys bounds what one view subscription holds; views are per run, so a host
// would need as many runs changing at once.
const maxKeys = 4096

// TopicOverflow is the topic of the signal that tells of dropped ones; Seq is
// their number.
const TopicOverflow = "view.overflow"

// View keeps, for each subscription, the latest signal per key. Publish never
// blocks. When more than maxKeys keys wait, the oldest is dropped and the next
// delivery is preceded by a signal with topic TopicOverflow, so that a hole is
// never silent.
type View struct {
	mu     sync.Mutex
	subs   []*viewSub // guarded by mu
	closed bool       // guarded by mu
	count  counters

	ctx    context.Context // of the handlers; ends when a Close gives up
	giveUp context.CancelFunc
}

type viewSub struct {
	topic string
	h     func(context.Context, kernel.Signal)

	mu    sync.Mutex
	order []string                 // guarded by mu; keys in order of first change
	last  map[string]kernel.Signal // guarded by mu
	lost  uint64                   // guarded by mu
	busy  bool                     // guarded by mu; h has a signal

	wake chan struct{} // holds one token when there is something
	once sync.Once     // closes quit
	quit chan struct{}
	done chan struct{}
}

// NewView returns an open view bus.
func NewView() *View {
	v := &View{}
	v.ctx, v.giveUp = context.WithCancel(context.Background())
	return v
}

// Metrics is a snapshot of the counters.
func (v *View) Metrics() Metrics {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.count.snapshot(v.waiting())
}

// Publish implements kernel.Bus. Kind: Unavailable when closed.
func (v *View) Publish(ctx context.Context, s kernel.Signal) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		v.count.refused.Add(1)
		return kernel.E("bus.Publish", kernel.Unavailable, ErrClosed, "signal was not accepted")
	}
	v.count.published.Add(1)
	for _, sub := range v.subs {
		if sub.topic == s.Topic && sub.put(s) {
			v.count.overflow.Add(1)
		}
	}
	return nil
}

// put reports whether an older key had to go.
func (s *viewSub) put(sig kernel.Signal) (dropped bool) {
	s.mu.Lock()
	if _, ok := s.last[sig.Key]; !ok {
		if len(s.order) >= maxKeys {
			delete(s.last, s.order[0])
			s.order = s.order[1:]
			s.lost++
			dropped = true
		}
		s.order = append(s.order, sig.Key)
	}
	s.last[sig.Key] = sig
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return dropped
}

// Subscribe implements kernel.Bus. The returned func must not be called from h.
func (v *View) Subscribe(topic string, h func(context.Context, kernel.Signal)) (func(), error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, kernel.E("bus.Subscribe", kernel.Unavailable, ErrClosed, "no subscription")
	}
	s := &viewSub{topic: topic, h: h, last: map[string]kernel.Signal{},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	v.subs = append(v.subs, s)
	go v.loop(s)
	return func() {
		s.end()
		v.mu.Lock()
		if !v.closed { // Close counts what its subscriptions hold
			v.subs = slices.DeleteFunc(v.subs, func(o *viewSub) bool { return o == s })
		}
		v.mu.Unlock()
		<-s.done
	}, nil
}

func (s *viewSub) end() { s.once.Do(func() { close(s.quit) }) }

func (v *View) loop(s *viewSub) {
	defer close(s.done)
	for {
		select {
		case <-s.wake:
		case <-s.quit:
			return
		}
		for {
			sig, ok := s.take()
			if !ok {
				break
			}
			s.h(v.ctx, sig)
			s.handled()
			v.count.delivered.Add(1)
		}
	}
}

// take returns the next signal, or false when there is none or the end came.
func (s *viewSub) take() (kernel.Signal, bool) {
	select {
	case <-s.quit:
		return kernel.Signal{}, false
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost > 0 {
		n := s.lost
		s.lost, s.busy = 0, true
		return kernel.Signal{Topic: TopicOverflow, Seq: n}, true
	}
	if len(s.order) == 0 {
		return kernel.Signal{}, false
	}
	k := s.order[0]
	s.order = s.order[1:]
	sig := s.last[k]
	delete(s.last, k)
	s.busy = true
	return sig, true
}

func (s *viewSub) handled() {
	s.mu.Lock()
	s.busy = false
	s.mu.Unlock()
}

// waiting is called with v.mu held.
func (v *View) waiting() int {
	n := 0
	for _, s := range v.subs {
		s.mu.Lock()
		n += len(s.order)
		if s.busy {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// Close implements kernel.Bus. It waits for running handlers; one that outlasts
// ctx counts as undelivered, its context ends, and a later call waits again.
func (v *View) Close(ctx context.Context) (int, error) {
	v.mu.Lock()
	v.closed = true
	subs := v.subs // no longer changed
	v.mu.Unlock()
	for _, s := range subs {
		s.end()
	}
	var err error
	for _, s := range subs {
		if e := await(ctx, s.done); e != nil {
			err = kernel.E("bus.Close", kindOf(e), e, "a handler is still running")
		}
	}
	v.mu.Lock()
	left := v.waiting() // with the signals of handlers that still run
	v.mu.Unlock()
	v.giveUp()
	return left, err
}
