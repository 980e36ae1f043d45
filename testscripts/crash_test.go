package testscripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// place is one folder with a home, a workspace and three scripted agents.
type place struct {
	t   *testing.T
	dir string
	bin string // where the programs are
	env []string
}

// programs builds witan and fakeagent as they are shipped, once: a host that is
// killed a hundred times would spend its life starting the race detector.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "witan-crash-"); err != nil {
		return "", err
	}
	programsDir = dir
	cmd := exec.Command("go", "build", "-trimpath", "-o", dir+string(filepath.Separator), "witan/cmd/witan", "witan/cmd/fakeagent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return dir, err
})

var programsDir string // set by programs

func newPlace(t *testing.T, dir string) *place {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: dir, bin: bin, env: append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "WITAN_HOME="+filepath.Join(dir, "h"), "WITAN_TEST_SEED=7", "XDG_RUNTIME_DIR=", "TMPDIR="+dir,
		"WITAN_KEY_FILE="+filepath.Join(dir, "key"))}
	for _, d := range []string{"h", "ws"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cfg := ""
	for _, a := range []string{"a", "b", "c"} {
		cfg += "[agents." + a + "]\nprotocol = \"acp\"\ncommand = [\"fakeagent\", \"" + filepath.Join(dir, a+".json") + "\"]\n"
		p.write(a+".json", `{"steps":[{"text":"from `+a+`"},{"receipt":{"version":1,"phase":"respond","summary":"s","claims":[{"text":"there","command":"test -f f"}]}}]}`)
	}
	p.write("h/config.toml", cfg)
	p.write("ws/f", "x")
	return p
}

func (p *place) write(name, text string) {
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// witan runs the binary; killed says that it ended itself as kill -9 would.
func (p *place) witan(extra []string, args ...string) (out []byte, code int, killed bool) {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(p.bin, "witan"), args...)
	cmd.Env = append(slices.Clone(p.env), extra...)
	cmd.Dir = p.dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		p.t.Fatal(err)
	}
	if ee != nil {
		if ws, ok := ee.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return out, -1, true
		}
	}
	if bytes.Contains(errs.Bytes(), []byte("goroutine ")) {
		p.t.Fatalf("a stack trace reached the person:\n%s", errs.Bytes())
	}
	return out, cmd.ProcessState.ExitCode(), false
}

func lines(t *testing.T, b []byte) []map[string]any {
	t.Helper()
	var out []map[string]any
	for l := range bytes.Lines(b) {
		var m map[string]any
		if err := json.Unmarshal(l, &m); err != nil {
			t.Fatalf("not NDJSON: %q", l)
		}
		out = append(out, m)
	}
	return out
}

// result is what a run came to: the last output of every stage of every slot
// that counts, and the conversation's messages.
func (p *place) result(run string) (outs []string, messages []string) {
	p.t.Helper()
	b, code, _ := p.witan(nil, "run-show", run, "--json")
	if code != 0 {
		p.t.Fatalf("run-show: %d", code)
	}
	agent, last, conv := map[string]string{}, map[string]string{}, ""
	for _, m := range lines(p.t, b)[1:] {
		at, _ := m["attempt"].(string)
		switch m["type"] {
		case "run.created":
			conv = m["conversation"].(string)
		case "attempt.queued":
			agent[at] = m["agent"].(string)
		case "stage.finished":
			last[agent[at]+" "+m["stage"].(string)] = m["out"].(string)
		}
	}
	for k, v := range last {
		outs = append(outs, k+" "+v)
	}
	slices.Sort(outs)
	b, _, _ = p.witan(nil, "show", conv, "--json")
	for _, m := range lines(p.t, b) {
		messages = append(messages, m["role"].(string)+" "+m["text"].(string)+" "+m["status"].(string))
	}
	return outs, messages
}

