// Package testscripts drives the real binary with a scripted agent.
package testscripts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"witan/cmd/fakeagent/fake"
	"witan/cmd/witan/cli"
)

// tidied takes the programs of the crash tests away at the end.
type tidied struct{ *testing.M }

func (m tidied) Run() int {
	code := m.M.Run()
	if programsDir != "" {
		_ = os.RemoveAll(programsDir)
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(tidied{m}, map[string]func(){
		"witan":     func() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"fakeagent": func() { os.Exit(fake.Main(os.Args[1:])) },
	})
}

// An empty script passes whatever happens.
func TestNoScriptIsEmpty(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if s := string(b); err != nil || !strings.Contains(s, "exec witan") && !strings.Contains(s, "\nexits ") {
			t.Errorf("%s runs nothing: %v", f, err)
		}
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// Short paths: a socket's path has few bytes.
			home := filepath.Join(e.WorkDir, "h")
			e.Setenv("WITAN_HOME", home)
			e.Setenv("WITAN_KEY_FILE", filepath.Join(e.WorkDir, "key"))
			e.Setenv("XDG_RUNTIME_DIR", "")
			e.Setenv("HOME", filepath.Join(e.WorkDir, "user"))
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			for _, v := range []string{"WITAN_TEST_BUS", "GORACE"} {
				e.Setenv(v, os.Getenv(v))
			}
			if err := os.MkdirAll(filepath.Join(e.WorkDir, "user"), 0o700); err != nil {
				return err
			}
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json":           cmdJSON,
			"expand":         cmdExpand,
			"flip":           cmdFlip,
			"gone":           cmdGone,
			"first":          cmdFirst,
			"until":          cmdUntil,
			"until-gone":     cmdUntilGone,
			"until-gates":    cmdUntilGates,
			"until-line":     cmdUntilLine,
			"revisions":      cmdRevisions,
			"until-host":     cmdUntilHost,
			"until-run":      cmdUntilRun,
			"until-answered": cmdUntilAnswered,
			"until-rows":     cmdUntilRows,
			"try":            cmdTry,
			"exits":          cmdExits,
			"fields":         cmdFields,
			"row-fields":     cmdRowFields,
		},
	})
}

// first VAR LIST: VAR is the first element of a JSON list.
func cmdFirst(ts *testscript.TestScript, neg bool, args []string) {
	var l []string
	if err := json.Unmarshal([]byte(args[1]), &l); err != nil || len(l) == 0 {
		ts.Fatalf("not a list: %s", args[1])
	}
	ts.Setenv(args[0], l[0])
}

// until FILE: waits until FILE exists.
func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	wait(ts, args[0]+" to appear", func() bool { _, err := os.Stat(ts.MkAbs(args[0])); return err == nil })
}

// until-gates N: waits until N gates wait.
func cmdUntilGates(ts *testscript.TestScript, neg bool, args []string) {
	wait(ts, args[0]+" gates", func() bool {
		return ts.Exec("witan", "gates", "--json") == nil && strconv.Itoa(len(rows(ts, "stdout"))) == args[0]
	})
}

// until-line FILE TEXT: waits until a line of FILE holds TEXT.
func cmdUntilLine(ts *testscript.TestScript, neg bool, args []string) {
	wait(ts, args[1]+" in "+args[0], func() bool {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(b), args[1])
	})
}

// revisions FILE: the lines of a view have one epoch and revisions without a hole.
func cmdRevisions(ts *testscript.TestScript, neg bool, args []string) {
	rs := rows(ts, args[0])
	for i, m := range rs {
		if text(m["revision"]) != strconv.Itoa(i+1) || m["epoch"] != rs[0]["epoch"] || m["epoch"] == nil {
			ts.Fatalf("line %d has epoch %v and revision %v", i+1, m["epoch"], m["revision"])
		}
	}
}

// until-run RUN STATUS: waits until the run has the status.
func cmdUntilRun(ts *testscript.TestScript, neg bool, args []string) {
	wait(ts, args[0]+" to be "+args[1], func() bool {
		return ts.Exec("witan", "run-show", args[0], "--json") == nil && rows(ts, "stdout")[0]["status"] == args[1]
	})
}

// until-host: waits until a host accepts commands.
func cmdUntilHost(ts *testscript.TestScript, neg bool, args []string) {
	wait(ts, "a host", func() bool {
		return ts.Exec("witan", "--no-host", "version") == nil && ts.Exec("witan", "--no-host", "agents") == nil
	})
}

// until-answered RUN AGENT: waits until it is on record that the agent's attempt is finished.
func cmdUntilAnswered(ts *testscript.TestScript, neg bool, args []string) {
	wait(ts, args[1]+" to have answered", func() bool {
		if ts.Exec("witan", "run-show", args[0], "--json") != nil {
			return false
		}
		for _, m := range rows(ts, "stdout") {
			if m["type"] == "attempt.finished" && m["agent"] == args[1] {
				return true
			}
		}
		return false
	})
}

