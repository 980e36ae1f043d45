package bus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

var (
	// ErrClosed is returned by Publish and Subscribe after Close.
	ErrClosed = errors.New("bus is closed")
	// ErrFull is returned by Publish when Config.MaxWait ran out.
	ErrFull = errors.New("a subscription's queue stayed full")
)

// Config of an Ordered bus.
type Config struct {
	Buffer    int           // messages a subscription holds before Publish blocks; 0 = 64
	NackDelay time.Duration // before a nacked message comes again; 0 = 10 ms
	MaxWait   time.Duration // one Publish waits at most so long for room; 0 = no bound
	// Replay hands a topic's earlier messages to new subscribers. It exists for
	// Watermill's test suite, which publishes before it subscribes, and keeps
	// every message for ever; in the product late receivers read the ledger.
	Replay bool
}

// Ordered is an in-process Pub/Sub: one bounded queue and one goroutine per
// subscription. It implements message.Publisher and message.Subscriber.
type Ordered struct {
	cfg Config

	mu     sync.Mutex
	topics map[string]*topic // guarded by mu
	closed bool              // guarded by mu

	stop   chan struct{}   // closed when Close begins
	ended  chan struct{}   // closed when the last publisher and loop are gone
	wg     sync.WaitGroup  // the loops
	ctx    context.Context // of SubscribeFunc's handlers; ends when a Close gives up
	giveUp context.CancelFunc
}

// topic serialises its publishers, which is what gives all subscribers one order.
type topic struct {
	publish chan struct{}      // a lock that can be given up; holds one token
	subs    []*subscription    // guarded by Ordered.mu; replaced, never changed in place
	past    []*message.Message // guarded by Ordered.mu; only with Replay
}

type subscription struct {
	h       func(context.Context, *message.Message) // instead of out: the return is the ack
	in      chan *message.Message
	out     chan *message.Message
	pending atomic.Bool   // one message is taken from in and not acked
	gone    chan struct{} // closed when the subscriber left
	done    chan struct{} // closed when the loop ended
}

