package proc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"witan/kernel"
)

// TestMain lets the test binary be the supervisor and a host.
func TestMain(m *testing.M) {
	if code, ok := Main(os.Args[1:]); ok {
		os.Exit(code)
	}
	if os.Getenv("PROC_TEST_HOST") != "" {
		os.Exit(hostMain())
	}
	os.Exit(m.Run())
}

// hostMain starts a hostile tree and waits to be killed.
func hostMain() int {
	p, err := Start(context.Background(), Spec{Path: "/bin/sh", Args: []string{"-c", os.Getenv("PROC_TEST_HOST")}, Dir: "/", Env: os.Environ(), KillGrace: 50 * time.Millisecond})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	_, _ = io.Copy(os.Stdout, p.Stdout)
	return 0
}

// hostile is a tree of children in the same group, in sessions of their own,
// orphaned, deaf to signals, and one that respawns. Each prints its pid.
const hostile = `
deaf='trap "" TERM HUP INT; echo $$; while :; do sleep 0.05; done'
sh -c "$deaf" &
setsid sh -c "$deaf" &
(setsid sh -c "$deaf" &) &
nohup sh -c "$deaf" 2>/dev/null &
setsid sh -c 'trap "" TERM; echo $$; while :; do sh -c "echo \$\$; sleep 0.02"; done' &
trap "" TERM
echo $$
while :; do sleep 0.05; done
`

func alive(pid int) bool {
	_, state, ok := parent(pid)
	return ok && state != 'Z' && state != 'X'
}

func readPIDs(t testing.TB, r io.Reader, n int) []int {
	t.Helper()
	var out []int
	sc := bufio.NewScanner(r)
	for len(out) < n && sc.Scan() {
		pid, err := strconv.Atoi(strings.TrimSpace(sc.Text()))
		if err != nil {
			t.Fatalf("not a pid: %q", sc.Text())
		}
		out = append(out, pid)
	}
	go func() {
		for sc.Scan() {
		}
	}()
	return out
}

func start(t testing.TB, s Spec) *Process {
	t.Helper()
	if s.Env == nil {
		s.Env = os.Environ()
	}
	if s.Dir == "" {
		s.Dir = t.TempDir()
	}
	p, err := Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Done()
		p.Stdin.Close()
		p.Stdout.Close()
		p.Stderr.Close()
	})
	return p
}

func TestEndOfItsOwn(t *testing.T) {
	p := start(t, Spec{Path: "sh", Args: []string{"-c", `cat; echo out; echo err >&2; exit 3`}})
	go func() { _, _ = p.Stdin.Write([]byte("in ")); p.Stdin.Close() }()
	out, _ := io.ReadAll(p.Stdout)
	errs, _ := io.ReadAll(p.Stderr)
	e, err := p.Wait(context.Background())
	if err != nil || e.Code != 3 || string(out) != "in out\n" || string(errs) != "err\n" || e.Descendants != 0 {
		t.Fatalf("%+v %v %q %q", e, err, out, errs)
	}
}

func TestNothingSurvives(t *testing.T) {
	for name, end := range map[string]func(*Process){
		"stop": func(p *Process) { p.Stop() },
		"kill": func(p *Process) { p.Kill() },
		"the program crashes": func(p *Process) {
			_ = syscall.Kill(p.PID(), syscall.SIGKILL)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Spec{Path: "sh", Args: []string{"-c", hostile}, KillGrace: 30 * time.Millisecond})
			pids := readPIDs(t, p.Stdout, 8)
			end(p)
			e, err := p.Wait(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("process %d lives", pid)
				}
			}
			if e.Descendants < 5 {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestNothingSurvivesTheHost(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROC_TEST_HOST="+hostile)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := readPIDs(t, out, 8)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d survives the host", pid)
			}
			runtime.Gosched()
		}
	}
}

func TestStartFailures(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, tc := range []struct {
		path, want string
		kind       kernel.Kind
	}{
		{"no-such-program-at-all", "not on the PATH", kernel.NotFound},
		{filepath.Join(dir, "gone"), "does not exist", kernel.NotFound},
		{write("plain", "x", 0o644), "not an executable", kernel.Invalid},
		{dir, "not an executable", kernel.Invalid},
		{write("interp", "#!/no/such/interpreter\n", 0o755), "interpreter does not exist", kernel.NotFound},
		{write("noexec", "\x00\x01\x02", 0o755), "no program", kernel.Invalid},
	} {
		_, err := Start(context.Background(), Spec{Path: tc.path, Dir: dir, Env: os.Environ()})
		if err == nil || !strings.Contains(err.Error(), tc.want) || kernel.KindOf(err) != tc.kind {
			t.Errorf("%s: %v", tc.path, err)
		}
	}
}

