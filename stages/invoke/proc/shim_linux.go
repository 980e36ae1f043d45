package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

func detachShim(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func executable(fi os.FileInfo) bool { return fi.Mode()&0o111 != 0 }

func extensions([]string) []string { return []string{""} }

// Landlock says what the kernel offers: "landlock abi N", or why nothing.
func Landlock() (text string, ok bool) {
	n, err := llsys.LandlockGetABIVersion()
	if err != nil || n < 1 {
		return "this kernel offers no Landlock", false
	}
	return fmt.Sprintf("landlock abi %d", n), true
}

// shimMain is the supervisor: fd 3 is the lifeline, fd 4 the report.
func shimMain() int {
	life, out := os.NewFile(3, "lifeline"), os.NewFile(4, "report")
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	in := bufio.NewReader(life)
	line, err := in.ReadBytes('\n')
	var o order
	if err != nil || json.Unmarshal(line, &o) != nil {
		return 1 // the host died before it said what to do
	}
	say := func(r report) { b, _ := json.Marshal(r); _, _ = out.Write(append(b, '\n')) }
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		say(report{Exit: &Exit{Code: -1, Failed: "no subreaper: " + err.Error()}})
		return 1
	}
	confined := "none: not asked for"
	cmd, err := command(o.Spec, &confined)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		say(report{Exit: &Exit{Code: -1, Failed: startFailure(o.Spec.Path, err), Missing: errors.Is(err, os.ErrNotExist)}})
		return 0
	}
	// The program has its own ends of the pipes now.
	os.Stdin.Close()
	os.Stdout.Close()
	os.Stderr.Close()
	pid := cmd.Process.Pid
	say(report{PID: pid})

	end := make(chan bool, 1) // true = at once
	go func() {
		word, _ := io.ReadAll(in)
		end <- strings.Contains(string(word), "kill")
	}()
	died := make(chan syscall.WaitStatus, 1)
	gone := make(chan struct{})
	go reap(pid, died, gone)
	e := Exit{Code: -1, Confined: confined}
	now := false
	select {
	case ws := <-died:
		e.Code, e.Signal = status(ws)
	case now = <-end:
	}
	e.Descendants = takeDown(pid, o.Spec.KillGrace, now, gone)
	select {
	case ws := <-died:
		e.Code, e.Signal = status(ws)
	default:
	}
	say(report{Exit: &e})
	return 0
}

func startFailure(path string, err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, os.ErrNotExist) {
		return path + " cannot be started: it or its interpreter does not exist"
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return path + " cannot be started: it is no program (no #! line?)"
	}
	return path + " cannot be started: " + err.Error()
}

// command builds the program's command; a confined one goes through this binary
// once more, which restricts itself and then becomes the program.
func command(s Spec, confined *string) (*exec.Cmd, error) {
	cmd := &exec.Cmd{Path: s.Path, Args: append([]string{s.Path}, s.Args...), Dir: s.Dir, Env: s.Env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !s.Confine {
		return cmd, nil
	}
	text, ok := Landlock()
	if !ok {
		*confined = "none: " + text
		return cmd, nil
	}
	*confined = text
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// What cannot be found out behind the exec is found out here.
	if f, err := os.Open(s.Path); err != nil {
		return nil, err
	} else {
		f.Close()
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() { _, _ = w.Write(b); w.Close() }()
	cmd.Path, cmd.Args = self, []string{self, confineArg}
	cmd.ExtraFiles = []*os.File{r}
	return cmd, nil
}

// confineMain restricts this process and becomes the program. It does not return
// when that works.
func confineMain() int {
	f := os.NewFile(3, "spec")
	var s Spec
	if err := readJSON(f, &s); err != nil {
		fmt.Fprintln(os.Stderr, "witan: the confinement is not understood")
		return 126
	}
	f.Close()
	if err := restrict(s.Write); err != nil {
		fmt.Fprintln(os.Stderr, "witan: the confinement failed: "+err.Error())
		return 126
	}
	err := syscall.Exec(s.Path, append([]string{s.Path}, s.Args...), s.Env)
	fmt.Fprintln(os.Stderr, "witan: "+startFailure(s.Path, err))
	return 127
}

// restrict lets this process and all its descendants write below the given
// paths and the usual devices, and nowhere else.
func restrict(write []string) error {
	rules := []landlock.Rule{landlock.RODirs("/")}
	devices := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"}
	for _, p := range append(devices, write...) {
		fi, err := os.Stat(p)
		if err != nil {
			continue // what is not there cannot be written
		}
		if r, err := filepath.EvalSymlinks(p); err == nil {
			p = r
		}
		if fi.IsDir() {
			rules = append(rules, landlock.RWDirs(p).WithRefer())
		} else {
			rules = append(rules, landlock.RWFiles(p))
		}
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm"} {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			rules = append(rules, landlock.RWDirs(dir))
		}
	}
	return landlock.V5.BestEffort().RestrictPaths(rules...)
}

// reap collects every child until there is none: as long as a descendant lives,
// one of its ancestors is a child of the subreaper, so then the tree is gone.
func reap(program int, died chan<- syscall.WaitStatus, gone chan<- struct{}) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			close(gone)
			return
		case pid == program:
			died <- ws
		}
	}
}

func status(ws syscall.WaitStatus) (int, string) {
	if ws.Signaled() {
		return -1, ws.Signal().String()
	}
	return ws.ExitStatus(), ""
}

// takeDown ends every descendant: terminate, and after the grace kill, again and
// again until none is left. It returns how many it had to end besides the program.
func takeDown(program int, grace time.Duration, now bool, gone <-chan struct{}) int {
	ended := map[int]bool{}
	asked := map[int]bool{}
	deadline := time.Now().Add(grace)
	for pause := time.Millisecond; ; pause = min(2*pause, 10*time.Millisecond) {
		select {
		case <-gone:
			return len(ended)
		default:
		}
		kill := now || !time.Now().Before(deadline)
		for _, pid := range descendants(os.Getpid()) {
			if pid != program {
				ended[pid] = true
			}
			if kill {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			} else if !asked[pid] {
				asked[pid] = true
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		}
		t := time.NewTimer(pause)
		select {
		case <-gone:
		case <-t.C:
		}
		t.Stop()
	}
}

// descendants walks /proc: all processes whose chain of parents reaches root.
func descendants(root int) []int {
	parents := map[int]int{}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if ppid, state, ok := parent(pid); ok && state != 'Z' {
			parents[pid] = ppid
		}
	}
	var out []int
	for pid := range parents {
		for p, hops := pid, 0; hops < 1000; hops++ {
			pp, ok := parents[p]
			if !ok {
				break
			}
			if pp == root {
				out = append(out, pid)
				break
			}
			p = pp
		}
	}
	return out
}

// parent reads /proc/PID/stat; the name in it may hold anything, so it is skipped
// from its last parenthesis.
func parent(pid int) (ppid int, state byte, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	i := strings.LastIndexByte(string(b), ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 2 {
		return 0, 0, false
	}
	ppid, err = strconv.Atoi(f[1])
	return ppid, f[0][0], err == nil
}
