package jsonrpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// DefaultLimit bounds one line, in bytes.
const DefaultLimit = 16 << 20

const maxRequests = 64 // of the other side at the same time

// Handler is what the other side can call. Both may be called from the reading
// goroutine's order: Notify one after the other, Request each in its own goroutine.
type Handler interface {
	Notify(method string, params json.RawMessage)
	Request(ctx context.Context, method string, params json.RawMessage) (any, error)
}

// Options of New.
type Options struct {
	Limit int               // bytes of a line; 0 = DefaultLimit
	Noise func(line []byte) // what is no message; must not keep line
	Late  func(id string)   // a response to an id already settled
}

// Error is a JSON-RPC error of the other side. Code is 0 when it was no number.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// NotFound is the answer to a method that a Handler does not have.
func NotFound(method string) *Error {
	return &Error{Code: -32601, Message: "method not found: " + method}
}

// LineError says that a line was over the limit.
type LineError struct{ Bytes, Limit int64 }

func (e *LineError) Error() string {
	return fmt.Sprintf("a line of %d bytes is over the limit of %d", e.Bytes, e.Limit)
}

// Reasons why a connection fails closed.
var (
	ErrMalformed = errors.New("malformed message")
	ErrUnknownID = errors.New("response to an id that was never used")
	ErrClosed    = errors.New("connection is closed")
)

// Conn is one side of a connection.
type Conn struct {
	w      io.Writer
	h      Handler
	opt    Options
	ctx    context.Context
	cancel context.CancelCauseFunc
	slots  chan struct{}
	wg     sync.WaitGroup
	done   chan struct{}

	wmu sync.Mutex // one message at a time

	mu    sync.Mutex
	next  int64                  // guarded by mu
	calls map[int64]chan message // guarded by mu; nil channel = nobody waits any more
	err   error                  // guarded by mu; why it ended
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// New starts reading. The connection ends with r, with Close, or with an error;
// closing what is behind r is the caller's.
func New(r io.Reader, w io.Writer, h Handler, opt Options) *Conn {
	if opt.Limit <= 0 {
		opt.Limit = DefaultLimit
	}
	if opt.Noise == nil {
		opt.Noise = func([]byte) {}
	}
	if opt.Late == nil {
		opt.Late = func(string) {}
	}
	c := &Conn{w: w, h: h, opt: opt, slots: make(chan struct{}, maxRequests), done: make(chan struct{}), calls: map[int64]chan message{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	go func() {
		err := c.read(bufio.NewReaderSize(r, 64<<10))
		c.fail(err)
		c.wg.Wait()
		close(c.done)
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

// Done is closed when nothing is read any more.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended: io.EOF when the other side closed it.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends all calls; reading ends when r does.
func (c *Conn) Close() { c.fail(ErrClosed) }

// read handles one line after the other.
func (c *Conn) read(r *bufio.Reader) error {
	first := true
	for {
		line, err := readLine(r, c.opt.Limit)
		if first {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			first = false
		}
		if herr := c.line(bytes.TrimSpace(line)); herr != nil {
			return herr
		}
		if err != nil {
			return err
		}
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
	}
}

// readLine reads up to a line end. Behind the limit it counts and keeps nothing.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	total := int64(0)
	for {
		part, err := r.ReadSlice('\n')
		total += int64(len(part))
		if total <= int64(limit)+1 {
			line = append(line, part...)
		} else {
			line = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if total > int64(limit)+1 {
			return nil, &LineError{total, int64(limit)}
		}
		return line, err
	}
}

// line handles the values of one line.
func (c *Conn) line(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	if line[0] != '{' {
		c.opt.Noise(line)
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	for {
		var m message
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			c.opt.Noise(line)
			return fmt.Errorf("%w: %v", ErrMalformed, err)
		}
		if err := c.message(m); err != nil {
			return err
		}
	}
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

func (c *Conn) request(m message) {
	select {
	case c.slots <- struct{}{}:
	case <-c.ctx.Done():
		return
	}
	c.wg.Go(func() {
		defer func() { <-c.slots }()
		res, err := c.h.Request(c.ctx, *m.Method, m.Params)
		out := map[string]any{"jsonrpc": "2.0", "id": m.ID}
		var e *Error
		switch {
		case errors.As(err, &e):
			out["error"] = e
		case err != nil:
			out["error"] = &Error{Code: -32603, Message: err.Error()}
		default:
			out["result"] = res
		}
		_ = c.send(out) // a side that is gone needs no answer
	})
}

func (c *Conn) response(m message) error {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	c.mu.Lock()
	ch, ok := c.calls[id]
	known := err == nil && id > 0 && id <= c.next
	delete(c.calls, id)
	c.mu.Unlock()
	switch {
	case !known:
		return fmt.Errorf("%w: %.60s", ErrUnknownID, m.ID)
	case !ok:
		c.opt.Late(string(m.ID))
		return nil
	case ch == nil:
		c.opt.Late(string(m.ID)) // its caller went away
		return nil
	}
	ch <- m
	return nil
}

func (c *Conn) send(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	_, err := c.w.Write(b.Bytes())
	return err
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	return c.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// Call sends a request and waits for its result. *Error is the other side's
// refusal; any other error means that the connection or ctx ended.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ch := make(chan message, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.calls[id] = ch
	c.mu.Unlock()
	if err := c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		select { // what ended the reading says more than a broken pipe
		case <-c.ctx.Done():
			return nil, c.Err()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-c.done:
			return nil, c.Err()
		}
	}
	select {
	case m := <-ch:
		return result(m)
	case <-ctx.Done():
		c.mu.Lock()
		if _, ok := c.calls[id]; ok {
			c.calls[id] = nil
		}
		c.mu.Unlock()
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		select {
		case m := <-ch:
			return result(m)
		default:
			return nil, c.Err()
		}
	}
}

// result decodes a response; in the wild error.code may be a text.
func result(m message) (json.RawMessage, error) {
	if len(m.Error) == 0 || string(m.Error) == "null" {
		return m.Result, nil
	}
	var loose struct {
		Code    any             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	e := &Error{Message: "unreadable error"}
	if err := json.Unmarshal(m.Error, &loose); err == nil {
		e.Message, e.Data = loose.Message, loose.Data
		switch v := loose.Code.(type) {
		case float64:
			e.Code = int(v)
		case string:
			e.Code, _ = strconv.Atoi(v)
		}
	}
	return nil, e
}