// New returns an open bus.
func New(cfg Config) *Ordered {
	if cfg.Buffer == 0 {
		cfg.Buffer = 64
	}
	if cfg.NackDelay == 0 {
		cfg.NackDelay = 10 * time.Millisecond
	}
	b := &Ordered{cfg: cfg, topics: map[string]*topic{}, stop: make(chan struct{}), ended: make(chan struct{})}
	b.ctx, b.giveUp = context.WithCancel(context.Background())
	return b
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
// while a queue is full, at most Config.MaxWait, and returns nil only when all
// queues hold the messages. Without a subscription nobody misses them: nil.
func (b *Ordered) Publish(name string, msgs ...*message.Message) error {
	return b.PublishContext(context.Background(), name, msgs...)
}

// PublishContext is Publish that also ends with ctx. After an error some
// subscriptions may have a message that others have not.
func (b *Ordered) PublishContext(ctx context.Context, name string, msgs ...*message.Message) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	t := b.topic(name)
	b.mu.Unlock()
	w := wait{ctx: ctx, stop: b.stop, most: b.cfg.MaxWait}
	if err := w.lock(t); err != nil {
		return err
	}
	defer func() { t.publish <- struct{}{} }()
	for _, m := range msgs {
		b.mu.Lock()
		subs := t.subs
		if b.cfg.Replay {
			t.past = append(t.past, m.Copy())
		}
		b.mu.Unlock()
		for _, s := range subs {
			c := m
			if s.h == nil { // the receiver acks its own
				c = m.Copy()
			}
			if err := w.put(s, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait bounds one Publish. Most find room at once and never start the timer.
type wait struct {
	ctx   context.Context
	stop  <-chan struct{}
	most  time.Duration
	timer *time.Timer
}

func (w *wait) over() <-chan time.Time {
	if w.most == 0 {
		return nil
	}
	if w.timer == nil {
		w.timer = time.NewTimer(w.most)
	}
	return w.timer.C
}

func (w *wait) lock(t *topic) error {
	select {
	case <-t.publish:
		return nil
	default:
	}
	select {
	case <-t.publish:
		return nil
	case <-w.stop:
		return ErrClosed
	case <-w.over():
		return ErrFull
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

func (w *wait) put(s *subscription, m *message.Message) error {
	select {
	case s.in <- m:
		return nil
	default:
	}
	select {
	case s.in <- m:
		return nil
	case <-s.gone:
		return nil // nobody misses it
	case <-w.stop:
		return ErrClosed
	case <-w.over():
		return ErrFull
	case <-w.ctx.Done():
		return w.ctx.Err()
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
// the ack. It saves the hand-over to another goroutine and the copy: what is
// published on such a topic must not be changed any more, by anybody. The
// context of h ends only when a Close stops waiting for h. The returned func ends the
// subscription and waits for h; it must not be called from h.
func (b *Ordered) SubscribeFunc(name string, h func(context.Context, *message.Message)) (func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := b.subscribe(ctx, name, h)
	if err != nil {
		cancel()
		return nil, err
	}
	return func() { cancel(); <-s.done }, nil
}

func (b *Ordered) subscribe(ctx context.Context, name string, h func(context.Context, *message.Message)) (*subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	t := b.topic(name)
	s := &subscription{h: h, out: make(chan *message.Message), gone: make(chan struct{}), done: make(chan struct{})}
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

// loop delivers one subscription's messages until the subscriber leaves or the
// bus closes.
func (b *Ordered) loop(ctx context.Context, t *topic, s *subscription) {
	defer b.wg.Done()
	defer close(s.done)
	defer close(s.out)
	for {
		select { // with a full queue the next select might choose the queue
		case <-b.stop:
			return
		case <-ctx.Done():
			b.leave(t, s)
			return
		default:
		}
		select {
		case m := <-s.in:
			s.pending.Store(true)
			if s.h != nil {
				s.h(b.ctx, m)
			} else if !b.deliver(ctx, s, m) {
				continue // bus or subscriber ended: the message stays pending
			}
			s.pending.Store(false)
		case <-b.stop:
		case <-ctx.Done():
		}
	}
}

// leave forgets a subscription with all it holds. At Close it is not called, so
// that what is left can be counted.
func (b *Ordered) leave(t *topic, s *subscription) {
	b.mu.Lock()
	t.subs = slices.DeleteFunc(slices.Clone(t.subs), func(o *subscription) bool { return o == s })
	b.mu.Unlock()
	close(s.gone)
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

// Close is CloseContext without a bound.
func (b *Ordered) Close() error {
	_, err := b.CloseContext(context.Background())
	return err
}

// CloseContext refuses further messages, lets blocked publishers return
// ErrClosed and waits for running handlers; queues are not drained. It returns
// how many messages were accepted and not acked, summed over subscriptions.
// When ctx ends first, handlers' contexts end too and its error is returned; a
// later call waits again.
func (b *Ordered) CloseContext(ctx context.Context) (undelivered int, err error) {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.stop)
		go b.finish()
	}
	b.mu.Unlock()
	err = await(ctx, b.ended)
	undelivered = b.Undelivered() // with the messages of handlers that still run
	b.giveUp()
	return undelivered, err
}

// await prefers done, so that a late ctx is no error when there is nothing to
// wait for.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish keeps every topic's token: whoever got in before has then returned,
// and nothing can enter a queue behind the count.
func (b *Ordered) finish() {
	b.mu.Lock()
	topics := slices.Collect(maps.Values(b.topics)) // closed: no more are added
	b.mu.Unlock()
	for _, t := range topics {
		<-t.publish
	}
	b.wg.Wait()
	close(b.ended)
}

// Undelivered is the number of messages that wait or are not acked now; after
// Close, those it left.
func (b *Ordered) Undelivered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, t := range b.topics {
		for _, s := range t.subs {
			n += len(s.in)
			if s.pending.Load() {
				n++
			}
		}
	}
	return n
}