// TestKilledBeforeEveryRecord kills the host before every kind of record of a
// run, each the first time it comes up, and goes on each time. The run must come
// to the same packs and messages as one that nobody disturbed.
func TestKilledBeforeEveryRecord(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "p")
	args := []string{"run", "-C", "ws", "--agents", "a,b,c", "--plan", "batch", "--verify", "test -f f", "--key", "k", "--json", "the task"}

	calm := newPlace(t, work)
	out, code, _ := calm.witan(nil, args...)
	if code != 0 {
		t.Fatalf("undisturbed run: %d\n%s", code, out)
	}
	run := lines(t, out)[0]["run"].(string)
	wantOuts, wantMessages := calm.result(run)
	if err := os.RemoveAll(work); err != nil {
		t.Fatal(err)
	}

	p := newPlace(t, work)
	crash := []string{"WITAN_TEST_CRASH_ONCE=" + filepath.Join(dir, "seen")}
	kills := 0
	for rounds := 0; ; rounds++ {
		out, code, killed := p.witan(crash, args...)
		if killed {
			kills++
			continue
		}
		rs := lines(t, out)
		if code == 0 && rs[len(rs)-1]["status"] == "completed" {
			break
		}
		if _, _, killed := p.witan(crash, "resume", run, "--json"); killed {
			kills++
		}
		if rounds > 100 {
			t.Fatalf("no end after %d rounds and %d kills\n%s", rounds, kills, out)
		}
	}
	outs, messages := p.result(run)
	if strings.Join(outs, "\n") != strings.Join(wantOuts, "\n") {
		t.Errorf("packs after %d kills:\n%s\nundisturbed:\n%s", kills, strings.Join(outs, "\n"), strings.Join(wantOuts, "\n"))
	}
	if strings.Join(messages, "\n") != strings.Join(wantMessages, "\n") {
		t.Errorf("messages after %d kills: %q, undisturbed: %q", kills, messages, wantMessages)
	}
	b, code, _ := p.witan(nil, "ledger", "verify", "--json")
	if code != 0 {
		t.Errorf("ledger verify: %s", b)
	}
	b, _, _ = p.witan(nil, "ledger", run, "--json")
	commits, invokes := 0, map[string]int{}
	for _, m := range lines(t, b) {
		if m["kind"] == "commit" {
			commits++
		}
		if m["kind"] == "stage.started" && m["stage"] == "invoke" {
			invokes[m["attempt"].(string)]++
		}
	}
	for at, n := range invokes {
		if n != 1 {
			t.Errorf("attempt %s was invoked %d times", at, n)
		}
	}
	if commits != 1 || kills < 15 {
		t.Errorf("%d commits, %d kills", commits, kills)
	}
	if b, code, _ := p.witan(nil, "check", "--json"); code != 0 {
		t.Errorf("check: %s", b)
	}
	t.Logf("%d kills", kills)
}

// TestKilledAtEveryCrashPoint kills the host at each named point of the stores.
func TestKilledAtEveryCrashPoint(t *testing.T) {
	for _, point := range []string{"ledger.append.before", "ledger.append.after", "ledger.witness", "packs.put.before", "packs.put.after",
		"packs.seal.before_rename", "packs.seal.after_rename", "packs.index"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, t.TempDir())
			args := []string{"run", "-C", "ws", "--agents", "a,b", "--plan", "batch", "--key", "k", "--json", "the task"}
			kills := 0
			for _, n := range []string{"1", "2", "5"} {
				if _, _, killed := p.witan([]string{"WITAN_TEST_CRASH=" + point + ":" + n}, args...); killed {
					kills++
				}
			}
			if kills == 0 {
				t.Fatal("the point was never reached")
			}
			b, _, _ := p.witan(nil, "runs", "--json")
			if bytes.Contains(b, []byte(`"running"`)) {
				t.Fatalf("a run still shows as running: %s", b)
			}
			out, _, _ := p.witan(nil, args...) // the same key: the same run, or a new one where nothing was recorded
			run := lines(t, out)[0]["run"].(string)
			for range 3 {
				if b, _, _ := p.witan(nil, "run-show", run, "--json"); bytes.Contains(b[:bytes.IndexByte(b, '\n')], []byte(`"completed"`)) {
					break
				}
				p.witan(nil, "resume", run, "--json")
			}
			_, messages := p.result(run)
			if strings.Join(messages, "|") != "user the task completed|agent from a completed|agent from b completed" {
				t.Errorf("messages: %q", messages)
			}
			for _, args := range [][]string{{"ledger", "verify"}, {"check"}} {
				if b, code, _ := p.witan(nil, args...); code != 0 {
					t.Errorf("%v: exit %d\n%s", args, code, b)
				}
			}
		})
	}
}
