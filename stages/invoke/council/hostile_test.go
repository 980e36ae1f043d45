package council_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"witan/kernel"
	"witan/stages/invoke/council"
)

// patience only ends a test that is broken; it is less than what the server waits
// for a client that hangs.
const patience = 20 * time.Second

// raw is a connection that says what a test wants.
func raw(t *testing.T, m kernel.MCPServer, first string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", m.Env[council.EnvSocket])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, first); err != nil {
		t.Fatal(err)
	}
	return c
}

// session is a connection with a begun session.
func session(t *testing.T, m kernel.MCPServer) net.Conn {
	t.Helper()
	c := raw(t, m, m.Env[council.EnvToken]+"\n"+hello)
	in := bufio.NewReader(c)
	for _, want := range []string{"ok\n", `"serverInfo"`} {
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Fatalf("%q, %v", line, err)
		}
	}
	return c
}

func TestNoTokenNoWord(t *testing.T) {
	t.Parallel()
	s := listen(t)
	m, _ := s.Open(newTurn(nil))
	token := m.Env[council.EnvToken]
	for name, first := range map[string]string{
		"another token": strings.Repeat("a", len(token)) + "\n" + hello, "upper case": strings.ToUpper(token) + "\n" + hello,
		"no line": token + hello, "a longer one": token + "0\n" + hello, "bytes": strings.Repeat("\x00\xff", 400), "at once": hello,
	} {
		c := raw(t, m, first)
		b, _ := io.ReadAll(c) // a reset is an end as well
		if string(b) != "no\n" && len(b) > 0 {
			t.Errorf("%s: the server says %q", name, b)
		}
	}
	short := raw(t, m, token[:40])
	_ = short.(*net.UnixConn).CloseWrite()
	if b, err := io.ReadAll(short); err != nil || len(b) > 0 {
		t.Errorf("half a token: %q, %v", b, err)
	}
	connect(t, m)
}

// Whatever a client sends ends that client alone.
func TestGarbage(t *testing.T) {
	t.Parallel()
	s := listen(t)
	h := newTurn(nil)
	m, _ := s.Open(h)
	beside := connect(t, m)
	for name, send := range map[string]string{
		"bytes":       "\x00\xff\xfe{{{\n",
		"no protocol": "GET / HTTP/1.1\r\n\r\n",
		"no object":   "42\n",
		"empty batch": "[]\n",
		"half frame":  `{"jsonrpc":"2.0","id":2,"method":"tools/ca`,
		"two in one":  `{"jsonrpc":"2.0","id":2,"method":"ping"}{"jsonrpc":"2.0","id":3,"method":"ping"}` + "\n",
		"deep":        strings.Repeat("[", 100_000) + "\n",
		"10 MiB":      `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"receipt","arguments":{"summary":"` + strings.Repeat("x", 10<<20) + `"}}}` + "\n",
	} {
		c := session(t, m)
		_, _ = io.WriteString(c, send) // the server may close before all of it is read
		_ = c.(*net.UnixConn).CloseWrite()
		if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: the connection does not end: %v", name, err)
		}
		if _, code := call(t, beside, "receipt", `{}`); code != "receipt_invalid" {
			t.Errorf("%s: another client gets %q", name, code)
		}
	}
	if got, found := h.Collect(); got != nil || found != nil {
		t.Errorf("%s, %v", got, found)
	}
}

// Arguments that are no object are refused by their reader, not by a crash.
func TestOddArguments(t *testing.T) {
	t.Parallel()
	s := listen(t)
	m, _ := s.Open(newTurn(nil))
	c := session(t, m)
	in := bufio.NewReader(c)
	for _, args := range []string{`null`, `[]`, `"x"`, `{"":""}`, strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), `{"question":"` + `\ud800` + `"}`} {
		for _, tool := range []string{"receipt", "context", "ask", "finding"} {
			if _, err := fmt.Fprintf(c, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", tool, args); err != nil {
				t.Fatal(err)
			}
			line, err := in.ReadString('\n')
			if err != nil || !strings.Contains(line, `"id":9`) || !strings.Contains(line, `_invalid`) && !strings.Contains(line, `"error"`) && !strings.Contains(line, "unsupported") {
				t.Errorf("%s %.40s: %s, %v", tool, args, line, err)
			}
		}
	}
}

// waiting is a person who does not answer before the question is withdrawn.
type waiting struct {
	asked     chan struct{}
	withdrawn chan struct{}
}

func newWaiting() waiting { return waiting{make(chan struct{}, 1000), make(chan struct{}, 1000)} }

func (w waiting) ask(ctx context.Context, _ kernel.Question) (kernel.Answer, error) {
	w.asked <- struct{}{}
	<-ctx.Done()
	w.withdrawn <- struct{}{}
	return kernel.Answer{}, ctx.Err()
}

