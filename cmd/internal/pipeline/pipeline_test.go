package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/cmd/internal/pipeline"
	"witan/kernel"
)

// fake is a stage with a name and options, which never runs.
type fake struct {
	id      string
	options string
}

func (f fake) Spec() kernel.Spec {
	o := f.options
	if o == "" {
		o = string(kernel.NoOptions)
	}
	return kernel.Spec{ID: f.id, Class: kernel.Keyed, Options: json.RawMessage(o)}
}

func (fake) RunJSON(context.Context, kernel.Env, []byte) ([]byte, error) { return nil, nil }

const (
	commandOptions = `{"type":"object","properties":{"run":{"type":"array","minItems":1,"items":{"type":"string","minLength":1}},"timeout":{"type":"string","pattern":"^([0-9]+(ms|s|m|h))+$"}},"required":["run"]}`
	execOptions    = `{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]}`
	allOfOptions   = `{"type":"object","properties":{"of":{"type":"array","minItems":1,"items":{"type":"object","properties":{"use":{"type":"string"}},"required":["use"]}}},"required":["of"]}`
)

func registry() kernel.Registry {
	return kernel.Registry{}.With(fake{id: "freeze/workspace"}, fake{id: "freeze/none"}, fake{id: "deliver/prompt"}, fake{id: "invoke/agent"},
		fake{id: "receipt/lenient"}, fake{id: "receipt/strict"}, fake{id: "receipt/exec", options: execOptions},
		fake{id: "verify/none"}, fake{"verify/command", commandOptions}, fake{"verify/exec", execOptions}, fake{"verify/all-of", allOfOptions}, fake{id: "commit/record"})
}

func load(t *testing.T, dir, text string) (*pipeline.Pipeline, error) {
	t.Helper()
	p := filepath.Join(dir, "p.toml")
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return pipeline.Load(p, "batch", registry())
}

