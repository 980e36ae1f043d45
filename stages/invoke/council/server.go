package council

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"witan/kernel"
)

// Bounds of a server.
const (
	maxPath        = 100 // of the socket, in bytes; systems allow little more
	maxConnections = 256
	maxUnknown     = 32 // connections that have not shown a token yet
	helloTimeout   = 10 * time.Second
)

// Server is where the tool servers of all turns connect to.
type Server struct {
	command string // this program
	own     string // a folder made for the socket; "" = none
	l       net.Listener
	quit    context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu        sync.Mutex
	endpoints map[kernel.Digest]*Endpoint // guarded by mu; by the hash of the token
	keyed     map[string]*Endpoint        // guarded by mu
	conns     map[net.Conn]bool           // guarded by mu; true = has shown its token
	unknown   int                         // guarded by mu
}

// Listen opens the socket in dir, which becomes private to this user.
func Listen(dir string) (*Server, error) {
	const op = "council.Listen"
	command, err := os.Executable()
	if err != nil {
		return nil, kernel.E(op, kernel.Unsupported, err, "this program's own path is not known")
	}
	path, own, err := place(dir)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
		if err != nil {
			_ = l.Close()
		}
	}
	if err != nil {
		if own != "" {
			_ = os.RemoveAll(own)
		}
		return nil, kernel.E(op, kernel.ReadOnly, err, "the socket of the agents' tools cannot be opened").WithNext("check that %s can be written", filepath.Dir(path))
	}
	s := &Server{command: command, own: own, l: l, endpoints: map[kernel.Digest]*Endpoint{}, keyed: map[string]*Endpoint{}, conns: map[net.Conn]bool{}}
	s.quit, s.stop = context.WithCancel(context.Background())
	s.wg.Go(s.accept)
	return s, nil
}

// place makes the socket's folder and clears its path. own is a folder that has
// to go with it.
func place(dir string) (path, own string, err error) {
	const op = "council.Listen"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", kernel.E(op, kernel.ReadOnly, err, "the folder of the agents' tools cannot be made")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", "", kernel.E(op, kernel.ReadOnly, err, "the folder of the agents' tools cannot be made private")
	}
	path = filepath.Join(dir, "tools.sock")
	if len(path) > maxPath {
		if own, err = os.MkdirTemp("", "witan-"); err != nil {
			return "", "", kernel.E(op, kernel.ReadOnly, err, "no folder for a socket can be made in the temporary directory")
		}
		return filepath.Join(own, "tools.sock"), own, nil
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return "", "", kernel.E(op, kernel.Locked, nil, "another host serves the agents' tools in this folder")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", kernel.E(op, kernel.ReadOnly, err, "the old socket cannot be removed").WithNext("remove %s", path)
	}
	return path, "", nil
}

// Path is where the socket is.
func (s *Server) Path() string { return s.l.Addr().String() }

// Close ends every connection and turn, and waits for what was under way.
func (s *Server) Close() error {
	s.stop()
	err := s.l.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	var all []*Endpoint
	for _, e := range s.endpoints {
		all = append(all, e)
	}
	s.mu.Unlock()
	for _, e := range all {
		e.Close()
	}
	s.wg.Wait()
	if s.own != "" {
		_ = os.RemoveAll(s.own)
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			if s.quit.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			select { // out of file descriptors, most often: others may close some
			case <-time.After(50 * time.Millisecond):
			case <-s.quit.Done():
				return
			}
			continue
		}
		if !s.admit(c) {
			_ = c.Close()
			continue
		}
		s.wg.Go(func() {
			defer s.leave(c)
			s.serve(c)
		})
	}
}

// admit makes room for a connection, if there is some.
func (s *Server) admit(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quit.Err() != nil || len(s.conns) >= maxConnections || s.unknown >= maxUnknown {
		return false
	}
	s.conns[c] = false
	s.unknown++
	return true
}

// know notes that a connection has shown its token.
func (s *Server) know(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = true
	s.unknown--
}

func (s *Server) leave(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.conns[c] {
		s.unknown--
	}
	delete(s.conns, c)
}
