package council

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"witan/kernel"
)

// drain is how long the last answers may take once stdin has ended.
const drain = 10 * time.Second

// Relay carries bytes between an agent and the host whose socket and token the
// environment names: it is the whole of `witan council-tools`. It returns nil
// when either side has ended, and does not wait for a read of stdin that never
// ends.
func Relay(ctx context.Context, env func(string) string, stdin io.Reader, stdout io.Writer) error {
	c, err := dial(ctx, env)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	go func() {
		_, err := io.Copy(c, stdin)
		if u, ok := c.(*net.UnixConn); ok && err == nil {
			_ = u.SetReadDeadline(time.Now().Add(drain))
			_ = u.CloseWrite()
			return
		}
		_ = c.Close()
	}()
	_, err = io.Copy(stdout, c)
	var lost *net.OpError
	if ctx.Err() != nil || errors.As(err, &lost) { // the host went first
		return nil
	}
	return err
}

// dial connects to the host and shows the token.
func dial(ctx context.Context, env func(string) string) (net.Conn, error) {
	const op, next = "council.Relay", "this command is started by an agent that Witan runs"
	path, token := env(EnvSocket), env(EnvToken)
	if path == "" || len(token) != 2*tokenBytes {
		return nil, kernel.E(op, kernel.Invalid, nil, "%s and %s do not name a turn", EnvSocket, EnvToken).WithNext(next)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, kernel.E(op, kernel.Unavailable, nil, "the host of this turn is gone").WithNext(next)
	}
	_ = c.SetDeadline(time.Now().Add(helloTimeout))
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	var answer [len(welcome)]byte
	if _, err = io.WriteString(c, token+"\n"); err == nil {
		_, err = io.ReadFull(c, answer[:])
	}
	switch {
	case err != nil:
		err = kernel.E(op, kernel.Unavailable, nil, "the host of this turn does not answer").WithNext(next)
	case string(answer[:]) != welcome:
		err = kernel.E(op, kernel.Cancelled, nil, "this turn is over").WithNext(next)
	default:
		return c, c.SetDeadline(time.Time{})
	}
	_ = c.Close()
	return nil, err
}