func within(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

func question(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Colour %v?"}}}`+"\n", id, id)
}

func TestClientVanishesWhileAsking(t *testing.T) {
	t.Parallel()
	s := listen(t)
	w := newWaiting()
	h := newTurn(w.ask)
	m, _ := s.Open(h)
	c := session(t, m)
	_, _ = io.WriteString(c, question(2))
	within(t, w.asked, "the question")
	if !h.Waiting() {
		t.Error("the turn does not say that a person is asked")
	}
	_ = c.Close()
	within(t, w.withdrawn, "its withdrawal")
	if text, code := call(t, connect(t, m), "receipt", good); code != "" {
		t.Errorf("the next client: %q", text)
	}
}

func TestTurnEndsWhileAsking(t *testing.T) {
	t.Parallel()
	s := listen(t)
	w := newWaiting()
	h := newTurn(w.ask)
	m, end := s.Open(h)
	ses := connect(t, m)
	told := make(chan string, 1)
	go func() {
		text, _ := call(t, ses, "ask", `{"question":"Colour?"}`)
		told <- text
	}()
	within(t, w.asked, "the question")
	end()
	select {
	case <-w.withdrawn:
	default:
		t.Error("the turn is over and its question is open")
	}
	if h.Waiting() {
		t.Error("a person is asked in a turn that is over")
	}
	if text := <-told; text != "cancelled: this turn is over" {
		t.Errorf("%q", text)
	}
}

func TestOpenQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	s := listen(t)
	w := newWaiting()
	m, _ := s.Open(newTurn(w.ask))
	c := session(t, m)
	in := bufio.NewReader(c)
	for i := range 8 {
		_, _ = io.WriteString(c, question(i+10))
		within(t, w.asked, "a question")
	}
	_, _ = io.WriteString(c, question(100))
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, `"id":100`) || !strings.Contains(line, "conflict: 8 questions") {
		t.Fatalf("%s, %v", line, err)
	}
	for i := range 300 { // more than there is room for: those that are given up leave theirs
		id := 10 + i%8
		_, _ = fmt.Fprintf(c, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
		within(t, w.withdrawn, "a withdrawal")
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, fmt.Sprintf(`"id":%d,`, id)) || strings.Contains(line, fmt.Sprintf(`"id":%d}`, id)) {
				break
			}
		}
		_, _ = io.WriteString(c, question(id))
		within(t, w.asked, "the next question")
	}
}

// A client that floods and does not read is not read either.
func TestFloodWithoutReading(t *testing.T) {
	t.Parallel()
	s := listen(t)
	h := &counting{Turn: newTurn(nil)}
	m, end := s.Open(h)
	c := session(t, m)
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "ID", "method": "tools/call", "params": map[string]any{"name": "context", "arguments": map[string]any{"id": "big"}}})
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for i := 0; err == nil && sent < 64<<20; i++ {
		var n int
		n, err = io.WriteString(c, strings.Replace(string(b), `"ID"`, fmt.Sprint(i+10), 1)+"\n")
		sent += n
	}
	if err == nil {
		t.Errorf("%d bytes of requests are read, and no answer is", sent)
	}
	if n := h.calls.Load(); n > 64 { // 16 wait for their turn to be written, and a few fit into the socket
		t.Errorf("%d calls are answered, and no answer is read", n)
	}
	if text, code := call(t, connect(t, m), "receipt", good); code != "" {
		t.Errorf("another client: %q", text)
	}
	end()
}

// counting counts the calls.
type counting struct {
	*council.Turn
	calls atomic.Int64
}

func (c *counting) Context(context.Context, string) (string, error) {
	c.calls.Add(1)
	return strings.Repeat("x", 64<<10), nil
}

func TestCloseWhileAllIsUnderWay(t *testing.T) {
	t.Parallel()
	s := listen(t)
	w := newWaiting()
	m, _ := s.Open(newTurn(w.ask))
	e := s.Endpoint("kept")
	e.Turn(newTurn(w.ask))
	for _, m := range []kernel.MCPServer{m, e.MCP()} {
		c := session(t, m)
		_, _ = io.WriteString(c, question(2))
		within(t, w.asked, "the question")
	}
	raw(t, m, "half a tok") // has not said what it wants
	session(t, m)           // says nothing more
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		select {
		case <-w.withdrawn:
		default:
			t.Error("the server is closed and a question is open")
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if err := <-relay(s.Endpoint("late").MCP()).done; !kernel.IsKind(err, kernel.Unavailable) {
		t.Errorf("an endpoint of a closed server: %v", err)
	}
}

// Many clients come and go, and the limit is on those that are there.
func TestClientsComeAndGo(t *testing.T) {
	t.Parallel()
	s := listen(t)
	m, _ := s.Open(newTurn(nil))
	for range 400 {
		_ = session(t, m).Close()
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	p := relay(m)
	ses, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(p.Reader), Writer: p.WriteCloser}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ses.Close(); err != nil {
		t.Error(err)
	}
	<-p.done
}
