package modelserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Exchange is one request as the server saw it.
type Exchange struct {
	N      uint64   `json:"n"` // from 1, in order of arrival
	Step   string   `json:"step"`
	Status int      `json:"status"`
	Stream bool     `json:"stream"`
	Tools  []string `json:"tools"`
	User   string   `json:"user"` // text of the newest user turn
}

// Server is a running model server.
type Server struct {
	ln    net.Listener
	http  *http.Server
	serve sync.WaitGroup
}

// Start listens on addr, a literal loopback address with a port (0 = any free
// one), and answers as the scenario says. observe, if not nil, is told of each
// request before it is answered; calls may overlap.
func Start(addr string, s Scenario, observe func(Exchange)) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("modelserver: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("modelserver: %s is not a loopback address (use 127.0.0.1:0)", addr)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("modelserver: %w", err)
	}
	srv := &Server{ln: ln, http: &http.Server{Handler: Handler(s, observe), ReadHeaderTimeout: 10 * time.Second}}
	srv.serve.Go(func() { srv.http.Serve(ln) })
	return srv, nil
}

// URL is the base that agents are configured with; it ends in /v1.
func (s *Server) URL() string { return "http://" + s.ln.Addr().String() + "/v1" }

// Close drops all connections, stalled ones too, and waits for the listener.
func (s *Server) Close() error {
	err := s.http.Close()
	s.serve.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Handler is the server without its listener.
func Handler(s Scenario, observe func(Exchange)) http.Handler {
	if observe == nil {
		observe = func(Exchange) {}
	}
	h := &handler{director: &director{scenario: s, failed: map[string]int{}}, observe: observe}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", h.chat)
	mux.HandleFunc("GET /v1/models", h.models)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, Fail{Status: http.StatusNotFound, Code: "not_found", Message: "no such route: " + r.Method + " " + r.URL.Path})
	})
	return mux
}

type handler struct {
	director *director
	observe  func(Exchange)
	count    atomic.Uint64
}

// maxBody bounds a request; a conversation of an agent is far smaller.
const maxBody = 64 << 20

func (h *handler) models(w http.ResponseWriter, _ *http.Request) {
	names := h.director.scenario.Models
	if len(names) == 0 {
		names = []string{"scripted"}
	}
	list := []any{}
	for _, n := range names {
		list = append(list, map[string]any{"id": n, "object": "model", "created": 1, "owned_by": "script"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (h *handler) chat(w http.ResponseWriter, r *http.Request) {
	n := h.count.Add(1)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeError(w, Fail{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: err.Error()})
		return
	}
	req, err := parseChat(body)
	if err != nil {
		h.observe(Exchange{N: n, Step: "unreadable", Status: http.StatusBadRequest})
		writeError(w, Fail{Status: http.StatusBadRequest, Code: "invalid_request", Message: err.Error()})
		return
	}
	step, label := h.director.choose(req)
	ans := reply{id: fmt.Sprintf("chatcmpl-%d", n), model: req.model, step: step}
	for i, u := range step.Use {
		c, err := resolve(u, req.tools, fmt.Sprintf("call_%d_%d", n, i))
		if err != nil {
			// Said in the answer, so that the test that reads it sees why.
			ans.step.Say += " [" + err.Error() + "]"
			continue
		}
		ans.calls = append(ans.calls, c)
	}
	h.observe(exchange(n, label, req, step))
	if !pause(r.Context(), time.Duration(step.WaitMS)*time.Millisecond) {
		return
	}
	switch {
	case step.Fail != nil:
		writeError(w, *step.Fail)
	case req.stream:
		stream(w, r, ans, req.usage)
	default:
		answer(w, r, ans)
	}
}

func exchange(n uint64, label string, req request, step Step) Exchange {
	e := Exchange{N: n, Step: label, Status: http.StatusOK, Stream: req.stream, Tools: []string{}}
	if step.Fail != nil {
		e.Status = step.Fail.Status
	}
	for _, t := range req.tools {
		e.Tools = append(e.Tools, t.name)
	}
	for _, t := range req.turns {
		if t.role == "user" {
			e.User = t.text
		}
	}
	return e
}

// stream sends the answer as server-sent events.
func stream(w http.ResponseWriter, r *http.Request, ans reply, usage bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	send := func(b []byte) {
		fmt.Fprintf(w, "data: %s\n\n", b)
		flush.Flush()
	}
	send(mustJSON(ans.chunk(map[string]any{"role": "assistant", "content": ""}, nil)))
	deltas := ans.deltas()
	for i, d := range deltas {
		breakOff(r.Context(), ans.step, i)
		send(mustJSON(ans.chunk(d, nil)))
	}
	breakOff(r.Context(), ans.step, len(deltas))
	send(mustJSON(ans.chunk(map[string]any{}, ans.finish())))
	if usage {
		last := ans.envelope("chat.completion.chunk")
		last["usage"] = ans.tokens()
		send(mustJSON(last))
	}
	send([]byte("[DONE]"))
}

// answer sends it whole. A cut or a stall holds here too, in the middle of the
// body: some agents ask again without streaming after a broken stream.
func answer(w http.ResponseWriter, r *http.Request, ans reply) {
	b := mustJSON(ans.whole())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	if ans.step.Cut != nil || ans.step.Stall != nil {
		w.Write(b[:len(b)/2])
		http.NewResponseController(w).Flush()
		breakOff(r.Context(), ans.step, len(b))
	}
	w.Write(b)
}

// breakOff ends the connection, at once or when the client gives up, if the
// step says so after sent chunks.
func breakOff(ctx context.Context, s Step, sent int) {
	if s.Stall != nil && sent >= *s.Stall {
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	}
	if s.Cut != nil && sent >= *s.Cut {
		panic(http.ErrAbortHandler)
	}
}

// pause reports whether d passed; false means that the client is gone.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func writeError(w http.ResponseWriter, f Fail) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	kind, code := "server_error", "server_error"
	switch {
	case f.Status == http.StatusUnauthorized:
		kind, code = "invalid_request_error", "invalid_api_key"
	case f.Status == http.StatusTooManyRequests:
		kind, code = "rate_limit_error", "rate_limit_exceeded"
	case f.Status < 500:
		kind, code = "invalid_request_error", "invalid_request"
	}
	writeJSON(w, f.Status, map[string]any{"error": map[string]any{
		"message": or(f.Message, http.StatusText(f.Status)), "type": kind, "param": nil, "code": or(f.Code, code)}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}
