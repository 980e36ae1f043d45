package proc

import (
	"bytes"
	"os"
	"strconv"

	"witan/kernel"
)

// memory sums up the descendants of a supervisor. One that ended meanwhile
// counts as nothing.
func memory(supervisor int) (Memory, error) {
	var m Memory
	for _, d := range descendants(supervisor) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(d.pid) + "/smaps_rollup")
		if err != nil {
			continue
		}
		m.Processes++
		m.RSS += kib(b, "Rss:")
		m.PSS += kib(b, "Pss:")
	}
	if m.Processes == 0 {
		return m, kernel.E("proc.Memory", kernel.Unavailable, nil, "the program has ended")
	}
	return m, nil
}

// kib reads a line like "Rss:   1234 kB", in bytes.
func kib(b []byte, name string) int64 {
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			f := bytes.Fields(rest)
			if len(f) > 0 {
				n, _ := strconv.ParseInt(string(f[0]), 10, 64) // 0 if it is no number
				return n << 10
			}
		}
	}
	return 0
}
