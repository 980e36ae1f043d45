package proc

import (
	"os"
	"os/exec"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

func detachShim(*exec.Cmd) {}

func executable(os.FileInfo) bool { return true }

func extensions(env []string) []string {
	ext := getenv(env, "PATHEXT")
	if ext == "" {
		ext = ".COM;.EXE;.BAT;.CMD"
	}
	return append([]string{""}, strings.Split(ext, ";")...)
}

// job is a job object that ends its processes when its handle is closed, which
// the system does when the supervisor dies.
type job struct{ h windows.Handle }

// ownTree puts the supervisor itself into a job, before the program exists, so
// that no descendant can be missed.
func ownTree(*exec.Cmd) job {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return job{}
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(h, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		err = windows.AssignProcessToJobObject(h, windows.CurrentProcess())
	}
	if err != nil {
		windows.CloseHandle(h)
		return job{}
	}
	return job{h}
}

func (j job) terminate(c *exec.Cmd) {}

// kill ends the program; the rest of the job ends with the supervisor.
func (j job) kill(c *exec.Cmd) { _ = c.Process.Kill() }
