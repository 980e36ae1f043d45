package bus

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// ErrClosed is returned by Publish and Subscribe after Close.
var ErrClosed = errors.New("bus is closed")

// Config of an Ordered bus.
type Config struct {
	Buffer    int           // messages a subscription holds before Publish blocks; 0 = 64
	NackDelay time.Duration // before a nacked message comes again; 0 = 10 ms
	// Replay hands a topic's earlier messages to new subscribers. It exists for
	// Watermill's test suite, which publishes before it subscribes; in the
	// product the ledger is what late receivers read.
	Replay bool
}

// Ordered is an in-process Pub/Sub: one bounded queue and one goroutine per
// subscription. It implements message.Publisher and message.Subscriber.
type Ordered struct {
	cfg Config

	mu     sync.Mutex
	topics map[string]*topic // guarded by mu
	closed bool              // guarded by mu
	stop   chan struct{}     // closed by Close
	wg     sync.WaitGroup
	left   int // guarded by mu; undelivered at Close
}

// topic serialises its publishers, which is what gives all subscribers one order.
type topic struct {
	publish chan struct{}      // a lock that can be given up; holds one token
	subs    []*subscription    // guarded by Ordered.mu
	past    []*message.Message // guarded by Ordered.mu; only with Replay
}

type subscription struct {
	h    func(*message.Message) // instead of out: called in the loop, the return is the ack
	in   chan *message.Message
	out  chan *message.Message
	quit chan struct{} // closed when the subscriber left
	done chan struct{} // closed when the loop ended
}

// New returns an open bus.
func New(cfg Config) *Ordered {
	if cfg.Buffer == 0 {
		cfg.Buffer = 64
	}
	if cfg.NackDelay == 0 {
		cfg.NackDelay = 10 * time.Millisecond
	}
	return &Ordered{cfg: cfg, topics: map[string]*topic{}, stop: make(chan struct{})}
}

func (b *Ordered) topic(name string) *topic {
	t := b.topics[name]
	if t == nil {
		t = &topic{publish: make(chan struct{}, 1)}
		t.publish <- struct{}{}
		b.topics[name] = t
	}
	return t
}

// Publish hands msgs to every subscription of the topic, in order. It blocks
// while a queue is full and returns when all queues hold the messages.
func (b *Ordered) Publish(name string, msgs ...*message.Message) error {
	return b.PublishContext(context.Background(), name, msgs...)
}

// PublishContext is Publish with a bound: after ctx ends it returns its error;
// some subscriptions may then have a message that others have not.
func (b *Ordered) PublishContext(ctx context.Context, name string, msgs ...*message.Message) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	t := b.topic(name)
	b.mu.Unlock()
	select {
	case <-t.publish:
	default:
		select {
		case <-t.publish:
		case <-b.stop:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { t.publish <- struct{}{} }()
	for _, m := range msgs {
		b.mu.Lock()
		subs := t.subs // replaced, never changed in place
		if b.cfg.Replay {
			t.past = append(t.past, m.Copy())
		}
		b.mu.Unlock()
		for i, s := range subs {
			c := m
			if i < len(subs)-1 || s.h == nil {
				c = m.Copy()
			}
			if err := b.hand(ctx, s, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Ordered) hand(ctx context.Context, s *subscription, m *message.Message) error {
	select {
	case s.in <- m:
		return nil
	default:
	}
	select {
	case s.in <- m:
		return nil
	case <-s.quit:
		return nil // the subscriber left: nobody misses it
	case <-b.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Subscribe returns a channel of messages; the next one comes after the last
// was acked. The channel is closed when ctx ends or the bus closes.
func (b *Ordered) Subscribe(ctx context.Context, name string) (<-chan *message.Message, error) {
	s, err := b.subscribe(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	return s.out, nil
}

// SubscribeFunc calls h for each message, one after the other; its return is
// the ack. It saves the hand-over to another goroutine. The returned func ends
// it and waits; it must not be called from h.
func (b *Ordered) SubscribeFunc(name string, h func(*message.Message)) (func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := b.subscribe(ctx, name, h)
	if err != nil {
		cancel()
		return nil, err
	}
	return func() { cancel(); <-s.done }, nil
}

func (b *Ordered) subscribe(ctx context.Context, name string, h func(*message.Message)) (*subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	t := b.topic(name)
	s := &subscription{h: h, out: make(chan *message.Message), quit: make(chan struct{}), done: make(chan struct{})}
	past := slices.Clone(t.past)
	s.in = make(chan *message.Message, b.cfg.Buffer+len(past))
	for _, m := range past {
		s.in <- m.Copy()
	}
	t.subs = append(slices.Clone(t.subs), s)
	b.wg.Add(1)
	go b.loop(ctx, t, s)
	return s, nil
}

// loop delivers one subscription's messages until it ends.
func (b *Ordered) loop(ctx context.Context, t *topic, s *subscription) {
	defer b.wg.Done()
	defer close(s.done)
	defer close(s.out)
	pending := 0 // taken from the queue and not acked
	defer func() {
		close(s.quit)
		b.mu.Lock()
		t.subs = slices.DeleteFunc(slices.Clone(t.subs), func(o *subscription) bool { return o == s })
		if b.closed && ctx.Err() == nil {
			b.left += len(s.in) + pending
		}
		b.mu.Unlock()
	}()
	for {
		select {
		case m := <-s.in:
			pending = 1
			if s.h != nil {
				s.h(m)
			} else if !b.deliver(ctx, s, m) {
				return
			}
			pending = 0
		case <-b.stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

// deliver hands m over until it is acked; false means the end.
func (b *Ordered) deliver(ctx context.Context, s *subscription, m *message.Message) bool {
	for {
		c := m.Copy()
		mctx, cancel := context.WithCancel(ctx)
		c.SetContext(mctx)
		acked, ok := b.offer(ctx, s, c)
		cancel()
		if acked || !ok {
			return ok
		}
		pause := time.NewTimer(b.cfg.NackDelay)
		select {
		case <-pause.C:
		case <-b.stop:
			pause.Stop()
			return false
		case <-ctx.Done():
			pause.Stop()
			return false
		}
	}
}

func (b *Ordered) offer(ctx context.Context, s *subscription, c *message.Message) (acked, ok bool) {
	select {
	case s.out <- c:
	case <-b.stop:
		return false, false
	case <-ctx.Done():
		return false, false
	}
	select {
	case <-c.Acked():
		return true, true
	case <-c.Nacked():
		return false, true
	case <-b.stop:
		return false, false
	case <-ctx.Done():
		return false, false
	}
}

// Close ends all subscriptions and waits for them; blocked publishers return
// ErrClosed. Closing twice is harmless.
func (b *Ordered) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.stop)
	}
	b.mu.Unlock()
	b.wg.Wait()
	return nil
}

// Undelivered is the number of messages that Close found accepted and not acked.
func (b *Ordered) Undelivered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}
