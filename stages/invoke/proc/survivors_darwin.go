package proc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"strings"

	"golang.org/x/sys/unix"
)

// environments yields what the system tells of our processes; it hides those of
// its own programs.
func environments() iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
		if err != nil {
			return
		}
		for _, k := range all {
			pid := int(k.Proc.P_pid)
			b, err := unix.SysctlRaw("kern.procargs2", pid)
			if err != nil {
				continue
			}
			if !yield(pid, afterArgs(b)) {
				return
			}
		}
	}
}

// afterArgs cuts the environment out of kern.procargs2: a count, the path, zeros,
// that many arguments, the environment.
func afterArgs(b []byte) []string {
	if len(b) < 4 {
		return nil
	}
	n := int(binary.NativeEndian.Uint32(b))
	_, rest, _ := bytes.Cut(b[4:], []byte{0})
	parts := strings.Split(string(bytes.TrimLeft(rest, "\x00")), "\x00")
	if n < 0 || n > len(parts) {
		return nil
	}
	return parts[n:]
}

func startTime(pid int) string {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return ""
	}
	return fmt.Sprintf("%d.%06d", k.Proc.P_starttime.Sec, k.Proc.P_starttime.Usec)
}
