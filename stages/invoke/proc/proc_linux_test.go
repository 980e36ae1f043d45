package proc

import (
	"bufio"
	"context"
	"errors"
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

	"golang.org/x/sys/unix"

	"witan/kernel"
)

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

// long is a grace that no test waits for.
const long = time.Hour

func alive(pid int) bool {
	f := stat(pid)
	return len(f) > 0 && f[0] != "Z" && f[0] != "X"
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

// mode runs the test binary as one of modes.
func mode(name string, s Spec) Spec {
	s.Path, s.Env = os.Args[0], append(os.Environ(), "PROC_TEST_MODE="+name)
	return s
}

func sh(script string, s Spec) Spec {
	s.Path, s.Args = "sh", []string{"-c", script}
	return s
}

// line reads one line and not a byte more.
func line(t testing.TB, r io.Reader) string {
	t.Helper()
	var out []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(r, b); err != nil {
			t.Fatalf("%v after %q", err, out)
		}
		if b[0] == '\n' {
			return string(out)
		}
		out = append(out, b[0])
	}
}

func wait(t testing.TB, p *Process) Exit {
	t.Helper()
	e, err := p.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEndOfItsOwn(t *testing.T) {
	p := start(t, sh(`cat; echo out; echo err >&2; exit 3`, Spec{}))
	go func() { _, _ = p.Stdin.Write([]byte("in ")); p.Stdin.Close() }()
	out, _ := io.ReadAll(p.Stdout)
	errs, _ := io.ReadAll(p.Stderr)
	e := wait(t, p)
	if e.Code != 3 || e.Ended != EndedItself || string(out) != "in out\n" || string(errs) != "err\n" || e.Descendants != 0 {
		t.Fatalf("%+v %q %q", e, out, errs)
	}
}

func TestStopIsPoliteFirst(t *testing.T) {
	for name, s := range map[string]Spec{
		"awake":    sh(`trap 'echo bye; exit 7' TERM; echo; while :; do sleep 0.01; done`, Spec{KillGrace: long}),
		"stopped":  sh(`trap 'echo bye; exit 7' TERM; echo; while :; do kill -STOP $$; done`, Spec{KillGrace: long}),
		"confined": sh(`trap 'echo bye; exit 7' TERM; echo; while :; do sleep 0.01; done`, Spec{KillGrace: long, Confine: true}),
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, s)
			line(t, p.Stdout)
			p.Stop()
			if e := wait(t, p); e.Code != 7 || e.Ended != EndedStop {
				t.Errorf("%+v", e)
			}
			if got := line(t, p.Stdout); got != "bye" {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestSignalsHaveTheirDefaultAction(t *testing.T) {
	p := start(t, sh(`grep SigIgn /proc/self/status`, Spec{}))
	f := strings.Fields(line(t, p.Stdout))
	ignored, err := strconv.ParseUint(f[1], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGQUIT} {
		if ignored&(1<<(s-1)) != 0 {
			t.Errorf("%v is ignored", s)
		}
	}
}

func TestKillCutsAGraceShort(t *testing.T) {
	p := start(t, sh(`trap "" TERM; echo; while :; do sleep 0.05; done`, Spec{KillGrace: long}))
	line(t, p.Stdout)
	p.Stop()
	p.Stop()
	p.Kill()
	if e := wait(t, p); e.Code != -1 || e.Signal != "killed" {
		t.Fatalf("%+v", e)
	}
}

func TestNothingSurvives(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(*Process)
		want string
	}{
		"stop":                {(*Process).Stop, EndedStop},
		"kill":                {(*Process).Kill, EndedKill},
		"the program crashes": {func(p *Process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL) }, EndedItself},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, sh(hostile, Spec{KillGrace: 30 * time.Millisecond}))
			pids := readPIDs(t, p.Stdout, 8)
			tc.end(p)
			e := wait(t, p)
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("process %d lives", pid)
				}
			}
			if e.Descendants < 5 || e.Ended != tc.want {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestWhatIsHardToKill(t *testing.T) {
	for _, name := range []string{"zombie", "chain"} {
		t.Run(name, func(t *testing.T) {
			p := start(t, mode(name, Spec{KillGrace: time.Millisecond}))
			pid := readPIDs(t, p.Stdout, 1)[0]
			p.Stop()
			wait(t, p)
			if f := stat(pid); len(f) > 0 {
				t.Errorf("process %d is there: %v", pid, f)
			}
		})
	}
}

// startHost runs a host that starts a hostile tree. The first of the processes is
// the supervisor, which ends when all the others have.
func startHost(t testing.TB, env ...string) (*exec.Cmd, []int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "PROC_TEST_MODE=host", "HOST_RUN="+hostile), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, readPIDs(t, out, 9)
}

