package council

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"sync"

	"witan/kernel"
)

// Handler answers the tools of one turn. Its methods are called concurrently and
// obey ctx, which ends with the turn and with the client. A *kernel.Error or a
// *receipts.Error is shown to the agent with its code.
type Handler interface {
	// Receipt takes the receipt object as the agent wrote it.
	Receipt(ctx context.Context, raw json.RawMessage) error
	// Context is an item of the pack, at most MaxContext bytes.
	Context(ctx context.Context, id string) (string, error)
	// Ask waits for a person.
	Ask(ctx context.Context, question string, options []string) (string, error)
	// Finding takes a finding whose fields are within their bounds, and names it.
	Finding(ctx context.Context, o kernel.Outcome) (kernel.OutcomeID, error)
}

// The environment of a tool server, and the argument that starts it.
const (
	EnvSocket = "WITAN_TOOLS_SOCKET"
	EnvToken  = "WITAN_TOOLS_TOKEN"
	Argument  = "council-tools"
)

const tokenBytes = 32

// Endpoint is the tool server of one agent's session: one MCP server that lives
// on over several turns, one after another.
type Endpoint struct {
	s     *Server
	key   string
	token string

	turning sync.Mutex // one change of the turn at a time

	mu     sync.Mutex
	turn   *running // guarded by mu; nil between turns
	closed bool     // guarded by mu
}

// running is a turn with the calls that it has to answer.
type running struct {
	h     Handler
	ctx   context.Context
	end   context.CancelFunc
	calls sync.WaitGroup // Add only while it is an endpoint's turn, under the endpoint's mu
}

// Endpoint returns the endpoint of key, which names a session; it is made when
// there is none. "" is always a new one. Two turns that may be on at the same
// time need two keys.
func (s *Server) Endpoint(key string) *Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keyed[key]; e != nil && key != "" {
		return e
	}
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	e := &Endpoint{s: s, key: key, token: hex.EncodeToString(b[:])}
	if s.quit.Err() != nil {
		e.closed = true
		return e
	}
	s.endpoints[hashed(e.token)] = e
	if key != "" {
		s.keyed[key] = e
	}
	return e
}

// Open serves one turn on an endpoint of its own. end ends the turn and takes no
// new connection; those that are there are told that the turn is over.
func (s *Server) Open(h Handler) (m kernel.MCPServer, end func()) {
	e := s.Endpoint("")
	over := e.Turn(h)
	return e.MCP(), func() {
		over()
		e.forget()
	}
}

// hashed is what a token is looked up by, so that the time of a look-up says
// nothing about tokens.
func hashed(token string) kernel.Digest {
	return kernel.SumDomain("council/token/1", []byte(token))
}

// MCP is the server as an agent is offered it: the same for all turns.
func (e *Endpoint) MCP() kernel.MCPServer {
	return kernel.MCPServer{Name: "witan", Command: e.s.command, Args: []string{Argument},
		Env: map[string]string{EnvSocket: e.s.Path(), EnvToken: e.token}}
}

// Turn lets h answer from here on; a turn that was on before is ended first.
// over ends it and returns when its calls have, so it must not be called by h.
func (e *Endpoint) Turn(h Handler) (over func()) {
	r := &running{h: h}
	r.ctx, r.end = context.WithCancel(context.Background())
	e.turning.Lock()
	defer e.turning.Unlock()
	e.finish(nil)
	e.mu.Lock()
	if !e.closed {
		e.turn = r
	}
	e.mu.Unlock()
	return func() {
		e.turning.Lock()
		defer e.turning.Unlock()
		e.finish(r)
	}
}

// finish ends the turn that is on, if it is the given one or that is nil, and
// waits for its calls.
func (e *Endpoint) finish(only *running) {
	e.mu.Lock()
	r := e.turn
	if r != nil && (only == nil || r == only) {
		e.turn = nil
	}
	e.mu.Unlock()
	if only != nil {
		r = only
	}
	if r != nil {
		r.end()
		r.calls.Wait()
	}
}

// begin lets a call belong to the turn that is on. done is called after it.
func (e *Endpoint) begin() (r *running, done func(), on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.turn == nil {
		return nil, nil, false
	}
	r = e.turn
	r.calls.Add(1)
	return r, r.calls.Done, true
}

// forget takes no new connection.
func (e *Endpoint) forget() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	delete(e.s.endpoints, hashed(e.token))
	if e.s.keyed[e.key] == e {
		delete(e.s.keyed, e.key)
	}
}

// Close ends the turn that is on, and the endpoint: nobody connects to it again.
func (e *Endpoint) Close() {
	e.forget()
	e.turning.Lock()
	defer e.turning.Unlock()
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.finish(nil)
}
