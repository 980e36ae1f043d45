package council_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"witan/kernel"
	"witan/stages/invoke/council"
)

func TestSocketOfADeadHost(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "tools.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	s, err := council.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := council.Listen(filepath.Join(dir, "file")); !kernel.IsKind(err, kernel.ReadOnly) {
		t.Errorf("a file for a folder: %v", err)
	}
}

func TestOffer(t *testing.T) {
	t.Parallel()
	s := listen(t)
	m, _ := s.Open(newTurn(nil))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "witan" || m.Command != exe || !slices.Equal(m.Args, []string{"council-tools"}) || len(m.Env) != 2 || len(m.Env[council.EnvToken]) != 64 || m.Env[council.EnvSocket] != s.Path() {
		t.Errorf("%+v", m)
	}
	if second, _ := s.Open(newTurn(nil)); second.Env[council.EnvToken] == m.Env[council.EnvToken] {
		t.Error("two turns share a token")
	}
	ses := connect(t, m)
	if info := ses.InitializeResult(); info.ServerInfo.Name != "witan" || info.Capabilities.Tools == nil {
		t.Errorf("%+v", info)
	}
	list, err := ses.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range list.Tools {
		names = append(names, l.Name)
		if l.Description == "" || l.InputSchema.(map[string]any)["type"] != "object" {
			t.Errorf("%+v", l)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"ask", "context", "finding", "receipt"}) {
		t.Errorf("%q", names)
	}
	if _, err := ses.CallTool(t.Context(), &mcp.CallToolParams{Name: "commit"}); err == nil {
		t.Error("there is no such tool")
	}
}

// An endpoint and its clients go on from turn to turn.
func TestTurnAfterTurn(t *testing.T) {
	t.Parallel()
	s := listen(t)
	e := s.Endpoint("conv/alpha")
	nameless := s.Endpoint("")
	if s.Endpoint("conv/alpha") != e || s.Endpoint("conv/beta") == e || s.Endpoint("") == nameless {
		t.Error("an endpoint is that of its key")
	}
	ses := connect(t, e.MCP())
	over := func(when string) {
		t.Helper()
		if text, _ := call(t, ses, "receipt", good); text != "cancelled: this turn is over" {
			t.Errorf("%s: %q", when, text)
		}
	}
	over("before the first turn")
	first, second := newTurn(nil), newTurn(nil)
	endFirst := e.Turn(first)
	call(t, ses, "receipt", good)
	endFirst()
	over("between turns")
	endSecond := e.Turn(second)
	endFirst() // once more: it ends its own turn only
	if text, code := call(t, ses, "receipt", other); code != "" {
		t.Errorf("in the second turn: %q", text)
	}
	third := newTurn(nil)
	endThird := e.Turn(third) // ends the second
	endSecond()
	call(t, ses, "receipt", good)
	endThird()
	for i, h := range []*council.Turn{first, second, third} {
		if got, _ := h.Collect(); (len(got) == 0) || strings.Contains(string(got), "otherwise") != (i == 1) {
			t.Errorf("turn %d has %s", i+1, got)
		}
	}
	e.Close()
	over("after the end")
	e.Turn(newTurn(nil))
	over("a turn of a closed endpoint")
	if err := <-relay(e.MCP()).done; !kernel.IsKind(err, kernel.Cancelled) {
		t.Errorf("a new client of a closed endpoint: %v", err)
	}
	if s.Endpoint("conv/alpha") == e {
		t.Error("a closed endpoint is given out")
	}
}

func TestTwoClients(t *testing.T) {
	t.Parallel()
	s := listen(t)
	h, elsewhere := newTurn(nil), newTurn(nil)
	m, end := s.Open(h)
	m2, _ := s.Open(elsewhere)
	a, b, c := connect(t, m), connect(t, m), connect(t, m2)
	codes := make(chan string, 40)
	for i := range cap(codes) {
		go func() {
			_, code := call(t, []*mcp.ClientSession{a, b}[i%2], "receipt", []string{good, twin, other}[i%3])
			codes <- code
		}()
	}
	n := map[string]int{}
	for range cap(codes) {
		n[<-codes]++
	}
	if n[""]+n["receipt_mismatch"] != cap(codes) || n[""] < 13 || n["receipt_mismatch"] < 13 {
		t.Errorf("%v", n)
	}
	if got, _ := elsewhere.Collect(); got != nil {
		t.Errorf("another turn was given %s", got)
	}
	end()
	if text, code := call(t, c, "receipt", good); code != "" {
		t.Errorf("the end of another turn: %q", text)
	}
}

// What is written before stdin ends is answered.
func TestRelayAnswersTheLastCall(t *testing.T) {
	t.Parallel()
	s := listen(t)
	h := newTurn(nil)
	m, _ := s.Open(h)
	p := relay(m)
	go func() {
		_, _ = io.WriteString(p, hello+`{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"receipt","arguments":`+good+"}}\n")
		_ = p.Close()
	}()
	out, err := io.ReadAll(bufio.NewReader(p))
	if err != nil || !strings.Contains(string(out), `"id":"last"`) || !strings.Contains(string(out), "is taken") {
		t.Errorf("%s, %v", out, err)
	}
	if err := <-p.done; err != nil {
		t.Error(err)
	}
	if got, _ := h.Collect(); got == nil {
		t.Error("the receipt was not taken")
	}
}

// hello begins a session.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

func TestRelayRefuses(t *testing.T) {
	t.Parallel()
	s := listen(t)
	m, _ := s.Open(newTurn(nil))
	path, token := m.Env[council.EnvSocket], m.Env[council.EnvToken]
	wrong := strings.Repeat("0", len(token))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, tt := range map[string]struct {
		ctx         context.Context
		path, token string
		kind        kernel.Kind
	}{
		"no environment": {t.Context(), "", "", kernel.Invalid},
		"short token":    {t.Context(), path, token[1:], kernel.Invalid},
		"wrong token":    {t.Context(), path, wrong, kernel.Cancelled},
		"no host":        {t.Context(), path + "x", token, kernel.Unavailable},
		"stopped":        {stopped, path, token, kernel.Unavailable},
	} {
		env := map[string]string{council.EnvSocket: tt.path, council.EnvToken: tt.token}
		err := council.Relay(tt.ctx, func(k string) string { return env[k] }, strings.NewReader(hello), io.Discard)
		if !kernel.IsKind(err, tt.kind) || err != nil && tt.token != "" && strings.Contains(err.Error(), tt.token) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A relay ends with its host and with its context, though stdin is open.
func TestRelayEnds(t *testing.T) {
	t.Parallel()
	s := listen(t)
	m, _ := s.Open(newTurn(nil))
	ctx, stop := context.WithCancel(t.Context())
	in, w := io.Pipe()
	defer w.Close()
	done := make(chan error, 1)
	out, outW := io.Pipe()
	go func() { done <- council.Relay(ctx, func(k string) string { return m.Env[k] }, in, outW) }()
	_, _ = io.WriteString(w, hello)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	p := relay(m)
	_, _ = io.WriteString(p, hello)
	if line, err := bufio.NewReader(p).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-p.done; err != nil {
		t.Error(err)
	}
}
