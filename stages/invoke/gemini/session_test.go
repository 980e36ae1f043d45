package gemini

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

// entry is what the scripted program logs of a prompt.
type entry struct {
	Session string   `json:"session"`
	Flags   []string `json:"flags"`
}

func logged(t *testing.T, w *invoketest.World) (out []entry) {
	t.Helper()
	b, err := os.ReadFile(w.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		var e entry
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func has(flags []string, want ...string) bool {
	i := slices.Index(flags, want[0])
	return i >= 0 && i+len(want) <= len(flags) && slices.Equal(flags[i:i+len(want)], want)
}

func both(t *testing.T, f func(t *testing.T, program string)) {
	for _, program := range []string{Gemini, Qwen} {
		t.Run(program, func(t *testing.T) { t.Parallel(); f(t, program) })
	}
}

func TestASessionGoesOn(t *testing.T) {
	both(t, func(t *testing.T, program string) {
		w := invoketest.NewWorld(t)
		s := invoketest.Steps(invoketest.Say("ok")).With("log", w.LogFile()).With("load", true)
		a := open(t, w, program, s, invoketest.Options{})
		w.Good(t, a, w.Request("one"))
		w.Good(t, a, w.Request("two", invoketest.Continue))
		w.Good(t, open(t, w, program, s, invoketest.Options{}), w.Request("three", invoketest.Continue)) // another host
		w.Good(t, a, w.Request("four"))
		l := logged(t, w)
		if l[0].Session != l[1].Session || l[1].Session != l[2].Session || l[2].Session == l[3].Session {
			t.Errorf("%+v", l)
		}
		if !has(l[0].Flags, "--session-id", l[0].Session) || !has(l[1].Flags, "--resume", l[0].Session) || has(l[1].Flags, "--session-id") {
			t.Errorf("%q, %q", l[0].Flags, l[1].Flags)
		}
	})
}

func TestADeadSession(t *testing.T) {
	both(t, func(t *testing.T, program string) {
		w := invoketest.NewWorld(t)
		if err := w.Mem.PutSession(t.Context(), invoketest.Conversation, "alpha", kernel.Session{Native: "gone-1"}); err != nil {
			t.Fatal(err)
		}
		a := open(t, w, program, invoketest.Steps(invoketest.Say("ok")).With("load", true), invoketest.Options{})
		_, err := w.Invoke(t, a, w.Request("x", invoketest.Continue))
		if f := invoketest.Failed(t, err, kernel.ClassSession, "session_gone"); strings.Contains(f.Text, "gone-1") {
			t.Errorf("the native id is told: %s", f.Text)
		}
		if _, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha"); !kernel.IsKind(err, kernel.NotFound) {
			t.Errorf("still there: %v", err)
		}
		if got := w.Good(t, a, w.Request("x")); got != "ok" {
			t.Errorf("%q", got)
		}
	})
}

// The name of a session, which is chosen here, is in no text, also in its first turn.
func TestNativeIDsStayHere(t *testing.T) {
	both(t, func(t *testing.T, program string) {
		w := invoketest.NewWorld(t)
		s := invoketest.Steps(invoketest.Step{"tool": map[string]any{"id": "1", "kind": "read", "title": "Read $session/x", "status": "completed"}}).With("log", w.LogFile())
		spec := w.Program(t, s, []string{"--" + program}, nil)
		a := open(t, w, program, s, invoketest.Options{}, func(c *Config) { c.Spec = spec })
		r, err := w.Invoke(t, a, w.Request("x"))
		if err != nil || r.Tools[0].Title != "Read [session]/x" {
			t.Errorf("%+v, %v", r.Tools, err)
		}
		if kept, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha"); err != nil || kept.Native != logged(t, w)[0].Session {
			t.Errorf("%+v, %v", kept, err)
		}
	})
}

