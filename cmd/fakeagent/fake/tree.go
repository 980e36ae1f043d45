package fake

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// write tries to write a file and says how that went.
func (t *turn) write(w write) {
	var err error
	switch w.By {
	case "child", "setsid":
		cmd := exec.Command("/bin/sh", "-c", `echo written > "$1"`, "sh", w.Path)
		if w.By == "setsid" {
			cmd = exec.Command("setsid", "-w", "/bin/sh", "-c", `sh -c 'echo written > "$1"' sh "$1"`, "sh", w.Path)
		}
		err = cmd.Run()
	default:
		err = os.WriteFile(w.Path, []byte("written\n"), 0o600)
	}
	if err != nil {
		t.text(fmt.Sprintf("write by %s failed: %v\n", w.By, err))
		return
	}
	t.text("write by " + w.By + " worked\n")
}

// holdArg makes this program one of the descendants that tree starts.
const holdArg = "--hold"

// tree starts descendants that are hard to end.
func (t *turn) tree(s step) {
	for range s.Tree {
		cmd := exec.Command("setsid", "sh", "-c", `trap "" TERM HUP INT; echo $$; while :; do sleep 0.05; done`)
		if s.Hold {
			cmd = exec.Command("setsid", os.Args[0], holdArg)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.text("tree: " + err.Error())
			return
		}
		in := bufio.NewReader(out)
		pid, _ := in.ReadString('\n')
		t.text("pid " + pid)
		if s.Hold {
			port, _ := in.ReadString('\n')
			t.text("port " + port)
		}
		if s.PIDs == "" {
			continue
		}
		f, err := os.OpenFile(s.PIDs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = io.WriteString(f, "pid "+pid)
			f.Close()
		}
		if err != nil {
			t.text("tree: " + err.Error())
		}
	}
}

// hold ignores signals and holds the working directory and a port, for ever.
func hold() int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeagent:", err)
		return 1
	}
	dir, err := os.Open(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeagent:", err)
		return 1
	}
	defer dir.Close()
	fmt.Printf("%d\n%s\n", os.Getpid(), l.Addr())
	for {
		c, err := l.Accept()
		if err == nil {
			c.Close()
		}
	}
}
