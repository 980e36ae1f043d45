package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Verdict on a line of a host, by its epoch and revision.
type Fit int

// What can be said of a line.
const (
	Fits      Fit = iota // it was applied
	Duplicate            // it was applied before: nothing changed
	Gap                  // something before it is missing, or the host is another: attach again
	Foreign              // it is about another conversation: nothing changed
)

// snapshot is the first line of an attachment.
type snapshot struct {
	Epoch        string       `json:"epoch"`
	Revision     uint64       `json:"revision"`
	Conversation Conversation `json:"conversation"`
	Messages     []Message    `json:"messages"`
	Runs         []Run        `json:"runs"`
}

// Raw applies one line of an attachment: a snapshot, or a line of a run. The
// error is about bytes that are no line; the state is then as before.
func (s *State) Raw(raw json.RawMessage) (*State, Fit, error) {
	l, err := Parse(raw)
	if err != nil {
		return s, Foreign, fmt.Errorf("a line of the host is no JSON object: %w", err)
	}
	if l.Type != "snapshot" {
		n, fit := s.Line(l)
		return n, fit, nil
	}
	var snap snapshot
	if err := json.Unmarshal(raw, &snap); err != nil {
		return s, Foreign, fmt.Errorf("the host's snapshot cannot be read: %w", err)
	}
	return s.snapshot(snap), Fits, nil
}

// snapshot shows a conversation from its beginning. What was seen of its runs is
// kept: a snapshot has only summaries of them.
func (s *State) snapshot(snap snapshot) *State {
	n := *s
	for i := range snap.Runs {
		r := &snap.Runs[i]
		if s.shows(snap.Conversation.ID) {
			if old := s.Open.Run(r.ID); old != nil {
				snap.Runs[i] = old.resumed(r)
			}
		}
	}
	t := newThread(blocks(snap.Messages, snap.Runs))
	t.Conversation, t.Epoch, t.Revision = snap.Conversation, snap.Epoch, snap.Revision
	if s.shows(snap.Conversation.ID) {
		t.Queue = s.Open.Queue
	}
	n.Open = t
	return &n
}

// resumed is an older view of a run with what a newer summary says.
func (r *Run) resumed(sum *Run) Run {
	n := *r
	n.Status, n.Reason, n.Finished, n.Title, n.Usage = sum.Status, sum.Reason, sum.Finished, sum.Title, sum.Usage
	return n
}

// Line applies a line of a run. Lines with an epoch must follow on the snapshot;
// epoch is looked at before revision.
func (s *State) Line(l Line) (*State, Fit) {
	t := s.Open
	if t == nil {
		return s, Foreign
	}
	if l.Epoch != "" {
		switch {
		case l.Epoch != t.Epoch || l.Revision > t.Revision+1:
			return s, Gap
		case l.Revision <= t.Revision:
			return s, Duplicate
		}
	}
	n := *s
	if t = t.line(l); t == nil {
		return s, Foreign
	}
	if l.Epoch != "" {
		if t == s.Open {
			t = t.clone()
		}
		t.Revision = l.Revision
	}
	n.Open = t
	n.follow(l)
	return &n, Fits
}

// line returns the thread after a line, the same one if the line changes nothing,
// and nil if it is about a run of another conversation.
func (t *Thread) line(l Line) *Thread {
	if l.Run == "" {
		return t
	}
	i := t.block(l.Run)
	if i < 0 {
		if l.Type != "run.created" || l.Conversation != t.Conversation.ID {
			return nil
		}
		t, i = t.withBlock(&Block{}), t.Blocks()
	}
	b := t.Block(i).after(l)
	if b == t.Block(i) {
		return t
	}
	return t.replace(i, b)
}

// follow keeps the lists in step with the lines of the conversation shown.
func (s *State) follow(l Line) {
	switch l.Type {
	case "gate.opened":
		g := gateOf(l)
		if !slices.ContainsFunc(s.Gates, func(h Gate) bool { return h.ID == g.ID }) {
			s.Gates = append(slices.Clip(s.Gates), g)
		}
	case "gate.decided":
		s.Gates = slices.DeleteFunc(slices.Clone(s.Gates), func(g Gate) bool { return g.ID == l.Gate })
	case "run.created", "run.finished":
		r := s.Open.Run(l.Run)
		if r == nil {
			return // the line names no run
		}
		sum := Run{ID: r.ID, Conversation: r.Conversation, Status: r.Status, Plan: r.Plan, Agents: r.Agents,
			Permission: r.Permission, Created: r.Created, Finished: r.Finished, Reason: r.Reason, Title: r.Title, Usage: r.Usage}
		s.Runs = slices.Clone(s.Runs)
		if i := slices.IndexFunc(s.Runs, func(h Run) bool { return h.ID == sum.ID }); i >= 0 {
			s.Runs[i] = sum
		} else {
			s.Runs = append(s.Runs, sum)
		}
	}
}

// Detail gives a run its lines, which the snapshot does not have: what was known
// of the run is replaced by what they say.
type Detail struct {
	Run   string
	Lines []Line
}

func (e Detail) apply(s *State) *State {
	if s.Open == nil {
		return s
	}
	i := s.Open.block(e.Run)
	if i < 0 {
		return s
	}
	old := s.Open.Block(i)
	b := &Block{Run: &Run{ID: e.Run, Status: old.Run.Status, Title: old.Run.Title, Conversation: old.Run.Conversation,
		Plan: old.Run.Plan, Agents: old.Run.Agents, Created: old.Run.Created}, Messages: old.Messages}
	for _, l := range e.Lines {
		if l.Run == e.Run {
			b = b.after(l)
		}
	}
	n := *s
	n.Open = s.Open.replace(i, b)
	return &n
}

// Said gives a message of the person its whole text: the line that tells of a new
// run has only its title.
type Said struct {
	Run  string
	Text string
}

func (e Said) apply(s *State) *State {
	if s.Open == nil {
		return s
	}
	i := s.Open.block(e.Run)
	if i < 0 {
		return s
	}
	old := s.Open.Block(i)
	b := &Block{Run: old.Run, Messages: slices.Clone(old.Messages)}
	for j, m := range b.Messages {
		if m.Role == "user" {
			full := *m
			full.Text = e.Text
			b.Messages[j] = &full
		}
	}
	n := *s
	n.Open = s.Open.replace(i, b)
	return &n
}
