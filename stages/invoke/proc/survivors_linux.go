package proc

import (
	"iter"
	"os"
	"strconv"
	"strings"
	"time"
)

// environments yields what every process of ours was started with; what has
// ended meanwhile, or belongs to somebody else, is left out.
func environments() iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		for _, pid := range pids() {
			if env := environ(pid); env != "" && !yield(pid, strings.Split(env, "\x00")) {
				return
			}
		}
	}
}

// environ reads again what reads as empty: so it does for a moment in the middle
// of an exec, and a process must not be missed for that.
func environ(pid int) string {
	for range 20 {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || len(b) > 0 {
			return string(b)
		}
		if f := stat(pid); len(f) < 2 || f[0] == "Z" || f[1] == "2" || pid == 2 { // gone, or of the kernel
			return ""
		}
		time.Sleep(100 * time.Microsecond)
	}
	return ""
}

// startTime is in ticks since the system started.
func startTime(pid int) string {
	if f := stat(pid); len(f) > 19 {
		return f[19]
	}
	return ""
}
