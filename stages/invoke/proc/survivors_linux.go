package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Survivor is a process that carries a marker.
type Survivor struct {
	PID   int
	Start string // ticks since boot: with the pid it names one process for ever
	Value string // of the marker
}

// Survivors finds processes whose environment holds key with one of values: what
// a dead host's supervisors could not end. Names are never looked at.
func Survivors(key string, values map[string]bool) []Survivor {
	envs, _ := filepath.Glob("/proc/[0-9]*/environ")
	var out []Survivor
	for _, p := range envs {
		b, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		for kv := range bytes.SplitSeq(b, []byte{0}) {
			v, ok := cutKey(string(kv), key)
			if !ok || !values[v] {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			if err == nil && pid != os.Getpid() {
				out = append(out, Survivor{pid, startTime(pid), v})
			}
		}
	}
	return out
}

// Reap kills s if it still is the process that was found.
func (s Survivor) Reap() bool {
	if s.Start == "" || startTime(s.PID) != s.Start {
		return false
	}
	return syscall.Kill(s.PID, syscall.SIGKILL) == nil
}

func startTime(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 {
		return ""
	}
	return f[19]
}
