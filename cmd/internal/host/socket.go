package host

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"witan/cmd/internal/say"
	"witan/cmd/internal/wire"
	"witan/kernel"
)

// server accepts commands on the host's socket.
type server struct {
	h     *Host
	l     net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu
	ctx   context.Context
	stop  context.CancelFunc
}

// handshakeTimeout bounds how long a connection may stay silent before it has
// said what it wants.
const handshakeTimeout = 10 * time.Second

// listen opens the socket. The caller owns the data directory's lock, so a
// socket file that is there belongs to a dead host and is removed.
func (h *Host) listen() (*server, error) {
	const op = "host.listen"
	path, err := wire.SocketPath(h.opts.Home)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, kernel.E(op, kernel.ReadOnly, err, "the socket folder %s cannot be made", dir).WithNext("set XDG_RUNTIME_DIR to a folder of yours")
	}
	if err := ownedByUs(dir); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, kernel.E(op, kernel.ReadOnly, err, "the old socket cannot be removed").WithNext("remove %s", path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, kernel.E(op, kernel.ReadOnly, err, "the socket %s cannot be opened", path).WithNext("set XDG_RUNTIME_DIR to a folder of yours")
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	s := &server{h: h, l: l, conns: map[net.Conn]struct{}{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.wg.Go(s.accept)
	return s, nil
}

func (s *server) accept() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.wg.Go(func() {
			defer func() {
				c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			}()
			if err := s.serve(c); err != nil {
				s.h.opts.Log.Debug("connection ended", "err", err)
			}
		})
	}
}

// serve answers one connection: hello, request, lines, end.
func (s *server) serve(c net.Conn) error {
	_ = c.SetReadDeadline(time.Now().Add(handshakeTimeout))
	w := wire.NewConn(c)
	var hello wire.Hello
	if err := w.Read(&hello); err != nil {
		return err
	}
	if err := w.Write(wire.Hello{Protocol: wire.Protocol, Version: s.h.opts.Version, PID: os.Getpid(), Serving: s.h.opts.Serving}); err != nil {
		return err
	}
	if hello.Protocol != wire.Protocol {
		return nil // the client says what to do
	}
	var req wire.Request
	if err := w.Read(&req); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.wg.Go(func() { // the caller says nothing more: a read ends when it goes away
		var b [1]byte
		_, _ = c.Read(b[:])
		cancel()
	})
	err := s.h.call(ctx, req.Op, req.Args, func(l json.RawMessage) error { return w.Write(wire.Frame{Line: l}) })
	end := &wire.End{}
	if err != nil {
		end.Error = &wire.Error{Kind: kernel.KindOf(err), What: say.Sentence(err)}
		var x *say.Exit
		if errors.As(err, &x) {
			end.Error.Code = x.Code
		}
	}
	werr := w.Write(wire.Frame{End: end})
	_ = c.Close()
	return werr
}

// linger stops accepting and waits until the served connections are done.
func (s *server) linger(ctx context.Context) {
	_ = s.l.Close()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// close ends everything at once.
func (s *server) close() {
	_ = s.l.Close()
	s.stop()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}
