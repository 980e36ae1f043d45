package proc

import "os"

// Survivor is a process that carries a marker.
type Survivor struct {
	PID   int
	Start string // with the pid it names one process for ever
	Value string // of the marker
}

// Survivors finds processes whose environment holds key with one of values: what
// a dead host's supervisors could not end. Names are never looked at. The caller
// makes sure that the host which gave these values is dead.
func Survivors(key string, values map[string]bool) []Survivor {
	var out []Survivor
	for pid, env := range environments() {
		for _, kv := range env {
			if v, ok := cutKey(kv, key); ok && values[v] && pid != os.Getpid() {
				out = append(out, Survivor{pid, startTime(pid), v})
				break
			}
		}
	}
	return out
}

// Reap kills s if it still is the process that was found. The handle is taken
// before the check, so that the number cannot change hands between the two where
// the system has such handles.
func (s Survivor) Reap() bool {
	p, err := os.FindProcess(s.PID)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	if s.Start == "" || startTime(s.PID) != s.Start {
		return false
	}
	return p.Kill() == nil
}
