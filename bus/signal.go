package bus

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"witan/kernel"
)

// publishWait bounds how long Control blocks a publisher: the driver publishes
// again anyway, so waiting longer gains nothing.
const publishWait = 2 * time.Second

// Control is the ordered, blocking bus between the driver and the executor: the
// kernel's port on an Ordered bus. A handler may publish to other topics; to its
// own it would wait for itself once the queue is full.
type Control struct {
	bus   *Ordered
	ids   atomic.Uint64
	count counters
}

// NewControl returns an open control bus.
func NewControl() *Control { return &Control{bus: New(Config{MaxWait: publishWait})} }

// Metrics is a snapshot of the counters.
func (c *Control) Metrics() Metrics { return c.count.snapshot(c.bus.Undelivered()) }

// Publish implements kernel.Bus. Kinds: Unavailable when closed, Timeout when a
// queue stayed full, Cancelled when ctx was cancelled.
func (c *Control) Publish(ctx context.Context, s kernel.Signal) error {
	if err := c.bus.PublishContext(ctx, s.Topic, c.encode(s)); err != nil {
		c.count.refused.Add(1)
		return kernel.E("bus.Publish", kindOf(err), err, "signal was not accepted")
	}
	c.count.published.Add(1)
	return nil
}

func kindOf(err error) kernel.Kind {
	switch {
	case errors.Is(err, ErrFull), errors.Is(err, context.DeadlineExceeded):
		return kernel.Timeout
	case errors.Is(err, context.Canceled):
		return kernel.Cancelled
	}
	return kernel.Unavailable
}

// Subscribe implements kernel.Bus.
func (c *Control) Subscribe(topic string, h func(context.Context, kernel.Signal)) (func(), error) {
	stop, err := c.bus.SubscribeFunc(topic, func(ctx context.Context, m *message.Message) {
		h(ctx, decode(topic, m))
		c.count.delivered.Add(1)
	})
	if err != nil {
		return nil, kernel.E("bus.Subscribe", kindOf(err), err, "no subscription")
	}
	return stop, nil
}

// Close implements kernel.Bus. A handler that outlasts ctx counts as undelivered.
func (c *Control) Close(ctx context.Context) (int, error) {
	left, err := c.bus.CloseContext(ctx)
	if err != nil {
		return left, kernel.E("bus.Close", kindOf(err), err, "a handler is still running")
	}
	return left, nil
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
