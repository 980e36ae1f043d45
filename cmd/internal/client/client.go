// Package client talks to a running host over its socket.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"witan/cmd/internal/say"
	"witan/cmd/internal/wire"
	"witan/kernel"
)

// Client is a connection factory to one host.
type Client struct {
	path    string
	version string
	Host    wire.Hello // what the host said of itself
}

// dialTimeout bounds the handshake: a host answers at once or is not one.
const dialTimeout = 5 * time.Second

// Dial finds the host of a data directory. Unavailable means that nobody listens.
func Dial(ctx context.Context, home, version string) (*Client, error) {
	path, err := wire.SocketPath(home)
	if err != nil {
		return nil, err
	}
	c := &Client{path: path, version: version}
	conn, _, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return c, conn.Close()
}

func (c *Client) connect(ctx context.Context) (net.Conn, *wire.Conn, error) {
	const op = "client.connect"
	d := net.Dialer{Timeout: dialTimeout}
	nc, err := d.DialContext(ctx, "unix", c.path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, nil, kernel.E(op, kernel.Unavailable, nil, "no host is running")
		}
		return nil, nil, kernel.E(op, kernel.Unavailable, err, "the host's socket cannot be used")
	}
	_ = nc.SetDeadline(time.Now().Add(dialTimeout))
	w := wire.NewConn(nc)
	err = w.Write(wire.Hello{Protocol: wire.Protocol, Version: c.version})
	if err == nil {
		err = w.Read(&c.Host)
	}
	if err != nil {
		nc.Close()
		return nil, nil, kernel.E(op, kernel.Unavailable, err, "the host does not answer")
	}
	if c.Host.Protocol != wire.Protocol {
		nc.Close()
		return nil, nil, kernel.E(op, kernel.Newer, nil, "the running host speaks protocol %d (version %s), this command %d",
			c.Host.Protocol, c.Host.Version, wire.Protocol).WithNext("stop the host, or use the same version of witan")
	}
	return nc, w, nc.SetDeadline(time.Time{})
}

// Call runs one operation; emit gets its lines. Ending ctx ends the call, not
// what the host works on.
func (c *Client) Call(ctx context.Context, op string, args any, emit func(json.RawMessage) error) error {
	nc, w, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	if err := w.Write(wire.Request{Op: op, Args: raw}); err != nil {
		return lost(ctx, err)
	}
	for {
		var f wire.Frame
		if err := w.Read(&f); err != nil {
			return lost(ctx, err)
		}
		if f.End != nil {
			return remote(f.End.Error)
		}
		if err := emit(f.Line); err != nil {
			return err
		}
	}
}

func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return kernel.E("client.Call", kernel.Interrupted, nil, "the host went away").WithNext("run witan resume to go on")
	}
	return kernel.E("client.Call", kernel.Unavailable, err, "the connection to the host broke")
}

// remote rebuilds the host's error: its sentence is ready for a person.
func remote(e *wire.Error) error {
	switch {
	case e == nil:
		return nil
	case e.Code != 0:
		return &say.Exit{Code: e.Code, Text: e.What}
	}
	return &kernel.Error{Op: "host", Kind: e.Kind, What: e.What}
}
