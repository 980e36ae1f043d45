package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

const maxRequests = 64 // of the other side at the same time, until their answers are written

// Handler is what the other side can call. Notify is called one after the other
// and must not wait for a Call; Request each in its own goroutine, whose context
// ends with the connection.
type Handler interface {
	Notify(method string, params json.RawMessage)
	Request(ctx context.Context, method string, params json.RawMessage) (any, error)
}

// Options of New.
type Options struct {
	Limit    int                           // bytes of a line; 0 = DefaultLimit
	Noise    func(line []byte)             // what is no message; must not keep line
	Late     func(id string)               // a response to an id already settled
	Repaired func(sum [32]byte, bytes int) // a line held bytes that are no UTF-8; SHA-256 of the line as it came, without its end
}

func (o Options) withDefaults() Options {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Noise == nil {
		o.Noise = func([]byte) {}
	}
	if o.Late == nil {
		o.Late = func(string) {}
	}
	if o.Repaired == nil {
		o.Repaired = func([32]byte, int) {}
	}
	return o
}

// Reasons why a connection fails closed. A message that the end of input cut off
// is ErrMalformed and io.ErrUnexpectedEOF.
var (
	ErrMalformed = errors.New("malformed message")
	ErrUnknownID = errors.New("response to an id that was never used")
	ErrClosed    = errors.New("connection is closed")
)

// Conn is one side of a connection.
type Conn struct {
	h      Handler
	opt    Options
	out    *Queue
	ctx    context.Context // ends with the reading
	cancel context.CancelCauseFunc
	slots  chan struct{}
	wg     sync.WaitGroup // requests of the other side
	done   chan struct{}

	mu    sync.Mutex
	next  int64                  // guarded by mu
	calls map[int64]chan message // guarded by mu; nil channel = nobody waits any more
	err   error                  // guarded by mu; why it ended
}

// New starts reading. The connection ends with r, with Close, or with an error;
// closing what is behind r and w is the caller's.
func New(r io.Reader, w io.Writer, h Handler, opt Options) *Conn {
	opt = opt.withDefaults()
	c := &Conn{h: h, opt: opt, out: NewQueue(w), slots: make(chan struct{}, maxRequests), done: make(chan struct{}), calls: map[int64]chan message{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.out.Run()
	}()
	go func() {
		defer close(c.done)
		c.fail(c.read(r))
		c.wg.Wait()
		c.out.Close()
		<-written
	}()
	return c
}

func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.cancel(err)
}

// Done is closed when nothing is read or written any more.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended: io.EOF when the other side closed it.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends all calls; reading and writing end when their streams do.
func (c *Conn) Close() { c.fail(ErrClosed) }

// read handles one message after the other.
func (c *Conn) read(r io.Reader) error {
	return read(c.ctx, r, c.opt, func(v json.RawMessage) error {
		var m message
		if err := json.Unmarshal(v, &m); err != nil {
			return fmt.Errorf("%w: %v", ErrMalformed, err)
		}
		return c.message(m)
	})
}

func (c *Conn) message(m message) error {
	hasID := len(m.ID) > 0 && string(m.ID) != "null"
	switch {
	case m.Method != nil && hasID:
		c.request(m)
	case m.Method != nil:
		c.h.Notify(*m.Method, m.Params)
	case hasID:
		return c.response(m)
	}
	return nil
}

// request waits for a free slot: a side that asks without reading its answers is
// not read either.
func (c *Conn) request(m message) {
	select {
	case c.slots <- struct{}{}:
	case <-c.ctx.Done():
		return
	}
	c.wg.Go(func() {
		res, err := c.h.Request(c.ctx, *m.Method, m.Params)
		line, err := answer(m.ID, res, err)
		if err != nil {
			line, _ = answer(m.ID, nil, fmt.Errorf("the result cannot be encoded: %w", err)) // a text can
		}
		c.out.Add(line, func() { <-c.slots })
	})
}

func (c *Conn) response(m message) error {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	c.mu.Lock()
	known := err == nil && id > 0 && id <= c.next
	ch := c.calls[id]
	delete(c.calls, id)
	if ch != nil {
		ch <- m // has room; under the lock, so that Call finds it or is found
	}
	c.mu.Unlock()
	switch {
	case !known:
		return fmt.Errorf("%w: %.60s", ErrUnknownID, m.ID)
	case ch == nil:
		c.opt.Late(string(m.ID)) // settled before, or its caller went away
	}
	return nil
}

// Notify sends a notification. It does not wait until that is read.
func (c *Conn) Notify(method string, params any) error {
	line, err := Encode(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		return err
	}
	if c.ctx.Err() != nil {
		return c.Err()
	}
	c.out.Add(line, nil)
	return nil
}

// Call sends a request and waits for its result. *Error is the other side's
// refusal; any other error means that the connection or ctx ended. A request
// that was given up is still sent.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ch := make(chan message, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.mu.Unlock()
	line, err := Encode(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.calls[id] = ch
	c.mu.Unlock()
	c.out.Add(line, nil)
	select {
	case m := <-ch:
		return result(m)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.ctx.Done():
		err = c.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case m := <-ch: // it was quicker
		return result(m)
	default:
		c.calls[id] = nil
		return nil, err
	}
}
