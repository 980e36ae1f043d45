package proc

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// modes are programs that the test binary can be.
var modes = map[string]func() int{"host": host, "zombie": zombie, "chain": chain, "port": port, "pty": pty, "flood": flood}

// host starts what HOST_RUN says and waits to be killed.
func host() int {
	p, err := Start(context.Background(), Spec{Path: "/bin/sh", Args: []string{"-c", os.Getenv("HOST_RUN")}, Dir: "/", Env: os.Environ(),
		KillGrace: hostGrace, Report: os.Getenv("HOST_REPORT"), Marker: "WITAN_RUN=run_host"})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println(p.cmd.Process.Pid) // ends last, after all of its tree
	_, _ = io.Copy(os.Stdout, p.Stdout)
	return 0
}

const hostGrace = 50 * time.Millisecond

// zombie ends its main thread and lives on in another one.
func zombie() int {
	signal.Ignore(syscall.SIGTERM)
	go func() {
		for {
			if f := stat(os.Getpid()); len(f) > 0 && f[0] == "Z" {
				fmt.Println(os.Getpid())
				select {}
			}
			runtime.Gosched()
		}
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0) // of this thread
	return 0
}

// chain forks, leaves its session and ends, for ever (nearly): there is always
// one process, and it never is the one that was seen.
func chain() int {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println(os.Getpid())
	for range 200_000 {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 || pid != 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
	}
	return 0
}

// port holds a port and a file in the current folder.
func port() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	f, err := os.Create("held")
	if err != nil {
		return 1
	}
	fmt.Println(l.Addr())
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	_, _ = l.Accept()
	runtime.KeepAlive(f)
	return 0
}

// pty makes a terminal.
func pty() int {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPTLCK, 0)
	}
	n := 0
	if err == nil {
		n, err = unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPTN)
	}
	if err == nil {
		_, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	fmt.Println("pty:", err)
	return 0
}

const floodBytes = 32 << 20

// flood writes much to both streams at once.
func flood() int {
	done := make(chan struct{})
	go func() { _, _ = io.CopyN(os.Stderr, zeros{}, floodBytes); close(done) }()
	_, _ = io.CopyN(os.Stdout, zeros{}, floodBytes)
	<-done
	return 0
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
