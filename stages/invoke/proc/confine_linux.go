package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// minABI is the first version that also keeps files from being emptied.
const minABI = 3

// Landlock says what the kernel offers: "landlock abi N", or why nothing.
func Landlock() (text string, ok bool) {
	n, err := llsys.LandlockGetABIVersion()
	switch {
	case err != nil || n < 1:
		return "this kernel offers no Landlock", false
	case n < minABI:
		return fmt.Sprintf("this kernel's Landlock (abi %d) does not keep files from being emptied", n), false
	}
	return fmt.Sprintf("landlock abi %d", n), true
}

// failure is what the confined stage says when it cannot become the program.
type failure struct {
	Text    string `json:"text"`
	Missing bool   `json:"missing"`
}

func (f *failure) Error() string { return f.Text }

// startConfined starts the program through this binary once more, which
// restricts itself and then becomes the program. It returns when that has
// happened: the status pipe closes at the exec.
func startConfined(s Spec, cmd *exec.Cmd) error {
	path, name, err := self()
	if err != nil {
		return err
	}
	specR, specW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer specR.Close()
	defer specW.Close()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer statusR.Close()
	defer statusW.Close()
	cmd.Path, cmd.Args = path, []string{name, confineArg}
	cmd.ExtraFiles = []*os.File{specR, statusW} // 3, 4
	if err := cmd.Start(); err != nil {
		return err
	}
	specR.Close()
	statusW.Close()
	if err := json.NewEncoder(specW).Encode(s); err != nil {
		_ = cmd.Wait()
		return err
	}
	specW.Close()
	said, err := io.ReadAll(statusR)
	if err == nil && len(said) == 0 {
		return nil
	}
	_ = cmd.Wait() // it says why just before it ends
	f := &failure{Text: "the confinement failed"}
	if err == nil {
		err = json.Unmarshal(said, f)
	}
	return errors.Join(err, f)
}

// confineMain restricts this process and becomes the program. It does not return
// when that works. fd 3 is the spec, fd 4 the status.
func confineMain() int {
	spec, status := os.NewFile(3, "spec"), os.NewFile(4, "status")
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	fail := func(f failure) int {
		_ = json.NewEncoder(status).Encode(f)
		return 126
	}
	var s Spec
	if err := json.NewDecoder(spec).Decode(&s); err != nil {
		return fail(failure{Text: "the confinement is not understood"})
	}
	if err := restrict(s.Write); err != nil {
		return fail(failure{Text: "the confinement failed: " + err.Error()})
	}
	err := syscall.Exec(s.Path, append([]string{s.Path}, s.Args...), s.Env)
	return fail(failure{startFailure(s.Path, err), errors.Is(err, os.ErrNotExist)})
}

// devices may be written by everybody; a terminal of one's own needs ioctl.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"}

// restrict lets this process and all its descendants write below the given
// paths and the usual devices, and nowhere else, and signal nobody but
// themselves where the kernel can. The network stays as it is.
func restrict(write []string) error {
	rules := []landlock.Rule{landlock.RODirs("/")}
	for _, p := range devices {
		if r, _, ok := writable(p); ok {
			rules = append(rules, r.WithIoctlDev())
		}
	}
	for _, p := range write {
		if r, dir, ok := writable(p); ok && dir {
			rules = append(rules, r.WithRefer()) // renaming from folder to folder
		} else if ok {
			rules = append(rules, r)
		}
	}
	c := landlock.Config{HandledAccessFS: landlock.V5.HandledAccessFS, Scoped: llsys.ScopeSignal}
	return c.BestEffort().Restrict(rules...)
}

// writable is the rule for a path that is there; what is not cannot be written.
func writable(p string) (r landlock.FSRule, dir, ok bool) {
	p, err := filepath.EvalSymlinks(p)
	if err != nil {
		return r, false, false
	}
	fi, err := os.Stat(p)
	switch {
	case err != nil:
		return r, false, false
	case fi.IsDir():
		return landlock.RWDirs(p), true, true
	}
	return landlock.RWFiles(p), false, true
}
