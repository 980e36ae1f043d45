package proc

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a line of /proc/PID/stat.
type process struct {
	pid, parent, group int
	zombie             bool
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

// How often the tree is looked at: seldom while it may end by itself, since
// every look reads the whole of /proc, and often once it must go.
const (
	politePause = 50 * time.Millisecond
	killPause   = time.Millisecond
)

// takeDown ends every descendant: terminate, and after the grace kill, again and
// again until none is left. now leaves the grace out, and so does a wish to kill.
// It returns how many it had to end besides the program.
func takeDown(program int, grace time.Duration, now bool, wish <-chan string, gone <-chan struct{}) int {
	ended := map[int]bool{}
	asked := map[int]bool{}
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	for {
		select {
		case <-gone:
			return len(ended)
		default:
		}
		pause := politePause
		if now {
			pause = killPause
		}
		tree := descendants(os.Getpid())
		for _, d := range tree {
			if d.pid != program && !d.zombie {
				ended[d.pid] = true
			}
			if !now && !asked[d.pid] {
				asked[d.pid] = true
				_ = syscall.Kill(d.pid, syscall.SIGTERM)
				_ = syscall.Kill(d.pid, syscall.SIGCONT) // one that is stopped would not hear
			}
		}
		if now {
			killTree(tree)
		}
		again := time.NewTimer(pause)
		select {
		case <-gone:
		case <-again.C:
		case <-deadline.C:
			now = true
		case w := <-wish:
			now = now || w == EndedKill
		}
		again.Stop()
	}
}

// killTree kills one by one and by group: a group is killed in one step, so that
// what forks all the time cannot slip through. All groups but our own hold
// nothing but descendants, since their sessions were made by us or by them. A
// zombie is killed too: other threads of it may live on.
func killTree(tree []process) {
	own := syscall.Getpgrp()
	var groups []int
	for _, d := range tree {
		_ = syscall.Kill(d.pid, syscall.SIGKILL)
		if d.group > 1 && d.group != own && !slices.Contains(groups, d.group) {
			groups = append(groups, d.group)
		}
	}
	for _, g := range groups {
		_ = syscall.Kill(-g, syscall.SIGKILL)
	}
}

// descendants walks /proc: all processes whose chain of parents reaches root.
func descendants(root int) []process {
	all := map[int]process{}
	for _, pid := range pids() {
		f := stat(pid)
		if len(f) < 3 {
			continue
		}
		parent, err1 := strconv.Atoi(f[1])
		group, err2 := strconv.Atoi(f[2])
		if err1 == nil && err2 == nil {
			all[pid] = process{pid, parent, group, f[0] == "Z" || f[0] == "X"}
		}
	}
	var out []process
	for _, p := range all {
		up, ok := p, true
		for hops := 0; ok && hops <= len(all); hops++ { // the picture is not of one moment: it may hold a circle
			if up.parent == root {
				out = append(out, p)
				break
			}
			up, ok = all[up.parent]
		}
	}
	return out
}

func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read so far
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// stat returns the fields of /proc/PID/stat from the state on. The name before
// it may hold anything, so it is skipped from its last parenthesis.
func stat(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	s := string(b)
	return strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
}
