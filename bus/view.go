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

// View keeps, for each subscription, the latest signal per key. Publish never
// blocks. When more than maxKeys keys wait, the oldest is dropped and the next
// delivery is preceded by a signal with topic TopicOverflow, so that a hole is
// never silent.
type View struct {
	mu      sync.Mutex
	subs    []*viewSub // guarded by mu
	closed  bool       // guarded by mu
	counter Metrics
}

// TopicOverflow is the topic of the signal that tells of dropped ones; Seq is
// their number.
const TopicOverflow = "view.overflow"

type viewSub struct {
	topic string
	mu    sync.Mutex
	wake  chan struct{}            // holds one token when there is something
	order []string                 // guarded by mu; keys in order of first change
	last  map[string]kernel.Signal // guarded by mu
	lost  uint64                   // guarded by mu
	quit  chan struct{}
	done  chan struct{}
}

// NewView returns an open view bus.
func NewView() *View { return &View{} }

// Metrics are live counters.
func (v *View) Metrics() *Metrics { return &v.counter }

// Publish implements kernel.Bus.
func (v *View) Publish(ctx context.Context, s kernel.Signal) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return kernel.E("bus.Publish", kernel.Unavailable, ErrClosed, "signal was not accepted")
	}
	v.counter.Published.Add(1)
	for _, sub := range v.subs {
		if sub.topic == s.Topic && sub.put(s) {
			v.counter.Overflow.Add(1)
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

// Subscribe implements kernel.Bus.
func (v *View) Subscribe(topic string, h func(context.Context, kernel.Signal)) (func(), error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, kernel.E("bus.Subscribe", kernel.Unavailable, ErrClosed, "no subscription")
	}
	s := &viewSub{topic: topic, wake: make(chan struct{}, 1), last: map[string]kernel.Signal{}, quit: make(chan struct{}), done: make(chan struct{})}
	v.subs = append(v.subs, s)
	go v.loop(s, h)
	var once sync.Once
	return func() {
		once.Do(func() {
			v.mu.Lock()
			v.subs = slices.DeleteFunc(v.subs, func(o *viewSub) bool { return o == s })
			v.mu.Unlock()
			close(s.quit)
		})
		<-s.done
	}, nil
}

func (v *View) loop(s *viewSub, h func(context.Context, kernel.Signal)) {
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
			h(context.Background(), sig)
			v.counter.Delivered.Add(1)
			select {
			case <-s.quit:
				return
			default:
			}
		}
	}
}

func (s *viewSub) take() (kernel.Signal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost > 0 {
		n := s.lost
		s.lost = 0
		return kernel.Signal{Topic: TopicOverflow, Seq: n}, true
	}
	if len(s.order) == 0 {
		return kernel.Signal{}, false
	}
	k := s.order[0]
	s.order = s.order[1:]
	sig := s.last[k]
	delete(s.last, k)
	return sig, true
}

// Close implements kernel.Bus.
func (v *View) Close(ctx context.Context) (int, error) {
	v.mu.Lock()
	subs := v.subs
	v.subs, v.closed = nil, true
	v.mu.Unlock()
	left := 0
	for _, s := range subs {
		close(s.quit)
		<-s.done
		left += len(s.order)
	}
	return left, nil
}
