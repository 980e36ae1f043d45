package proc

import (
	"bufio"
	"encoding/json"
	"os"
	"time"
)

// Words of the host on the lifeline, one a line, behind the order.
const (
	wordStop = "stop"
	wordKill = "kill"
)

// order is the first line of the lifeline. It goes over a pipe so that neither
// arguments nor environment show in the list of processes.
type order struct {
	Spec Spec `json:"spec"`
}

// word is what the supervisor says: first that the program runs, then how it ended.
type word struct {
	PID   int    `json:"pid,omitempty"`
	Start string `json:"start,omitempty"`
	Exit  *Exit  `json:"exit,omitempty"`
}

// supervisor is this process when it serves one program.
type supervisor struct {
	order order
	out   *os.File
	wish  chan string // Ended constants; EndedHost is the last one
	pid   int
	start string
}

// newSupervisor takes the order. It is false when the host died before it said
// what to do.
func newSupervisor(life, out *os.File) (*supervisor, bool) {
	in := bufio.NewReader(life)
	s := &supervisor{out: out, wish: make(chan string, 3)}
	line, err := in.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &s.order) != nil {
		return nil, false
	}
	go s.listen(in)
	return s, true
}

// listen ends with the lifeline. A host says each word once, so that the
// channel never fills up.
func (s *supervisor) listen(in *bufio.Reader) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			s.wish <- EndedHost
			return
		}
		switch line[:len(line)-1] {
		case wordStop:
			s.wish <- EndedStop
		case wordKill:
			s.wish <- EndedKill
		}
	}
}

// say tells a host that may be gone.
func (s *supervisor) say(w word) {
	b, _ := json.Marshal(w) // cannot fail
	_, _ = s.out.Write(append(b, '\n'))
}

func (s *supervisor) runs(pid int) {
	s.pid, s.start = pid, startTime(pid)
	s.say(word{PID: pid, Start: s.start})
}

// ended reports the end of the tree: durable first, then to the host.
func (s *supervisor) ended(e Exit) {
	if path := s.order.Spec.Report; path != "" {
		r := Report{PID: s.pid, Start: s.start, Marker: s.order.Spec.Marker, At: time.Now().UTC(), Exit: e}
		if err := r.write(path); err != nil {
			e.Unreported = err.Error()
		}
	}
	s.say(word{Exit: &e})
}
