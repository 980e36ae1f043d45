package codex

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/turn"
)

func keep(t *testing.T, w *invoketest.World, native string) {
	t.Helper()
	if err := w.Mem.PutSession(t.Context(), invoketest.Conversation, "alpha", kernel.Session{Native: native}); err != nil {
		t.Fatal(err)
	}
}

func kept(t *testing.T, w *invoketest.World) string {
	t.Helper()
	s, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha")
	if err != nil && !kernel.IsKind(err, kernel.NotFound) {
		t.Fatal(err)
	}
	return s.Native
}

// flags are those of each start so far.
func flags(t *testing.T, w *invoketest.World) (out [][]string) {
	t.Helper()
	b, err := os.ReadFile(w.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		var e struct{ Flags []string }
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Flags)
	}
	return out
}

func counted(in, cached, out int) invoketest.Step {
	return invoketest.Step{"usage": map[string]any{"input_tokens": in, "cached_input_tokens": cached, "output_tokens": out}}
}

// The program counts the thread; a turn is what was added to it.
func TestUsageIsThatOfTheTurn(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	s := invoketest.Script{"load": true, "rules": []any{
		map[string]any{"match": "first", "steps": []invoketest.Step{invoketest.Say("1"), counted(100, 0, 10)}},
		map[string]any{"match": "second", "steps": []invoketest.Step{invoketest.Say("2"), counted(300, 80, 25)}},
		map[string]any{"match": "fails", "steps": []invoketest.Step{{"error": map[string]any{"message": "no"}}}},
		map[string]any{"match": "third", "steps": []invoketest.Step{invoketest.Say("3"), counted(900, 500, 90)}},
		map[string]any{"match": "fourth", "steps": []invoketest.Step{invoketest.Say("4"), counted(1000, 550, 95)}},
		map[string]any{"match": "silent", "steps": []invoketest.Step{invoketest.Say("5")}},
		map[string]any{"match": "less", "steps": []invoketest.Step{invoketest.Say("6"), counted(50, 0, 5)}},
		map[string]any{"match": "fewer", "steps": []invoketest.Step{invoketest.Say("7"), counted(40, 0, 4)}},
	}}
	a := open(t, w, s, invoketest.Options{})
	for i, tc := range []struct {
		prompt          string
		known           bool
		in, cached, out int64
	}{
		{"first", true, 100, 0, 10},
		{"second", true, 200, 80, 15},
		{prompt: "fails"},
		{prompt: "third"}, // what the failed turn used is in it
		{"fourth", true, 100, 50, 5},
		{prompt: "silent"},
		{prompt: "less"},
		{prompt: "fewer"}, // it began to count anew
	} {
		r, err := w.Invoke(t, a, w.Request(tc.prompt, func(tn *kernel.Turn) { tn.Continue = i > 0 }))
		if (err != nil) != (tc.prompt == "fails") {
			t.Fatal(err)
		}
		u := r.Usage
		switch {
		case u.Complete != tc.known:
			t.Errorf("%s: %+v", tc.prompt, u)
		case !tc.known && (u.Input != nil || u.Output != nil):
			t.Errorf("%s: %+v", tc.prompt, u)
		case tc.known && (*u.Input != tc.in || *u.Cached != tc.cached || *u.Output != tc.out || u.CacheWrite != nil):
			t.Errorf("%s: %d %d %d", tc.prompt, *u.Input, *u.Cached, *u.Output)
		}
	}

	r, err := w.Invoke(t, open(t, w, s, invoketest.Options{}), w.Request("fourth", invoketest.Continue))
	if err != nil || r.Usage.Input != nil {
		t.Errorf("of a thread that another host began: %+v, %v", r.Usage, err)
	}
}