// until-rows N ARGS… with KEY=VALUE…: waits until N rows of witan ARGS --json match.
func cmdUntilRows(ts *testscript.TestScript, neg bool, args []string) {
	at := slices.Index(args, "with")
	if at < 2 {
		ts.Fatalf("usage: until-rows N ARGS… with KEY=VALUE…")
	}
	wait(ts, strings.Join(args, " "), func() bool {
		if ts.Exec("witan", append(slices.Clone(args[1:at]), "--json")...) != nil {
			return false
		}
		n := 0
		for _, m := range rows(ts, "stdout") {
			if match(m, args[at+1:]) {
				n++
			}
		}
		return strconv.Itoa(n) == args[0]
	})
}

// try ARGS…: runs witan, whose host may die meanwhile; the exit code says nothing.
func cmdTry(ts *testscript.TestScript, neg bool, args []string) { _ = ts.Exec("witan", args...) }

// exits CODE ARGS…: runs witan, which must end with this exit code.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	err, code := ts.Exec("witan", args[1:]...), 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("witan did not run: %v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}

// wait asks again until it is so; the bound only ends a test that is broken.
func wait(ts *testscript.TestScript, what string, done func() bool) {
	end := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(end) {
			ts.Fatalf("waited in vain for %s", what)
		}
		runtime.Gosched()
	}
}

// rows reads NDJSON.
func rows(ts *testscript.TestScript, file string) []map[string]any {
	var out []map[string]any
	for l := range strings.Lines(ts.ReadFile(file)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			ts.Fatalf("%s: not NDJSON: %q", file, l)
		}
		out = append(out, m)
	}
	return out
}

// match reports whether a row has all KEY=VALUE of args; a value that ends in *
// is a prefix.
func match(m map[string]any, args []string) bool {
	for _, a := range args {
		k, want, _ := strings.Cut(a, "=")
		var v any = m
		for part := range strings.SplitSeq(k, ".") {
			mm, _ := v.(map[string]any)
			v = mm[part]
		}
		got := text(v)
		if p, ok := strings.CutSuffix(want, "*"); ok && strings.HasPrefix(got, p) {
			continue
		}
		if got != want {
			return false
		}
	}
	return true
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case nil:
		return "null"
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// json FILE count N KEY=VALUE…     exactly N rows match
// json FILE env VAR KEY K=V…       VAR is KEY of the first row that matches
// json FILE order KEY a,b,c K=V…   the values of KEY of the rows that match, in order
// json FILE seq                    seq is 1, 2, 3 …
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: json FILE count|env|order|seq …")
	}
	rs := rows(ts, args[0])
	var hits []map[string]any
	pick := func(from int) {
		for _, m := range rs {
			if match(m, args[from:]) {
				hits = append(hits, m)
			}
		}
	}
	switch args[1] {
	case "count":
		pick(3)
		if (strconv.Itoa(len(hits)) == args[2]) == neg {
			ts.Fatalf("%d rows match %v in\n%s", len(hits), args[3:], ts.ReadFile(args[0]))
		}
	case "env":
		pick(4)
		if len(hits) == 0 {
			ts.Fatalf("no row matches %v in\n%s", args[4:], ts.ReadFile(args[0]))
		}
		ts.Setenv(args[2], text(hits[0][args[3]]))
	case "order":
		pick(4)
		var got []string
		for _, m := range hits {
			got = append(got, text(m[args[2]]))
		}
		if (strings.Join(got, ",") == args[3]) == neg {
			ts.Fatalf("%s is %s", args[2], strings.Join(got, ","))
		}
	case "seq":
		for i, m := range rs {
			if text(m["seq"]) != strconv.Itoa(i+1) {
				ts.Fatalf("line %d has seq %v", i+1, m["seq"])
			}
		}
	default:
		ts.Fatalf("unknown json check %q", args[1])
	}
}

// expand FILE…: replaces $VAR in files by the script's variables.
func cmdExpand(ts *testscript.TestScript, neg bool, args []string) {
	for _, f := range args {
		s := os.Expand(ts.ReadFile(f), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(f), []byte(s), 0o600))
	}
}

// flip GLOB [AT]: flips one bit in the middle, or at a byte, of the first file that matches.
func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("no file matches %s", args[0])
	}
	b, err := os.ReadFile(files[0])
	ts.Check(err)
	at := len(b) / 2
	if len(args) > 1 {
		at, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	b[at] ^= 1
	ts.Check(os.WriteFile(files[0], b, 0o600))
}

// until-gone FILE: like gone, but waits for it.
func cmdUntilGone(ts *testscript.TestScript, neg bool, args []string) {
	wait(ts, "the processes of "+args[0]+" to be gone", func() bool { return len(living(ts, args[0])) == 0 })
}

// gone FILE: no process whose "pid N" FILE names is alive.
func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	if l := living(ts, args[0]); len(l) > 0 {
		ts.Fatalf("processes %v live", l)
	}
}

// living are the processes that FILE names as "pid N" and that are alive.
func living(ts *testscript.TestScript, file string) (out []int) {
	n := 0
	for w := range strings.SplitSeq(ts.ReadFile(file), "pid ") {
		var pid int
		if _, err := fmt.Sscanf(w, "%d", &pid); err != nil {
			continue
		}
		n++
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			out = append(out, pid)
		}
	}
	if n == 0 {
		ts.Fatalf("no pid in %s", ts.ReadFile(file))
	}
	return out
}