func TestFlags(t *testing.T) {
	both(t, func(t *testing.T, program string) {
		w := invoketest.NewWorld(t)
		s := invoketest.Steps(invoketest.Say("ok")).With("log", w.LogFile())
		a := open(t, w, program, s, invoketest.Options{}, func(c *Config) { c.Model = "some-model" })
		req := w.Request("x")
		req.MCP = []kernel.MCPServer{{Name: "witan", Command: "/bin/relay", Env: map[string]string{"TOKEN": "swordfish"}}}
		if _, err := w.Invoke(t, a, req); err != nil {
			t.Fatal(err)
		}
		w.Good(t, open(t, w, program, s, invoketest.Options{}), w.Request("x", invoketest.Write))
		l := logged(t, w)
		if !has(l[0].Flags, "--approval-mode", "default") || !has(l[0].Flags, "--model", "some-model") || !has(l[1].Flags, "--approval-mode", "yolo") || has(l[1].Flags, "--model") {
			t.Errorf("%q, %q", l[0].Flags, l[1].Flags)
		}
		if strings.Contains(strings.Join(l[0].Flags, " "), "swordfish") {
			t.Error("a secret is among the arguments")
		}
		i := slices.Index(l[0].Flags, "--mcp-config")
		if (i >= 0) != (program == Qwen) {
			t.Fatalf("%q", l[0].Flags)
		}
		if program == Qwen {
			b, err := os.ReadFile(l[0].Flags[i+1])
			if want := `{"mcpServers":{"witan":{"command":"/bin/relay","env":{"TOKEN":"swordfish"},"trust":true}}}`; err != nil || string(b) != want {
				t.Errorf("%s, %v", b, err)
			}
		}
	})
}

func TestWhichProgram(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{"/usr/bin/gemini": Gemini, "/opt/bin/qwen": Qwen, "node /opt/qwen-code/cli.js": Qwen, "npx @google/gemini-cli": Gemini, "/home/qwen/bin/other": Gemini} {
		words := strings.Fields(command)
		if got := programOf(proc.Spec{Path: words[0], Args: words[1:]}); got != want {
			t.Errorf("%s is taken for %s", command, got)
		}
	}
}

// Qwen Code counts sessions, Gemini CLI turns.
func TestUsageOfAResumedSession(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	total := `{"input_tokens":%,"output_tokens":%,"cache_read_input_tokens":5}`
	script := func(n string) invoketest.Script {
		return invoketest.Steps(invoketest.Say("ok"), invoketest.Step{"usage": json.RawMessage(strings.ReplaceAll(total, "%", n))}).With("load", true)
	}
	var specs = map[string]func(turn.Place) (proc.Spec, error){}
	for _, n := range []string{"100", "250", "300"} {
		specs[n] = w.Program(t, script(n), []string{"--qwen"}, nil)
	}
	n := "100"
	change := func(c *Config) { c.Spec = func(p turn.Place) (proc.Spec, error) { return specs[n](p) } }
	a := open(t, w, Qwen, script(n), invoketest.Options{}, change)
	use := func(a kernel.Invoker, ch ...func(*kernel.Turn)) kernel.Usage {
		r, err := w.Invoke(t, a, w.Request("x", ch...))
		if err != nil {
			t.Fatal(err)
		}
		return r.Usage
	}
	if u := use(a); *u.Input != 100 || *u.Cached != 5 {
		t.Errorf("%+v", u)
	}
	n = "250"
	if u := use(a, invoketest.Continue); *u.Input != 150 || *u.Output != 150 || *u.Cached != 0 || !u.Complete {
		t.Errorf("%+v", u)
	}
	n = "300"
	if u := use(open(t, w, Qwen, script(n), invoketest.Options{}, change), invoketest.Continue); u.Input != nil || u.Complete {
		t.Errorf("of a session that another process began: %+v", u)
	}
	if u := use(a, invoketest.Continue); *u.Input != 50 {
		t.Errorf("%+v", u)
	}
}