func TestDeadThreadIsForgottenOnce(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	keep(t, w, "gone")
	a := open(t, w, invoketest.Steps(invoketest.Say("hi")).With("load", true), invoketest.Options{})
	_, err := w.Invoke(t, a, w.Request("x", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSession, "session_gone")
	if kept(t, w) != "" {
		t.Error("it is kept")
	}
	w.Good(t, a, w.Request("x"))
	if kept(t, w) == "" {
		t.Error("the new one is not kept")
	}
}

// Another thread in the place of the one to be resumed lacks its beginning.
func TestAnotherThread(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	keep(t, w, "thread-before")
	_, err := w.Invoke(t, open(t, w, recorded(t, "thinking").With("load", true), invoketest.Options{}), w.Request("x", invoketest.Continue))
	invoketest.Failed(t, err, kernel.ClassSession, "session_gone")
}

func TestFlags(t *testing.T) {
	t.Parallel()
	has := func(all []string, want ...string) bool {
		for i := range all {
			if i+len(want) <= len(all) && slices.Equal(all[i:i+len(want)], want) {
				return true
			}
		}
		return false
	}
	run := func(t *testing.T, confine, write, resume bool, change func(*Config)) []string {
		w := invoketest.NewWorld(t)
		s := invoketest.Steps(invoketest.Say("hi")).With("log", w.LogFile()).With("load", true)
		a := open(t, w, s, invoketest.Options{}, func(c *Config) {
			spec := c.Spec
			c.Spec = func(p turn.Place) (proc.Spec, error) {
				s, err := spec(p)
				s.Confine = confine
				return s, err
			}
			change(c)
		})
		if resume {
			keep(t, w, "thread-7")
		}
		w.Good(t, a, w.Request("x", func(tn *kernel.Turn) {
			tn.Write, tn.Continue = write, resume
			if write {
				tn.OutputDir = w.State + "/out \"1\""
			}
		}))
		return flags(t, w)[0]
	}
	const bypass = "--dangerously-bypass-approvals-and-sandbox"
	nothing := func(*Config) {}

	if f := run(t, false, false, false, nothing); !has(f, "-c", `sandbox_mode="read-only"`) || has(f, bypass) || f[0] != "exec" || f[1] != "--json" {
		t.Errorf("read-only, not held: %q", f)
	}
	f := run(t, false, true, true, func(c *Config) { c.Model, c.Effort = "m-1", "high" })
	if !has(f, "-c", `sandbox_mode="workspace-write"`) || has(f, bypass) || !has(f, "exec", "resume") || !has(f, "thread-7", "-") ||
		!has(f, "--model", "m-1") || !has(f, "-c", `model_reasoning_effort="high"`) {
		t.Errorf("writer, not held: %q", f)
	}
	if !slices.ContainsFunc(f, func(s string) bool {
		return strings.HasPrefix(s, "sandbox_workspace_write.writable_roots=[") && strings.Contains(s, `out \"1\""]`)
	}) {
		t.Errorf("no output folder: %q", f)
	}
	if _, ok := proc.Landlock(); ok {
		for _, write := range []bool{false, true} {
			if f := run(t, true, write, false, nothing); !has(f, bypass) || strings.Contains(strings.Join(f, " "), "sandbox_mode") {
				t.Errorf("held, write %v: %q", write, f)
			}
		}
	}
}

// What a tool server is given may be secret, and arguments are not.
func TestToolServers(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	a := open(t, w, invoketest.Steps(invoketest.Say("hi")).With("log", w.LogFile()), invoketest.Options{})
	offer := func(m kernel.MCPServer) error {
		req := w.Request("x")
		req.MCP = []kernel.MCPServer{m}
		_, err := w.Invoke(t, a, req)
		return err
	}
	if err := offer(kernel.MCPServer{Name: "witan", Command: "/bin/tool", Args: []string{"a b", `"c"`}, Env: map[string]string{"TOKEN": "swordfish", "AT": "x"}}); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(flags(t, w)[0], "\n")
	for _, want := range []string{`mcp_servers.witan.command="/bin/tool"`, `mcp_servers.witan.args=["a b","\"c\""]`, `mcp_servers.witan.env_vars=["AT","TOKEN"]`,
		`mcp_servers.witan.default_tools_approval_mode="approve"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in %s", want, all)
		}
	}
	if strings.Contains(all, "swordfish") {
		t.Error("the secret is an argument")
	}
	invoketest.Failed(t, offer(kernel.MCPServer{Name: "a.b", Command: "x"}), kernel.ClassCompatibility, "cannot_start")
	invoketest.Failed(t, offer(kernel.MCPServer{Name: "c", Command: "x", Env: map[string]string{"TMPDIR": "/elsewhere"}}), kernel.ClassCompatibility, "cannot_start")
}

// A thread that another host began goes on; what it had used is not known.
func TestRecordedResume(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	keep(t, w, "thread-recorded")
	r, err := w.Invoke(t, open(t, w, recorded(t, "resumed").With("load", true), invoketest.Options{}), w.Request("x", invoketest.Continue))
	if err != nil || w.Text(t, r) != "Plain reply without reasoning." || r.Usage.Input != nil || kept(t, w) != "thread-recorded" {
		t.Errorf("%+v, %v", r, err)
	}
}
