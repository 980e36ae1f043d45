package external_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stages/external"
)

var update = flag.Bool("update", false, "write the golden files anew")

// program is a kernel.Runner that plays an executable.
type program struct {
	got    kernel.Command
	result kernel.CommandResult
	err    error
}

func (p *program) Run(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
	p.got = c
	return p.result, p.err
}

func verdict() kernel.Verdict {
	return kernel.Verdict{Version: 1, Scope: "attempt", Status: "completed", Results: []kernel.ClaimVerdict{}, Outcomes: []kernel.Outcome{}}
}

func answer(t *testing.T, more string) string {
	t.Helper()
	b, err := kernel.Canonical(verdict())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"version":1,"out":%s%s}`, b, more)
}

func run(t *testing.T, p *program, options string) (kernel.Verdict, *kerneltest.Mem, error) {
	t.Helper()
	packs := kerneltest.NewMem()
	v, err := external.New[kernel.Claim, kernel.Verdict]("verify", p).Run(context.Background(), kernel.Env{Packs: packs, Options: []byte(options)}, kernel.Claim{Version: 1, Source: "none"})
	return v, packs, err
}

const opt = `{"command":["/bin/my-verify","-v"],"timeout":"3s"}`

func TestAnswer(t *testing.T) {
	b, _ := kernel.Canonical(verdict())
	for _, more := range []string{"", `,"usage":null`, `,"hash":"` + kernel.Sum(b).String() + `","usage":{"input":1}`} {
		p := &program{result: kernel.CommandResult{Stdout: []byte("\n" + answer(t, more) + "\n"), Stderr: []byte("chatter")}}
		v, _, err := run(t, p, opt)
		if err != nil || v.Status != "completed" {
			t.Fatalf("%s: %+v, %v", more, v, err)
		}
		if strings.Join(p.got.Argv, " ") != "/bin/my-verify -v" || p.got.Timeout != 3*time.Second || p.got.Limit <= 0 {
			t.Errorf("%+v", p.got)
		}
		var in struct {
			Version int             `json:"version"`
			Stage   string          `json:"stage"`
			Options json.RawMessage `json:"options"`
			In      kernel.Claim    `json:"in"`
		}
		if err := kernel.DecodeStrict(p.got.Stdin, &in); err != nil || in.Version != 1 || in.Stage != "verify/exec" || in.In.Source != "none" {
			t.Errorf("%s, %v", p.got.Stdin, err)
		}
	}
}

// What the schema lets an answer leave out, it may also write down as empty.
func TestEmptyFieldsAreWelcome(t *testing.T) {
	out := strings.Replace(answer(t, ""), `"scope"`, `"text":"","parts":[],"outcomes":null,"scope"`, 1)
	out = strings.Replace(out, `"outcomes":[],`, "", 1)
	if v, _, err := run(t, &program{result: kernel.CommandResult{Stdout: []byte(out)}}, opt); err != nil || v.Scope != "attempt" {
		t.Errorf("%s: %v", out, err)
	}
}

func TestFailures(t *testing.T) {
	ok := answer(t, "")
	for name, tc := range map[string]struct {
		result kernel.CommandResult
		text   string
	}{
		"exit":              {kernel.CommandResult{Exit: 3, Stdout: []byte(ok)}, "exited with 3"},
		"time":              {kernel.CommandResult{Exit: -1, TimedOut: true}, "did not end within 3s"},
		"too much":          {kernel.CommandResult{Stdout: []byte(ok), Cut: 1}, "said more than 8 MiB"},
		"nothing":           {kernel.CommandResult{}, "no JSON object"},
		"noise":             {kernel.CommandResult{Stdout: []byte("hello")}, "no JSON object"},
		"noise before":      {kernel.CommandResult{Stdout: []byte("hello " + ok)}, "no JSON object"},
		"two answers":       {kernel.CommandResult{Stdout: []byte(ok + ok)}, "no JSON object"},
		"an unknown key":    {kernel.CommandResult{Stdout: []byte(answer(t, `,"x":1`))}, "no JSON object"},
		"another version":   {kernel.CommandResult{Stdout: []byte(strings.Replace(ok, `"version":1`, `"version":2`, 1))}, "version 2"},
		"no out":            {kernel.CommandResult{Stdout: []byte(`{"version":1}`)}, `no "out"`},
		"an empty out":      {kernel.CommandResult{Stdout: []byte(`{"version":1,"out":{}}`)}, "/out/version is missing"},
		"a field is gone":   {kernel.CommandResult{Stdout: []byte(strings.Replace(ok, `"status":"completed",`, "", 1))}, "/out/status is missing"},
		"null":              {kernel.CommandResult{Stdout: []byte(`{"version":1,"out":null}`)}, "/out/version is missing"},
		"a field below":     {kernel.CommandResult{Stdout: []byte(strings.Replace(ok, `"results":[]`, `"results":[{"claim":"c","source":"agent","evidence":[]}]`, 1))}, "/out/results/0/verdict is missing"},
		"an unknown field":  {kernel.CommandResult{Stdout: []byte(strings.Replace(ok, `"scope"`, `"mood":1,"scope"`, 1))}, "mood"},
		"another type":      {kernel.CommandResult{Stdout: []byte(strings.Replace(ok, `"completed"`, `1`, 1))}, "does not fit"},
		"a duplicate field": {kernel.CommandResult{Stdout: []byte(strings.Replace(ok, `"scope"`, `"scope":"run","scope"`, 1))}, "no JSON object"},
		"another hash":      {kernel.CommandResult{Stdout: []byte(answer(t, `,"hash":"`+kernel.Sum([]byte("x")).String()+`"`))}, "not sha256:"},
	} {
		tc.result.Stderr = []byte("line 1\nthe reason\n")
		_, packs, err := run(t, &program{result: tc.result}, opt)
		var f *kernel.Failure
		if !errors.As(err, &f) || f.Class != kernel.ClassExecution || f.Reason != "exec_failed" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(f.Text, tc.text) || !strings.HasPrefix(f.Text, "my-verify ") || !strings.HasSuffix(f.Text, "the reason") {
			t.Errorf("%s: %q", name, f.Text)
		}
		if b, err := packs.Get(context.Background(), kernel.Sum([]byte("line 1\nthe reason"))); err != nil || len(b) == 0 {
			t.Errorf("%s: stderr is not kept: %v", name, err)
		}
	}
}

func TestStderrIsBoundedAndRedacted(t *testing.T) {
	token := "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	p := &program{result: kernel.CommandResult{Exit: 1, Stderr: []byte(strings.Repeat("世", 5000) + " " + token + " end\xff")}}
	_, _, err := run(t, p, opt)
	if err == nil || len(err.Error()) > 2500 || strings.Contains(err.Error(), token) || !strings.HasSuffix(err.Error(), "[github token] end\uFFFD") {
		t.Errorf("%v", err)
	}
	_, _, err = run(t, &program{result: kernel.CommandResult{Exit: 1}}, opt)
	if err == nil || strings.Contains(err.Error(), "stderr") {
		t.Errorf("no stderr: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]string{"none": "", "no command": `{}`, "an empty one": `{"command":[]}`, "an empty program": `{"command":[""]}`,
		"no duration": `{"command":["a"],"timeout":"soon"}`, "no time": `{"command":["a"],"timeout":"0s"}`, "unknown": `{"command":["a"],"x":1}`} {
		p := &program{}
		_, _, err := run(t, p, o)
		var e *kernel.Error
		if !errors.As(err, &e) || e.Kind != kernel.Invalid || e.Next == "" || p.got.Argv != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProgramThatCannotStart(t *testing.T) {
	gone := kernel.E("proc", kernel.NotFound, nil, "no such program")
	if _, _, err := run(t, &program{err: gone}, opt); !kernel.IsKind(err, kernel.NotFound) {
		t.Errorf("%v", err)
	}
}

func TestStopIsNoFailureOfTheProgram(t *testing.T) {
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	p := &program{result: kernel.CommandResult{Exit: -1}}
	_, err := external.New[kernel.Claim, kernel.Verdict]("verify", p).Run(ctx, kernel.Env{Packs: kerneltest.NewMem(), Options: []byte(opt)}, kernel.Claim{})
	if !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

func TestEveryKind(t *testing.T) {
	nodes := []kernel.Node{
		kernel.Erase(external.New[kernel.Task, kernel.Snapshot]("freeze", nil)), kernel.Erase(external.New[kernel.Turn, kernel.Delivery]("deliver", nil)),
		kernel.Erase(external.New[kernel.Delivery, kernel.Reply]("invoke", nil)), kernel.Erase(external.New[kernel.Reply, kernel.Claim]("receipt", nil)),
		kernel.Erase(external.New[kernel.Claim, kernel.Verdict]("verify", nil)), kernel.Erase(external.New[kernel.Verdict, kernel.Result]("commit", nil)),
	}
	for _, s := range (kernel.Registry{}).With(nodes...).Specs() {
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		p := filepath.Join("testdata", strings.ReplaceAll(s.ID, "/", "-")+".json")
		if *update {
			if err := os.WriteFile(p, append(b, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(p)
		if err != nil || !bytes.Equal(append(b, '\n'), want) {
			t.Errorf("%s differs (-update writes it anew), %v", p, err)
		}
	}
}
