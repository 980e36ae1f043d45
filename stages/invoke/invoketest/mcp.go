package invoketest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/invoke/turn"
)

// serveTools makes the test binary a tool server; see Main.
const serveTools = "invoketest-tools"

// toolServer answers each call of a tool with what it was started with and
// given.
func toolServer(args []string, in io.Reader, out io.Writer) int {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		var res any
		switch m.Method {
		case "initialize":
			res = map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "test", "version": "1"}}
		case "tools/call":
			text := strings.Join(append(args, os.Getenv("INVOKETEST_TOOLS"), string(m.Params.Arguments)), "|")
			res = map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
		}
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": res})
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", b)
		}
		if err != nil {
			return 1
		}
	}
	return 0
}

// ToolServer is a tool server whose tools answer with its arguments, its secret
// and what they were given.
func ToolServer(t *testing.T, name, secret string, args ...string) kernel.MCPServer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return kernel.MCPServer{Name: name, Command: exe, Args: append([]string{serveTools}, args...), Env: map[string]string{"INVOKETEST_TOOLS": secret}}
}

// toolServers: what a turn offers reaches the agent as it is, and is still there
// in the session's next turn.
func toolServers(t *testing.T, h Harness) {
	w := NewWorld(t)
	a := h.open(t, w, Steps(Step{"mcp": map[string]any{"server": "second", "tool": "echo", "arguments": map[string]any{"n": 1, "é": "\""}}}), Options{})
	const secret = "a \"secret\"\n= $HOME"
	offered := []kernel.MCPServer{ToolServer(t, "first", ""), ToolServer(t, "second", secret, "two words", "")}
	want := "mcp echo gave: two words||" + secret + `|{"n":1,"é":"\""}` + "\n"
	for i, req := range []kernel.InvokeRequest{w.Request("one"), w.Request("two", Continue)} {
		req.MCP = offered
		if got := w.Good(t, a, req); got != want {
			t.Errorf("turn %d: %q, want %q", i+1, got, want)
		}
	}
	req := w.Request("three")
	if got := w.Good(t, a, req); got != "mcp: no server \"second\" is offered\n" {
		t.Errorf("a new session of a turn that offers nothing: %q", got)
	}
}

// waitingTool: an agent whose tool waits for a person is not silent.
func waitingTool(t *testing.T, h Harness) {
	w := NewWorld(t)
	file := filepath.Join(w.State, "answered")
	a := h.open(t, w, Steps(Say("a"), Step{"wait_file": file}, Say("b")), Options{Watchdog: turn.Watchdog{Notice: 10 * time.Millisecond, NoOutput: 30 * time.Millisecond}})
	req := w.Request("x")
	looks := 0
	req.Waiting = func() bool {
		if looks++; looks == 10 {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
		return true
	}
	if got := w.Good(t, a, req); got != "ab" {
		t.Errorf("%q", got)
	}
}
