package council

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of a connection.
const (
	maxLine      = 1 << 20 // arguments within their bound fit, however they are escaped
	maxInFlight  = 16      // requests without an answer; further ones wait unread
	writeTimeout = 30 * time.Second
)

// window is the transport of one connection. A client that does not read its
// answers is not read any more either, and is dropped in the end.
type window struct {
	conn net.Conn
	gone func() // called when nothing more can be read
}

func (w *window) Connect(ctx context.Context) (mcp.Connection, error) {
	in := &mcp.IOTransport{Reader: w.conn, Writer: patient{w.conn}, MaxLineLength: maxLine}
	c, err := in.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &windowed{Connection: c, gone: w.gone, room: make(chan struct{}, maxInFlight), over: make(chan struct{})}, nil
}

// patient bounds how long a write may wait for its reader.
type patient struct{ net.Conn }

func (p patient) Write(b []byte) (int, error) {
	_ = p.SetWriteDeadline(time.Now().Add(writeTimeout))
	return p.Conn.Write(b)
}

type windowed struct {
	mcp.Connection
	gone func()
	room chan struct{} // holds a token for each request without an answer
	over chan struct{}
	once sync.Once
}

func (c *windowed) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		c.gone()
		c.settle()
		return m, err
	}
	if r, ok := m.(*jsonrpc.Request); !ok || !r.IsCall() {
		return m, nil
	}
	select {
	case c.room <- struct{}{}:
		return m, nil
	case <-c.over:
	case <-ctx.Done():
	}
	c.gone()
	return nil, io.EOF
}

// settle waits until the requests so far have their answers: once its reader has
// failed, the SDK drops those that it has not begun with.
func (c *windowed) settle() {
	late := time.NewTimer(writeTimeout)
	defer late.Stop()
	for range maxInFlight {
		select {
		case c.room <- struct{}{}:
		case <-c.over:
			return
		case <-late.C:
			return
		}
	}
}

func (c *windowed) Write(ctx context.Context, m jsonrpc.Message) error {
	if _, ok := m.(*jsonrpc.Response); ok {
		defer func() {
			select {
			case <-c.room:
			default: // an answer to what was no request
			}
		}()
	}
	err := c.Connection.Write(ctx, m)
	if err != nil && ctx.Err() == nil { // nobody reads it
		c.gone()
		c.once.Do(func() { close(c.over) })
	}
	return err
}

func (c *windowed) Close() error {
	c.once.Do(func() { close(c.over) })
	return c.Connection.Close()
}