// untilGone waits, without taking a processor, until the processes have ended; it
// is bounded by the time limit of the tests.
func untilGone(t testing.TB, pids []int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // gone
		}
		for errors.Is(poll(fd), unix.EINTR) {
			continue
		}
		unix.Close(fd)
		if alive(pid) {
			t.Errorf("process %d lives", pid)
		}
	}
}

func poll(fd int) error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
	return err
}

func TestNothingSurvivesTheHost(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report")
	cmd, pids := startHost(t, "HOST_REPORT="+report)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	untilGone(t, pids)
	r, err := ReadReport(report)
	for ; kernel.IsKind(err, kernel.NotFound); r, err = ReadReport(report) {
		runtime.Gosched()
	}
	if err != nil || r.Exit.Ended != EndedHost || r.Exit.Descendants < 5 || r.Marker != "WITAN_RUN=run_host" || r.PID == 0 || r.Start == "" {
		t.Fatalf("%+v %v", r, err)
	}
	if fi, err := os.Stat(report); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", fi, err)
	}
}

func TestNothingSurvivesTheSupervisor(t *testing.T) {
	p := start(t, sh(`setsid sh -c 'echo $$; while :; do sleep 0.05; done' & echo $$; read x; kill -9 $PPID; while :; do sleep 0.05; done`, Spec{KillGrace: long}))
	pids := readPIDs(t, p.Stdout, 2)
	if _, err := io.WriteString(p.Stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	e, err := p.Wait(context.Background())
	if !kernel.IsKind(err, kernel.Interrupted) || e.Ended != EndedSupervisor || e.Descendants < 2 {
		t.Fatalf("%+v %v", e, err)
	}
	untilGone(t, pids)
}

func TestAnOrphanHoldsNothing(t *testing.T) {
	ws := t.TempDir()
	s := mode("port", Spec{})
	p := start(t, sh(`setsid "$SELF" & read x`, Spec{Dir: ws, Env: append(s.Env, "SELF="+s.Path), KillGrace: 20 * time.Millisecond}))
	addr := line(t, p.Stdout)
	p.Stdin.Close() // the program ends by itself; its grandchild has its stdout and a port
	if e := wait(t, p); e.Descendants != 1 || e.Ended != EndedItself {
		t.Fatalf("%+v", e)
	}
	if rest, err := io.ReadAll(p.Stdout); err != nil || len(rest) != 0 {
		t.Fatalf("%q %v", rest, err)
	}
	if err := connect(addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("the port is not free: %v", err)
	}
	if err := os.RemoveAll(ws); err != nil {
		t.Fatal(err)
	}
}

func TestMuchOutput(t *testing.T) {
	p := start(t, mode("flood", Spec{}))
	n := make(chan int64)
	for _, r := range []io.Reader{p.Stdout, p.Stderr} {
		go func() { m, _ := io.Copy(io.Discard, r); n <- m }()
	}
	if a, b := <-n, <-n; a != floodBytes || b != floodBytes {
		t.Fatalf("%d and %d bytes", a, b)
	}
	if e := wait(t, p); e.Code != 0 {
		t.Fatalf("%+v", e)
	}
}

func TestALargeOrder(t *testing.T) {
	big := strings.Repeat("x", 100_000)
	env := os.Environ()
	for i := range 5 { // more than a pipe holds
		env = append(env, "BIG"+strconv.Itoa(i)+"="+big)
	}
	for _, confine := range []bool{false, true} {
		p := start(t, sh(`echo ${#BIG4}`, Spec{Env: env, Confine: confine}))
		if got := line(t, p.Stdout); got != "100000" {
			t.Fatal(got)
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
	plain := write("plain", "x", 0o644)
	for _, tc := range []struct {
		path, dir, want string
		kind            kernel.Kind
	}{
		{"no-such-program-at-all", dir, "not on the PATH", kernel.NotFound},
		{filepath.Join(dir, "gone"), dir, "does not exist", kernel.NotFound},
		{plain, dir, "not an executable", kernel.Invalid},
		{dir, dir, "not an executable", kernel.Invalid},
		{write("interp", "#!/no/such/interpreter\n", 0o755), dir, "interpreter does not exist", kernel.NotFound},
		{write("noexec", "\x00\x01\x02", 0o755), dir, "no program", kernel.Invalid},
		{"sh", filepath.Join(dir, "gone"), "gone cannot be used", kernel.NotFound},
		{"sh", plain, "is not a folder", kernel.Invalid},
	} {
		for _, confine := range []bool{false, true} {
			_, err := Start(context.Background(), Spec{Path: tc.path, Dir: tc.dir, Env: os.Environ(), Confine: confine})
			if err == nil || !strings.Contains(err.Error(), tc.want) || kernel.KindOf(err) != tc.kind {
				t.Errorf("%s, confined %v: %v", tc.path, confine, err)
			}
		}
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	cancel(why)
	tree := t.TempDir()
	p, err := Start(ctx, sh(`sleep 1000`, Spec{Dir: tree, Env: append(os.Environ(), "WITAN_RUN="+tree), KillGrace: long}))
	if err == nil { // the supervisor was quicker
		p.Kill()
		<-p.Done()
	} else if !errors.Is(err, why) {
		t.Fatal(err)
	}
	if left := Survivors("WITAN_RUN", map[string]bool{tree: true}); len(left) != 0 {
		t.Fatalf("%+v", left)
	}
}

func TestTheReportCannotBeWritten(t *testing.T) {
	p := start(t, sh(`exit 5`, Spec{Report: filepath.Join(t.TempDir(), "gone", "report")}))
	if e := wait(t, p); e.Code != 5 || e.Unreported == "" {
		t.Fatalf("%+v", e)
	}
}

func TestReadReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	if _, err := ReadReport(path); !kernel.IsKind(err, kernel.NotFound) {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte(`{"pid":1,`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadReport(path); !kernel.IsKind(err, kernel.Corrupt) {
		t.Error(err)
	}
}

func TestMemory(t *testing.T) {
	p := start(t, sh(`setsid sh -c 'echo; exec sleep 1000' & echo; read x`, Spec{}))
	line(t, p.Stdout)
	line(t, p.Stdout)
	m, err := p.Memory()
	if err != nil || m.Processes < 2 || m.RSS < m.PSS || m.PSS == 0 {
		t.Fatalf("%+v %v", m, err)
	}
	p.Kill()
	wait(t, p)
	if _, err := p.Memory(); !kernel.IsKind(err, kernel.Unavailable) {
		t.Fatal(err)
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
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line(t, out)
	found := Survivors("WITAN_RUN", map[string]bool{value: true})
	if len(found) != 1 || found[0].PID != cmd.Process.Pid {
		t.Fatalf("%+v", found)
	}
	for _, start := range []string{"1", ""} { // a number that belongs to another process now
		other := found[0]
		other.Start = start
		if other.Reap() || !alive(cmd.Process.Pid) {
			t.Fatal("a process of the same number was touched")
		}
	}
	if !found[0].Reap() {
		t.Fatal("not reaped")
	}
	_ = cmd.Wait()
	if found[0].Reap() {
		t.Fatal("reaped twice")
	}
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
	_, err = r.Run(context.Background(), kernel.Command{Argv: []string{"sh", "-c", "kill -9 $PPID; sleep 1000"}, Dir: t.TempDir()})
	if !kernel.IsKind(err, kernel.Interrupted) {
		t.Fatalf("the supervisor was killed, and %v", err)
	}
}

// BenchmarkKillTree reports how long after the grace the last descendant of a
// hostile tree is gone.
func BenchmarkKillTree(b *testing.B) {
	measure := func(b *testing.B, grace time.Duration, once func() time.Duration) {
		var sum, worst time.Duration
		for range b.N {
			d := once() - grace
			sum, worst = sum+d, max(worst, d)
		}
		b.ReportMetric(float64(sum.Microseconds())/float64(b.N)/1000, "ms-after-grace")
		b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms-after-grace")
	}
	b.Run("stop", func(b *testing.B) {
		measure(b, hostGrace, func() time.Duration {
			p := start(b, sh(hostile, Spec{KillGrace: hostGrace}))
			readPIDs(b, p.Stdout, 8)
			t0 := time.Now()
			p.Stop()
			<-p.Done()
			return time.Since(t0)
		})
	})
	b.Run("host-kill-9", func(b *testing.B) {
		measure(b, hostGrace, func() time.Duration {
			cmd, pids := startHost(b)
			t0 := time.Now()
			_ = cmd.Process.Kill()
			untilGone(b, pids)
			d := time.Since(t0)
			_ = cmd.Wait()
			return d
		})
	})
}
