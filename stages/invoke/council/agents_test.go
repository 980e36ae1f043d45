package council_test

import (
	"context"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/acp"
	"witan/stages/invoke/claude"
	"witan/stages/invoke/council"
	"witan/stages/invoke/invoketest"
)

// An agent in a process of its own uses the tools over several turns, and knows
// nothing of a turn that is over.
func TestAgentsUseTheTools(t *testing.T) {
	use := func(tool string, args map[string]any) invoketest.Step {
		return invoketest.Step{"mcp": map[string]any{"tool": tool, "arguments": args}}
	}
	script := invoketest.Steps(
		use("context", map[string]any{"id": "msg_1"}),
		use("ask", map[string]any{"question": "Colour?"}),
		use("finding", map[string]any{"severity": "low", "title": "t", "detail": "d"}),
		use("receipt", map[string]any{"version": 1, "phase": "work", "item": "$item", "artifacts": []string{}, "claims": []string{}, "summary": "Done."}))
	for name, open := range map[string]func(t *testing.T, w *invoketest.World) kernel.Invoker{
		"acp": func(t *testing.T, w *invoketest.World) kernel.Invoker {
			return acp.New(acp.Config{ID: "alpha", Connect: acp.Process(w.Program(t, script, nil, nil)), Sessions: w.Mem})
		},
		"claude": func(t *testing.T, w *invoketest.World) kernel.Invoker {
			return claude.New(claude.Config{ID: "alpha", Spec: w.Program(t, script, []string{"--claude"}, nil), Sessions: w.Mem})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := listen(t)
			w := invoketest.NewWorld(t)
			a := open(t, w)
			defer func() {
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}()
			e := s.Endpoint("session")
			for i, item := range []string{"W1", "W2"} {
				h := newTurn(func(context.Context, kernel.Question) (kernel.Answer, error) {
					return kernel.Answer{Option: "reply", Text: "blue"}, nil
				}, func(c *council.TurnConfig) {
					c.Turn.Extra = []byte(`{"item":{"id":"` + item + `"}}`)
					c.Lookup = func(context.Context, string) (string, error) { return "said before", nil }
				})
				req := w.Request(`do it <witan-turn>{"phase":"work","item":{"id":"`+item+`"}}</witan-turn>`, func(t *kernel.Turn) { t.Continue = i > 0 })
				req.MCP, req.Waiting = []kernel.MCPServer{e.MCP()}, h.Waiting
				over := e.Turn(h)
				got := w.Good(t, a, req)
				over()
				receipt, found := h.Collect()
				for _, want := range []string{"mcp context gave: said before\n", "mcp ask gave: blue\n", "mcp finding gave: fnd_", "mcp receipt gave: The receipt is taken.\n"} {
					if !strings.Contains(got, want) {
						t.Errorf("turn %d: no %q in %q", i+1, want, got)
					}
				}
				if len(found) != 1 || !strings.Contains(string(receipt), `"item":"`+item+`"`) {
					t.Errorf("turn %d gave %s and %v", i+1, receipt, found)
				}
			}
			req := w.Request("after the turn", invoketest.Continue)
			req.MCP = []kernel.MCPServer{e.MCP()}
			if got := w.Good(t, a, req); strings.Count(got, "refused: cancelled: this turn is over") != 4 {
				t.Errorf("%q", got)
			}
		})
	}
}
