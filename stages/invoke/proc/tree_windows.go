package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// handlesKey names the two handles of the supervisor, which have no fixed numbers here.
const handlesKey = "WITAN_HANDLES"

// hand gives the supervisor its two ends.
func hand(c *exec.Cmd, life, out *os.File) error {
	handles := []syscall.Handle{syscall.Handle(life.Fd()), syscall.Handle(out.Fd())}
	for _, h := range handles {
		if err := windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
			return err
		}
	}
	c.Env = append(c.Env, fmt.Sprintf("%s=%d,%d", handlesKey, handles[0], handles[1]))
	c.SysProcAttr = &syscall.SysProcAttr{AdditionalInheritedHandles: handles}
	return nil
}

// detachShim has nothing to do: a program here does not end with its parent.
func detachShim(*exec.Cmd) {}

// inherited are the ends that hand gave; the program must not get them.
func inherited() (life, out *os.File) {
	var l, o uintptr
	_, _ = fmt.Sscanf(os.Getenv(handlesKey), "%d,%d", &l, &o) // 0 = no lifeline, so no order
	for _, h := range []uintptr{l, o} {
		_ = windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, 0)
	}
	return os.NewFile(l, "lifeline"), os.NewFile(o, "words")
}

func executable(os.FileInfo) bool { return true }

func extensions(env []string) []string {
	ext := getenv(env, "PATHEXT")
	if ext == "" {
		ext = ".COM;.EXE;.BAT;.CMD"
	}
	return append([]string{""}, strings.Split(ext, ";")...)
}

// tree is a job object that ends its processes when its last handle is closed,
// which the system does when the supervisor dies.
type tree struct{ job windows.Handle }

// ownTree puts the supervisor itself into a job, before the program exists, so
// that no descendant can be missed.
func ownTree(*exec.Cmd) (tree, error) {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return tree{}, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(h, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		err = windows.AssignProcessToJobObject(h, windows.CurrentProcess())
	}
	if err != nil {
		_ = windows.CloseHandle(h)
		return tree{}, err
	}
	return tree{h}, nil
}

// terminate has no counterpart here that a program without a window would hear;
// its closed input is the polite word.
func (tree) terminate(*exec.Cmd) {}

// kill ends the program; the rest of the job ends with the supervisor.
func (tree) kill(c *exec.Cmd) { _ = c.Process.Kill() }
