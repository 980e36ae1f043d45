package model

import (
	"slices"
	"time"
)

// State is everything that the window shows of a host.
type State struct {
	Conversations []Conversation
	Agents        []Agent
	Gates         []Gate // that wait, in all conversations, oldest first
	Runs          []Run  // summaries of all conversations, without their lines
	Open          *Thread
	Seen          map[string]time.Time // when a conversation was last looked at
	Trouble       string               // why the host cannot be reached; "" if it can
	Home          string               // the person's home folder, shown as ~
}

// Mark is the one word that the list of conversations shows for a conversation.
type Mark int

// Marks, from the weakest to the strongest.
const (
	MarkNone Mark = iota
	MarkNew
	MarkNow
	MarkGate
)

// Mark says what a conversation is at: a gate waits, a run is at work, or a run
// ended well since the person last looked.
func (s *State) Mark(conversation string) Mark {
	m := MarkNone
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.Conversation != conversation {
			continue
		}
		switch {
		case slices.ContainsFunc(s.Gates, func(g Gate) bool { return g.Run == r.ID }):
			return MarkGate
		case r.Active():
			m = max(m, MarkNow)
		case r.Status == "completed" && r.Finished != nil && r.Finished.After(s.Seen[conversation]) && !s.shows(conversation):
			m = max(m, MarkNew)
		}
	}
	return m
}

func (s *State) shows(conversation string) bool {
	return s.Open != nil && s.Open.Conversation.ID == conversation
}

// Agent returns the agent with the given id; one that is not known has its id as
// its name.
func (s *State) Agent(id string) Agent {
	for _, a := range s.Agents {
		if a.ID == id {
			return a
		}
	}
	return Agent{ID: id, Name: id, Status: "unknown"}
}

// Hue is the place of an agent among the hues. It is the place in the list of
// agents, so that an agent has one colour everywhere; those not listed come after.
func (s *State) Hue(id string) int {
	for i, a := range s.Agents {
		if a.ID == id {
			return i
		}
	}
	return len(s.Agents)
}

// Conversation returns the listed conversation with the given id.
func (s *State) Conversation(id string) (Conversation, bool) {
	for _, c := range s.Conversations {
		if c.ID == id {
			return c, true
		}
	}
	return Conversation{}, false
}

// With returns the state after an event.
func (s *State) With(e Event) *State { return e.apply(s) }

// Event is something that happened to the state.
type Event interface{ apply(*State) *State }

// Lists replaces the lists that are not nil.
type Lists struct {
	Conversations []Conversation
	Agents        []Agent
	Gates         []Gate
	Runs          []Run
}

func (e Lists) apply(s *State) *State {
	n := *s
	if e.Conversations != nil {
		n.Conversations = slices.Clone(e.Conversations)
		slices.SortStableFunc(n.Conversations, func(a, b Conversation) int { return b.Updated.Compare(a.Updated) })
	}
	if e.Agents != nil {
		n.Agents = e.Agents
	}
	if e.Gates != nil {
		n.Gates = e.Gates
	}
	if e.Runs != nil {
		n.Runs = e.Runs
	}
	return &n
}

// Close shows no conversation.
type Close struct{}

func (Close) apply(s *State) *State {
	n := *s
	n.Open = nil
	return &n
}

// Looked says that the person saw a conversation at a time.
type Looked struct {
	Conversation string
	At           time.Time
}

func (e Looked) apply(s *State) *State {
	n := *s
	n.Seen = make(map[string]time.Time, len(s.Seen)+1)
	for k, v := range s.Seen {
		n.Seen[k] = v
	}
	n.Seen[e.Conversation] = e.At
	return &n
}

// Trouble says that the host cannot be reached, or with "" that it can again.
type Trouble string

func (e Trouble) apply(s *State) *State {
	n := *s
	n.Trouble = string(e)
	return &n
}

// Queue replaces the queue of the conversation that is shown.
type Queue struct {
	Conversation string
	Entries      []Entry
}

func (e Queue) apply(s *State) *State {
	if !s.shows(e.Conversation) {
		return s
	}
	n, t := *s, s.Open.clone()
	t.Queue, n.Open = e.Entries, t
	return &n
}
