package builtin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"witan/kernel"
)

// maxLine bounds one message of the client, in bytes.
const maxLine = 16 << 20

// JSON-RPC error codes.
const (
	codeInvalid  = -32602
	codeMissing  = -32601
	codeBusy     = -32600
	codeInternal = -32603
)

// message is any JSON-RPC message that a client sends.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// meta is our part of the protocol's _meta.
type meta struct {
	Witan struct {
		State string `json:"state"`
	} `json:"witan"`
}

type session struct {
	id   string
	cwd  string
	meta meta
	stop context.CancelCauseFunc // of the running turn, nil when none runs
}

// errCancelled is why a turn ends that the client cancelled.
var errCancelled = errors.New("cancelled by the client")

type server struct {
	ctx   context.Context
	agent Agent
	turns sync.WaitGroup

	out sync.Mutex // one message at a time
	w   io.Writer

	mu       sync.Mutex
	sessions map[string]*session
}

// Serve speaks ACP as agent until r ends, a message is malformed or ctx is done.
// It returns when every turn has ended; the end of r is no error. r and w are
// closed then, if they can be.
func Serve(ctx context.Context, r io.Reader, w io.Writer, agent Agent) error {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &server{ctx: ctx, agent: agent, w: w, sessions: map[string]*session{}}
	unblock := context.AfterFunc(ctx, func() { closeIt(r); closeIt(w) })
	err := s.read(r)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(io.EOF)
	s.turns.Wait()
	unblock()
	closeIt(r)
	closeIt(w)
	return err
}

// closeIt ends one side of a pipe, which has no error that matters here.
func closeIt(v any) {
	if c, ok := v.(io.Closer); ok {
		_ = c.Close()
	}
}

func (s *server) read(r io.Reader) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64<<10), maxLine)
	for in.Scan() {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return kernel.E("builtin.Serve", kernel.Invalid, err, "the client sent a malformed message")
		}
		if m.Method == "" {
			continue // a response; nothing is ever asked
		}
		if err := s.handle(m); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return kernel.E("builtin.Serve", kernel.Unavailable, err, "the client cannot be read")
	}
	return nil
}

// handle answers at once, but for a prompt, which answers when its turn ends.
func (s *server) handle(m message) error {
	result, err := s.call(m)
	if m.ID == nil || result == nil && err == nil {
		return nil
	}
	return s.answer(m.ID, result, err)
}

// call returns neither result nor error for what has no answer yet.
func (s *server) call(m message) (any, error) {
	switch m.Method {
	case "initialize":
		info := s.agent.Info()
		return map[string]any{
			"protocolVersion":   1,
			"agentCapabilities": map[string]any{"loadSession": false, "promptCapabilities": map[string]any{}},
			"agentInfo":         map[string]any{"name": info.ID, "title": info.Name, "version": "1"},
			"authMethods":       []any{},
		}, nil
	case "session/new":
		return s.open(m.Params)
	case "session/prompt":
		return nil, s.prompt(m)
	case "session/cancel":
		s.cancel(m.Params)
		return nil, nil
	}
	return nil, &rpcError{codeMissing, "method not found: " + m.Method}
}

func (s *server) open(params json.RawMessage) (any, error) {
	var p struct {
		Cwd  string `json:"cwd"`
		Meta meta   `json:"_meta"`
	}
	if err := json.Unmarshal(params, &p); err != nil || !filepath.IsAbs(p.Cwd) {
		return nil, &rpcError{codeInvalid, "cwd must be an absolute path"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("%s-%d", s.agent.Info().ID, len(s.sessions)+1)
	s.sessions[id] = &session{id: id, cwd: p.Cwd, meta: p.Meta}
	return map[string]any{"sessionId": id}, nil
}

func (s *server) cancel(params json.RawMessage) {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ses := s.sessions[p.SessionID]; ses != nil && ses.stop != nil {
		ses.stop(errCancelled)
	}
}

// prompt starts a turn.
func (s *server) prompt(m message) error {
	var p struct {
		SessionID string `json:"sessionId"`
		Prompt    []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"prompt"`
		Meta meta `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return &rpcError{codeInvalid, "the prompt is malformed"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := s.sessions[p.SessionID]
	if ses == nil {
		return &rpcError{codeInvalid, "unknown session"}
	}
	if ses.stop != nil {
		return &rpcError{codeBusy, "a turn of this session is running"}
	}
	var text []byte
	for _, b := range p.Prompt {
		if b.Type == "text" {
			text = append(text, b.Text...)
		}
	}
	state := p.Meta.Witan.State
	if state == "" {
		state = ses.meta.Witan.State
	}
	ctx, stop := context.WithCancelCause(s.ctx)
	ses.stop = stop
	s.turns.Go(func() {
		result, err := s.turn(ctx, ses, string(text), state)
		s.mu.Lock()
		ses.stop = nil
		s.mu.Unlock()
		stop(nil)
		_ = s.answer(m.ID, result, err) // a client that is gone needs no answer
	})
	return nil
}

// answer sends a response. Errors are the writer's.
func (s *server) answer(id json.RawMessage, result any, err error) error {
	out := map[string]any{"jsonrpc": "2.0", "id": id, "result": result}
	if err != nil {
		var e *rpcError
		if !errors.As(err, &e) {
			e = &rpcError{codeInternal, sentence(err)}
		}
		delete(out, "result")
		out["error"] = e
	}
	return s.send(out)
}

// sentence is an error as a person should read it.
func sentence(err error) string {
	var e *kernel.Error
	if errors.As(err, &e) && e.What != "" {
		if e.Next != "" {
			return e.What + "; " + e.Next
		}
		return e.What
	}
	return err.Error()
}

func (s *server) notify(method string, params any) error {
	return s.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

func (s *server) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return kernel.E("builtin.Serve", kernel.Internal, err, "a message cannot be encoded")
	}
	s.out.Lock()
	defer s.out.Unlock()
	if _, err := s.w.Write(append(b, '\n')); err != nil {
		return kernel.E("builtin.Serve", kernel.Unavailable, err, "the client is gone")
	}
	return nil
}

// stateFolder returns the turn's folder, and what to do when it ends.
func stateFolder(given string) (dir string, done func(), err error) {
	if given != "" {
		return given, func() {}, os.MkdirAll(given, 0o700)
	}
	dir, err = os.MkdirTemp("", "witan-turn-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
