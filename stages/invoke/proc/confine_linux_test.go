package proc

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

func connect(addr string) error {
	c, err := net.Dial("tcp", addr)
	if err == nil {
		c.Close()
	}
	return err
}

// confined starts s confined; where the kernel cannot, it checks that this is
// said, and ok is false.
func confined(t *testing.T, s Spec) (p *Process, ok bool) {
	t.Helper()
	s.Confine = true
	p = start(t, s)
	text, ok := Landlock()
	if !ok {
		p.Kill()
		if e := wait(t, p); e.Confined != "none: "+text {
			t.Fatalf("%s, but %+v", text, e)
		}
	}
	return p, ok
}

func TestConfinement(t *testing.T) {
	ws, state := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "keep"), []byte("kept\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, ok := confined(t, sh(`
try() { "$@" 2>>$STATE/errors && echo "did $*"; }
try sh -c 'echo self > $WS/self'
try sh -c 'sh -c "echo child > $WS/child"'
try setsid sh -c 'sh -c "echo grand > $WS/grand"'
try rm $WS/keep
try mv $WS/keep $WS/moved
try mv $WS/keep $STATE/moved
try ln $WS/keep $STATE/linked
try sh -c ': > $WS/keep'
try sh -c 'echo more >> $WS/keep'
try mkdir $WS/dir
try ln -s / $WS/link
cd $STATE && mkdir a b && echo x > a/x && mv a/x b/x && cat b/x $WS/keep && echo y > $FILE && echo z > /dev/null && echo ok`,
		Spec{Dir: ws, Write: []string{state, file, filepath.Join(ws, "not there")}, Env: append(os.Environ(), "WS="+ws, "STATE="+state, "FILE="+file)}))
	if !ok {
		return
	}
	out, _ := io.ReadAll(p.Stdout)
	if e := wait(t, p); !strings.HasPrefix(e.Confined, "landlock abi") {
		t.Fatalf("%+v", e)
	}
	if string(out) != "x\nkept\nok\n" {
		t.Errorf("output:\n%s", out)
	}
	errs, _ := os.ReadFile(filepath.Join(state, "errors"))
	if n := strings.Count(strings.ToLower(string(errs)), "permission denied"); n < 9 {
		t.Errorf("%d refusals:\n%s", n, errs)
	}
	names, _ := os.ReadDir(ws)
	kept, _ := os.ReadFile(filepath.Join(ws, "keep"))
	if len(names) != 1 || string(kept) != "kept\n" {
		t.Errorf("the workspace holds %v, %q", names, kept)
	}
}

func TestConfinedProgramsMayHaveATerminal(t *testing.T) {
	p, ok := confined(t, mode("pty", Spec{}))
	if !ok {
		return
	}
	if got := line(t, p.Stdout); got != "pty: <nil>" {
		t.Fatal(got)
	}
}

// A program that can signal its supervisor can get rid of it.
func TestConfinedProgramsCannotSignalTheirSupervisor(t *testing.T) {
	p, ok := confined(t, sh(`sleep 1000 & kill -9 $! && echo own; kill -9 $PPID 2>/dev/null; echo $?; setsid sh -c 'kill -9 '$PPID 2>/dev/null; echo $?`,
		Spec{KillGrace: 20 * time.Millisecond}))
	if abi, err := llsys.LandlockGetABIVersion(); !ok || err != nil || abi < 6 {
		return
	}
	out, _ := io.ReadAll(p.Stdout)
	if string(out) != "own\n1\n1\n" {
		t.Errorf("%q", out)
	}
	if e := wait(t, p); e.Ended != EndedItself {
		t.Errorf("%+v", e)
	}
}

func TestConfinementLeavesTheNetwork(t *testing.T) {
	ws := t.TempDir()
	p, ok := confined(t, mode("port", Spec{Dir: ws, Write: []string{ws}}))
	if !ok {
		return
	}
	if err := connect(line(t, p.Stdout)); err != nil {
		t.Fatal(err)
	}
}
