package opencode

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

// begin is how a program was started.
type begin struct {
	Flags []string
	Env   map[string]string
}

func (b begin) has(want ...string) bool {
	for i := range b.Flags {
		if i+len(want) <= len(b.Flags) && slices.Equal(b.Flags[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

const content = "OPENCODE_CONFIG_CONTENT"

// start runs a turn, in an environment with what is given, and returns how the
// program was started.
func start(t *testing.T, confine bool, env []string, req func(*kernel.InvokeRequest), change func(*Config)) (begin, error) {
	t.Helper()
	w := invoketest.NewWorld(t)
	keep(t, w, "ses_7")
	s := invoketest.Steps(invoketest.Say("hi")).With("load", true).With("log", w.LogFile()).With("log_env", []string{content, "OPENCODE_DISABLE_AUTOUPDATE"})
	a := open(t, w, s, invoketest.Options{}, func(c *Config) {
		spec := c.Spec
		c.Spec = func(p turn.Place) (proc.Spec, error) {
			s, err := spec(p)
			s.Confine, s.Env = confine, append(s.Env, env...)
			return s, err
		}
		change(c)
	})
	r := w.Request("x")
	req(&r)
	if _, err := w.Invoke(t, a, r); err != nil {
		return begin{}, err
	}
	var b begin
	raw, err := os.ReadFile(w.LogFile())
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b, nil
}

func asIs(*kernel.InvokeRequest) {}
func plainly(*Config)            {}

func TestFlags(t *testing.T) {
	t.Parallel()
	b, err := start(t, true, nil, asIs, plainly)
	if err != nil || !b.has("run", "--format", "json") || !b.has("--title", "Witan") || b.has("--session") || b.Env["OPENCODE_DISABLE_AUTOUPDATE"] != "1" {
		t.Errorf("new: %+v, %v", b, err)
	}
	b, err = start(t, true, []string{"OPENCODE_DISABLE_AUTOUPDATE=0"}, func(r *kernel.InvokeRequest) { r.Turn.Continue = true },
		func(c *Config) { c.Model, c.Effort = "p/m", "high" })
	if err != nil || !b.has("--session", "ses_7") || !b.has("--model", "p/m") || !b.has("--variant", "high") || b.has("--title") || b.Env["OPENCODE_DISABLE_AUTOUPDATE"] != "0" {
		t.Errorf("resumed: %+v, %v", b, err)
	}
}

// The fork has settings of its own name, and not every flag.
func TestKilo(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	for path, want := range map[string]string{"/no/such/kilo": "KILO_CONFIG_CONTENT", "/no/such/opencode": content} {
		req := w.Request("x")
		_, err := w.Invoke(t, New(Config{ID: "alpha", Sessions: w.Mem, Spec: func(p turn.Place) (proc.Spec, error) {
			return proc.Spec{Path: path, Dir: p.Workspace, Env: []string{want + "=no JSON"}}, nil
		}}), req)
		if f := invoketest.Failed(t, err, kernel.ClassCompatibility, "cannot_start"); !strings.Contains(f.Text, want) {
			t.Errorf("%s: %s", path, f.Text)
		}
	}
}

func TestReadOnlyWithoutTheSystem(t *testing.T) {
	t.Parallel()
	const model = `"model":"p/m"`
	for name, tc := range map[string]struct{ was, want string }{
		"nothing before": {``, `{"permission":{"bash":"deny","edit":"deny"}}`},
		"a word":         {`{"permission":"allow",` + model + `}`, `{` + model + `,"permission":{"*":"allow","bash":"deny","edit":"deny"}}`},
		"rules":          {`{"permission":{"bash":{"git *":"allow"},"webfetch":"ask"},` + model + `}`, `{` + model + `,"permission":{"bash":"deny","edit":"deny","webfetch":"ask"}}`},
	} {
		var env []string
		if tc.was != "" {
			env = []string{content + "=" + tc.was}
		}
		b, err := start(t, false, env, asIs, plainly)
		if err != nil || b.Env[content] != tc.want {
			t.Errorf("%s: %s, %v", name, b.Env[content], err)
		}
		if b, err = start(t, false, env, func(r *kernel.InvokeRequest) { r.Turn.Write = true }, plainly); err != nil || b.Env[content] != tc.was {
			t.Errorf("%s, writer: %s, %v", name, b.Env[content], err)
		}
		if _, ok := proc.Landlock(); ok {
			if b, err = start(t, true, env, asIs, plainly); err != nil || b.Env[content] != tc.was {
				t.Errorf("%s, held: %s, %v", name, b.Env[content], err)
			}
		}
	}
	for _, was := range []string{"not JSON", `{"permission":7}`, `["a"]`} {
		_, err := start(t, false, []string{content + "=" + was}, asIs, plainly)
		invoketest.Failed(t, err, kernel.ClassCompatibility, "cannot_start")
	}
}

// What a tool server is given may be secret, and arguments are not.
func TestToolServers(t *testing.T) {
	t.Parallel()
	offer := func(r *kernel.InvokeRequest) {
		r.MCP = []kernel.MCPServer{{Name: "witan", Command: "/bin/tool", Args: []string{"a b"}, Env: map[string]string{"TOKEN": "swordfish"}}}
	}
	b, err := start(t, true, []string{content + `={"mcp":{"mine":{"type":"remote"}}}`}, offer, plainly)
	want := `{"mcp":{"mine":{"type":"remote"},"witan":{"command":["/bin/tool","a b"],"enabled":true,"environment":{"TOKEN":"swordfish"},"type":"local"}}}`
	if err != nil || b.Env[content] != want || strings.Contains(strings.Join(b.Flags, " "), "swordfish") {
		t.Errorf("%+v, %v", b, err)
	}
	_, err = start(t, true, []string{content + `={"mcp":"all"}`}, offer, plainly)
	invoketest.Failed(t, err, kernel.ClassCompatibility, "cannot_start")
}
