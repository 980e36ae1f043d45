package acp

import (
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

// An open session is loaded again for other tool servers, if the agent can; else
// it keeps those that it has.
func TestToolServersChange(t *testing.T) {
	call := invoketest.Steps(invoketest.Step{"mcp": map[string]any{"tool": "echo"}})
	for name, tt := range map[string]struct {
		load bool
		want string
	}{"loads": {true, "mcp echo gave: two||{}\n"}, "cannot load": {false, "mcp echo gave: one||{}\n"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			a := host(t, w, call.With("load", tt.load))
			first := w.Request("one")
			first.MCP = []kernel.MCPServer{invoketest.ToolServer(t, "one", "", "one")}
			if got := w.Good(t, a, first); got != "mcp echo gave: one||{}\n" {
				t.Fatalf("%q", got)
			}
			second := w.Request("two", invoketest.Continue)
			second.MCP = []kernel.MCPServer{invoketest.ToolServer(t, "two", "", "two")}
			if got := w.Good(t, a, second); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if l := w.Log(t); len(l) != 2 || l[0].PID != l[1].PID || l[0].Session != l[1].Session {
				t.Errorf("%+v", l)
			}
		})
	}
}