func show(t *testing.T, p *pipeline.Pipeline) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Show(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDefault(t *testing.T) {
	want := `version = 1

[freeze]
use = "freeze/workspace"

[deliver]
use = "deliver/prompt"

[invoke]
use = "invoke/agent"

[receipt]
use = "receipt/lenient"

[verify]
use = "verify/none"

[commit]
use = "commit/record"
`
	if got := show(t, pipeline.Default()); got != want {
		t.Errorf("%s", got)
	}
	for _, text := range []string{"", "version = 1\n", "[verify]\n"} {
		p, err := load(t, t.TempDir(), text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := show(t, p); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

const whole = `# A pipeline.
version = 1
[receipt]
use = "receipt/strict"
[verify]
use = "verify/all-of" # of two
of = [
  { use = "verify/command", run = ["go test ./...", "say \"hi\"\t\\ é"], timeout = "10m" },
  { use = "verify/all-of", of = [ { use = "verify/exec", command = ["./check", "./arg"] } ] },
]
`

func TestStages(t *testing.T) {
	dir := t.TempDir()
	p, err := load(t, dir, whole)
	if err != nil {
		t.Fatal(err)
	}
	stages, err := p.Stages(registry())
	if err != nil || len(stages) != 6 {
		t.Fatalf("%v, %v", stages, err)
	}
	if s := stages["receipt"]; s.Use != "receipt/strict" || s.Options != nil || s.Class != "keyed" {
		t.Errorf("%+v", s)
	}
	var got struct {
		Of []struct {
			Use, Timeout string
			Run          []string
			Of           []struct {
				Use     string
				Command []string
			}
		}
	}
	if err := json.Unmarshal(stages["verify"].Options, &got); err != nil || len(got.Of) != 2 {
		t.Fatalf("%s, %v", stages["verify"].Options, err)
	}
	if got.Of[0].Timeout != "10m" || got.Of[0].Run[1] != "say \"hi\"\t\\ é" {
		t.Errorf("%+v", got.Of[0])
	}
	if c := got.Of[1].Of[0].Command; c[0] != filepath.Join(dir, "check") || c[1] != "./arg" {
		t.Errorf("a relative program is looked up beside the file, its arguments are not: %q", c)
	}
}

func TestCommandOnPathStays(t *testing.T) {
	p, err := load(t, t.TempDir(), "[verify]\nuse = \"verify/exec\"\ncommand = [\"python3\", \"x.py\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.Stages(registry()); err != nil || string(s["verify"].Options) != `{"command":["python3","x.py"]}` {
		t.Errorf("%s, %v", s["verify"].Options, err)
	}
}

func TestShownFileLoadsAsTheSame(t *testing.T) {
	dir := t.TempDir()
	p, err := load(t, dir, whole)
	if err != nil {
		t.Fatal(err)
	}
	text := show(t, p)
	again, err := load(t, dir, text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	a, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := again.Digest()
	if err != nil || a != b || show(t, again) != text {
		t.Errorf("%s, %s, %v\n%s\n%s", a, b, err, text, show(t, again))
	}
	other, err := pipeline.Default().Digest()
	if err != nil || other == a {
		t.Errorf("another pipeline has the same digest, %v", err)
	}
}

func TestArrayOfTablesMeansTheSame(t *testing.T) {
	p, err := load(t, t.TempDir(), "[verify]\nuse = \"verify/all-of\"\n[[verify.of]]\nuse = \"verify/none\"\n[[verify.of]]\nuse = \"verify/command\"\nrun = [\"a\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.Stages(registry()); err != nil || string(s["verify"].Options) != `{"of":[{"use":"verify/none"},{"run":["a"],"use":"verify/command"}]}` {
		t.Errorf("%s, %v", s["verify"].Options, err)
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	for _, tc := range []struct{ name, text, line, what, next string }{
		{"no TOML", "version = 1\n[verify\n", "2", "", "correct"},
		{"a key twice", "[verify]\nuse = \"verify/none\"\nuse = \"verify/none\"\n", "3", "use", "correct"},
		{"another version", "# x\nversion = 2\n", "2", "version 2", "version = 1"},
		{"version is a text", "version = \"1\"\n", "1", "version 1", "version = 1"},
		{"an unknown section", "# verifi\n\n[verifi]\nuse = \"verify/none\"\n", "3", `"verifi"`, `"verify"`},
		{"an unknown key", "verison = 1\n", "1", `"verison"`, `"version"`},
		{"a section that is none", "\nverify = \"verify/none\"\n", "2", "not a table", "[verify]"},
		{"a list of sections", "[[verify]]\nuse = \"verify/none\"\n", "1", "not a table", "[verify]"},
		{"an unknown stage", "[receipt]\nuse = \"receipt/strict\"\n\n[verify]\n# verify/comand\nuse = \"verify/comand\"\n", "6", `"verify/comand"`, `"verify/command"`},
		{"of another type", "[receipt]\n# now\nuse = \"verify/none\"\n[verify]\nuse = \"verify/none\"\n", "3", "another type", "receipt/strict"},
		{"the later of two", "[verify]\nuse = \"verify/none\"\n[receipt]\nuse = \"verify/none\"\n", "4", "another type", "receipt/"},
		{"use is a number", "[verify]\nuse = 1\n", "2", "no text", "verify/none"},
		{"use is empty", "[verify]\nuse = \"\"\n", "2", "unknown", "verify/none"},
		{"an unknown option", "[verify]\nuse = \"verify/command\"\nrun = [\"a\"]\ntimeut = \"1s\"\n", "4", `"timeut"`, `"timeout"`},
		{"an option where there are none", "[freeze]\nx = 1\n", "2", `"x"`, "no options"},
		{"an option of another type", "[verify]\nuse = \"verify/command\"\nrun = \"go test\"\n", "3", "string, not array", "correct"},
		{"an element of another type", "[verify]\nuse = \"verify/command\"\nrun = [\n  \"a\",\n  2,\n]\n", "5", "element 2 of option \"run\" is of type integer", "correct"},
		{"an empty element", "[verify]\nuse = \"verify/command\"\nrun = [\"\"]\n", "3", "empty", "correct"},
		{"an empty list", "[verify]\nuse = \"verify/command\"\nrun = []\n", "3", "empty", "element"},
		{"no duration", "[verify]\nuse = \"verify/command\"\nrun = [\"a\"]\ntimeout = \"soon\"\n", "4", `"soon"`, "stage list"},
		{"a date", "[verify]\nuse = \"verify/command\"\nrun = [\"a\"]\ntimeout = 2030-01-01\n", "4", "type date", "correct"},
		{"a missing option", "[verify]\nuse = \"verify/command\"\n", "2", `needs the option "run"`, "stage list"},
		{"an unknown part", "[verify]\nuse = \"verify/all-of\"\nof = [\n  { use = \"verify/none\" },\n  { use = \"verify/agent\" },\n]\n", "5", `"verify/agent"`, "verify/none"},
		{"a part of another type", "[verify]\nuse = \"verify/all-of\"\n[[verify.of]]\nuse = \"verify/none\"\n[[verify.of]]\nuse = \"receipt/strict\"\n", "6", "another type", "verify/"},
		{"a part without use", "[verify]\nuse = \"verify/all-of\"\nof = [\n  { run = [\"a\"] }]\n", "4", "use is missing", "use ="},
		{"a part that is a text", "[verify]\nuse = \"verify/all-of\"\nof = [\n  \"verify/none\"]\n", "4", "string, not object", "correct"},
		{"an option of a part", "[verify]\nuse = \"verify/all-of\"\nof = [\n  { use = \"verify/command\", run = [\"a\"],\n timeout = 3 } ]\n", "5", "integer, not string", "correct"},
		{"deep", "[verify]\nuse = \"verify/all-of\"\nof = [ { use = \"verify/all-of\",\n of = [ { use = \"verify/none\" },\n { use = \"commit/record\" } ] } ]\n", "5", "another type", "verify/"},
		{"dotted", "verify.use = \"verify/none\"\nreceipt.use = \"receipt/x\"\n", "2", "receipt/x", "receipt/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := load(t, t.TempDir(), tc.text)
			var e *kernel.Error
			if !errors.As(err, &e) || e.Kind != kernel.Invalid || p != nil {
				t.Fatalf("%v", err)
			}
			if !strings.Contains(e.What, "p.toml line "+tc.line+": ") || !strings.Contains(e.What, tc.what) || !strings.Contains(e.Next, tc.next) {
				t.Errorf("%q\nnext %q", e.What, e.Next)
			}
		})
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.toml")
	if err := os.WriteFile(big, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "gone.toml"), big} {
		var e *kernel.Error
		if _, err := pipeline.Load(path, "batch", registry()); !errors.As(err, &e) || e.Kind != kernel.Invalid || e.Next == "" || !strings.Contains(e.What, path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSetVerify(t *testing.T) {
	p := pipeline.Default()
	if err := p.SetVerify([]string{"go vet ./...", "go test ./..."}); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Stages(registry()); err != nil || s["verify"].Use != "verify/command" || string(s["verify"].Options) != `{"run":["go vet ./...","go test ./..."]}` {
		t.Errorf("%+v, %v", s["verify"], err)
	}
	if err := p.SetVerify([]string{"a", " "}); !kernel.IsKind(err, kernel.Invalid) {
		t.Errorf("an empty command: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(whole)
	f.Add("[verify]\nuse = \"verify/all-of\"\n[[verify.of]]\nuse = \"verify/none\"\n")
	f.Add("[[a.b]]\n[a.b.c]\nx.y = {z = [1, {w = 2}]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		p, err := load(t, dir, text)
		if err != nil {
			return
		}
		a, err := p.Digest()
		if err != nil {
			t.Fatal(err)
		}
		again, err := load(t, dir, show(t, p))
		if err != nil {
			t.Fatalf("%q\nis shown as\n%s\n%v", text, show(t, p), err)
		}
		if b, err := again.Digest(); err != nil || a != b {
			t.Fatalf("%q is shown as another pipeline: %s", text, show(t, p))
		}
	})
}
