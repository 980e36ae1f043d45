package bus

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"witan/kernel"
)

// publishWait bounds how long Control blocks a publisher: the driver publishes
// again anyway, so waiting longer gains nothing.
const publishWait = 2 * time.Second

// Control is the ordered, blocking bus between the driver and the executor. It
// adapts any Watermill Publisher and Subscriber to the kernel's port.
type Control struct {
	pub     *Ordered
	ids     atomic.Uint64
	counter Metrics
}

// Metrics counts signals since the bus was made.
type Metrics struct {
	Published, Delivered, Refused, Overflow atomic.Int64
}

// NewControl returns an open control bus.
func NewControl() *Control { return &Control{pub: New(Config{})} }

// Metrics are live counters.
func (c *Control) Metrics() *Metrics { return &c.counter }

// Publish implements kernel.Bus.
func (c *Control) Publish(ctx context.Context, s kernel.Signal) error {
	m := c.encode(s)
	wait, cancel := bounded(ctx)
	defer cancel()
	if err := c.pub.PublishContext(wait, s.Topic, m); err != nil {
		c.counter.Refused.Add(1)
		kind := kernel.Unavailable
		if errors.Is(err, context.DeadlineExceeded) {
			kind = kernel.Timeout
		}
		return kernel.E("bus.Publish", kind, err, "signal was not accepted")
	}
	c.counter.Published.Add(1)
	return nil
}

// Subscribe implements kernel.Bus.
func (c *Control) Subscribe(topic string, h func(context.Context, kernel.Signal)) (func(), error) {
	stop, err := c.pub.SubscribeFunc(topic, func(m *message.Message) {
		h(m.Context(), decode(topic, m))
		c.counter.Delivered.Add(1)
	})
	if err != nil {
		return nil, kernel.E("bus.Subscribe", kernel.Unavailable, err, "no subscription")
	}
	return stop, nil
}

// Close implements kernel.Bus.
func (c *Control) Close(ctx context.Context) (int, error) {
	err := c.pub.Close()
	return c.pub.Undelivered(), err
}

// lazy is a context whose time only runs once somebody waits on it: most
// publishes find room and never need the timer.
type lazy struct {
	context.Context
	once   sync.Once
	inner  context.Context
	cancel context.CancelFunc
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	l := &lazy{Context: ctx}
	return l, func() {
		if l.cancel != nil {
			l.cancel()
		}
	}
}

func (l *lazy) Done() <-chan struct{} {
	l.once.Do(func() { l.inner, l.cancel = context.WithTimeout(l.Context, publishWait) })
	return l.inner.Done()
}

func (l *lazy) Err() error {
	if l.inner != nil {
		return l.inner.Err()
	}
	return l.Context.Err()
}

// encode puts a signal into a Watermill message: the body is the payload, the
// rest metadata.
func (c *Control) encode(s kernel.Signal) *message.Message {
	m := message.NewMessage(strconv.FormatUint(c.ids.Add(1), 36), message.Payload(s.Body))
	m.Metadata.Set("run", string(s.Run))
	m.Metadata.Set("seq", strconv.FormatUint(s.Seq, 10))
	if s.Key != "" {
		m.Metadata.Set("key", s.Key)
	}
	return m
}

func decode(topic string, m *message.Message) kernel.Signal {
	seq, _ := strconv.ParseUint(m.Metadata.Get("seq"), 10, 64)
	s := kernel.Signal{Topic: topic, Run: kernel.RunID(m.Metadata.Get("run")), Seq: seq, Key: m.Metadata.Get("key")}
	if len(m.Payload) > 0 {
		s.Body = json.RawMessage(m.Payload)
	}
	return s
}