func TestConfinement(t *testing.T) {
	if text, ok := Landlock(); !ok {
		p := start(t, Spec{Path: "true", Confine: true})
		if e, _ := p.Wait(context.Background()); !strings.HasPrefix(e.Confined, "none: ") {
			t.Fatalf("%s, but %+v", text, e)
		}
		return
	}
	ws, state := t.TempDir(), t.TempDir()
	script := `
echo self > $WS/self; echo "self $?"
sh -c 'echo child > $WS/child'; echo "child $?"
setsid sh -c 'sh -c "echo grand > $WS/grand"; echo "grand $?"'
rm $WS/keep; echo "rm $?"
mv $WS/keep $WS/moved; echo "mv $?"
echo x > $STATE/file && cat $WS/keep
echo x > /dev/null && echo ok`
	if err := os.WriteFile(filepath.Join(ws, "keep"), []byte("kept\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, Spec{Path: "sh", Args: []string{"-c", script}, Dir: ws, Confine: true, Write: []string{state},
		Env: append(os.Environ(), "WS="+ws, "STATE="+state)})
	out, _ := io.ReadAll(p.Stdout)
	e, err := p.Wait(context.Background())
	if err != nil || !strings.HasPrefix(e.Confined, "landlock abi") {
		t.Fatalf("%+v %v", e, err)
	}
	names, _ := os.ReadDir(ws)
	if len(names) != 1 || strings.Contains(string(out), "self 0") || strings.Contains(string(out), "child 0") || strings.Contains(string(out), "grand 0") ||
		!strings.HasSuffix(string(out), "kept\nok\n") {
		t.Fatalf("%d entries, output:\n%s", len(names), out)
	}
}

func TestEnvIsAnAllowList(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	t.Setenv("LC_TEST", "y")
	env := strings.Join(Env(map[string]string{"MINE": "z", "PATH": "/only"}), "\n")
	if strings.Contains(env, "AWS_") || !strings.Contains(env, "LC_TEST=y") || !strings.Contains(env, "MINE=z") || strings.Count(env, "PATH=/only") != 1 {
		t.Fatal(env)
	}
}

func TestSurvivorsAreFoundByMarkerAndNeverByNumber(t *testing.T) {
	value := "run_" + t.Name()
	cmd := exec.Command("sh", "-c", "echo; exec sleep 1000")
	cmd.Env = append(os.Environ(), "WITAN_RUN="+value)
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 1))
	found := Survivors("WITAN_RUN", map[string]bool{value: true})
	if len(found) != 1 || found[0].PID != cmd.Process.Pid {
		t.Fatalf("%+v", found)
	}
	other := found[0]
	other.Start = "1" // a number that belongs to another process now
	if other.Reap() || !alive(cmd.Process.Pid) {
		t.Fatal("a process of the same number was touched")
	}
	if !found[0].Reap() {
		t.Fatal("not reaped")
	}
	_ = cmd.Wait()
}

func TestRunner(t *testing.T) {
	r := Runner{KillGrace: 20 * time.Millisecond}
	res, err := r.Run(context.Background(), kernel.Command{Argv: []string{"sh", "-c", "cat; exit 4"}, Dir: t.TempDir(), Stdin: []byte("hello")})
	if err != nil || res.Exit != 4 || string(res.Stdout) != "hello" {
		t.Fatalf("%+v %v", res, err)
	}
	res, err = r.Run(context.Background(), kernel.Command{Argv: []string{"sh", "-c", "(setsid sleep 1000 &) ; seq 1 100000"}, Dir: t.TempDir(), Limit: 100})
	if err != nil || len(res.Stdout) != 100 || res.Cut == 0 || !strings.HasSuffix(string(res.Stdout), "100000\n") {
		t.Fatalf("%d bytes, %+v %v", len(res.Stdout), res.Cut, err)
	}
	res, err = r.Run(context.Background(), kernel.Command{Argv: []string{"sleep", "1000"}, Dir: t.TempDir(), Timeout: time.Millisecond})
	if err != nil || !res.TimedOut {
		t.Fatalf("%+v %v", res, err)
	}
}

// BenchmarkTakeDown reports how long after the grace the last descendant of a
// hostile tree is gone.
func BenchmarkTakeDown(b *testing.B) {
	const grace = 30 * time.Millisecond
	var total time.Duration
	for range b.N {
		p := start(b, Spec{Path: "sh", Args: []string{"-c", hostile}, KillGrace: grace})
		readPIDs(b, p.Stdout, 8)
		t0 := time.Now()
		p.Stop()
		<-p.Done()
		total += time.Since(t0) - grace
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N)/1000, "ms-after-grace")
}
