package model

import "time"

// Conversation is a thread as the list of conversations shows it.
type Conversation struct {
	ID         string    `json:"conversation"`
	Title      string    `json:"title"`
	Workspace  string    `json:"workspace"`
	Agents     []string  `json:"agents"`
	Plan       string    `json:"plan"`
	Permission string    `json:"permission"`
	Archived   bool      `json:"archived"`
	Messages   int       `json:"messages"`
	Updated    time.Time `json:"updated"`
}

// Agent is a program that answers prompts, with its readiness.
type Agent struct {
	ID       string `json:"agent"`
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Version  string `json:"version"`
	Status   string `json:"status"` // ready, needs-sign-in, not-installed, incompatible, unknown
	Reason   string `json:"reason"`
	Next     string `json:"next"`
}

// Ready reports whether the agent can be asked now.
func (a Agent) Ready() bool { return a.Status == "ready" }

// Message is a user, agent or system entry.
type Message struct {
	ID          string       `json:"message"`
	Role        string       `json:"role"`
	Agent       string       `json:"agent"`
	Run         string       `json:"run"`
	Attempt     string       `json:"attempt"`
	Status      string       `json:"status"`
	Text        string       `json:"text"`
	TurnSeq     uint64       `json:"turn_seq"`
	At          time.Time    `json:"at"`
	Attachments []Attachment `json:"attachments"`
}

// Attachment is a file that went along with a message.
type Attachment struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Display string `json:"display"`
	Bytes   int64  `json:"bytes"`
	Hash    string `json:"hash"`
}

// Run is one submission being worked on.
type Run struct {
	ID           string     `json:"run"`
	Conversation string     `json:"conversation"`
	Status       string     `json:"status"` // running, or how it ended
	Plan         string     `json:"plan"`
	Agents       []string   `json:"agents"`
	Permission   string     `json:"permission"`
	Created      time.Time  `json:"created"`
	Finished     *time.Time `json:"finished"`
	Reason       string     `json:"reason"`
	Title        string     `json:"title"`
	Usage        Usage      `json:"usage"`

	Snapshot  string     `json:"-"`
	Phases    []Phase    `json:"-"`
	Attempts  []*Attempt `json:"-"`
	Stages    []StageEnd `json:"-"` // of the run itself, not of an attempt
	Gates     []Gate     `json:"-"`
	Agreed    *Agreed    `json:"-"`
	Findings  []Finding  `json:"-"`
	Evidence  []Proof    `json:"-"`
	Artifacts []Proof    `json:"-"`
	Verdicts  []Verdict  `json:"-"`
	Notices   []Notice   `json:"-"`
	Commit    *Commit    `json:"-"`
	Records   int        `json:"-"` // number of the last line seen
	Known     bool       `json:"-"` // its lines were seen from the start
}

// Active reports whether the run is being worked on.
func (r *Run) Active() bool { return r.Status == "running" || r.Status == "queued" || r.Status == "" }

// Waiting counts the gates that wait for the person.
func (r *Run) Waiting() int {
	n := 0
	for _, g := range r.Gates {
		if g.Open() {
			n++
		}
	}
	return n
}

// Attempt returns the attempt with the given id, or nil.
func (r *Run) Attempt(id string) *Attempt {
	for i := len(r.Attempts) - 1; i >= 0; i-- {
		if r.Attempts[i].ID == id {
			return r.Attempts[i]
		}
	}
	return nil
}

// Latest returns the newest attempt of an agent, or nil.
func (r *Run) Latest(agent string) *Attempt {
	for i := len(r.Attempts) - 1; i >= 0; i-- {
		if r.Attempts[i].Agent == agent {
			return r.Attempts[i]
		}
	}
	return nil
}

// Phase is one step of a plan; it ends in a barrier.
type Phase struct {
	Name     string
	Round    int
	Agents   []string // in slot order
	Status   string   // "" while it goes on
	Started  time.Time
	Finished time.Time
}

// Attempt is one try at filling a slot.
type Attempt struct {
	ID, Agent, Phase, Item    string
	Round, Try                int
	Status                    string // queued, working, or how it ended
	Class, Reason             string
	Queued, Started, Finished time.Time
	Usage                     Usage
	Text                      []byte // streamed; grows at its end only
	Message                   *Message
	Tools                     []Tool
	Stages                    []StageEnd
	Notices                   []Notice
	Receipt                   *Receipt
}

// Live reports whether the attempt waits or works.
func (a *Attempt) Live() bool { return a.Status == "queued" || a.Status == "working" }

// Tool is a tool call of an agent.
type Tool struct{ ID, Kind, Title, Status string }

// StageEnd is a stage that has run. Failed holds the reason if it failed.
type StageEnd struct {
	Stage, Impl, In, Out, Failed string
	Took                         time.Duration
}

// Usage counts what was consumed; nil is unknown, not zero.
type Usage struct {
	Input    *int64 `json:"input"`
	Output   *int64 `json:"output"`
	Cost     *int64 `json:"cost_usd_micros"`
	Complete bool   `json:"complete"`
}

// Tokens is what is known of input and output together.
func (u Usage) Tokens() (n int64, known bool) {
	if u.Input != nil {
		n, known = *u.Input, true
	}
	if u.Output != nil {
		n, known = n+*u.Output, true
	}
	return n, known
}

// Gate is a durable question to the person.
type Gate struct {
	ID      string    `json:"gate"`
	Kind    string    `json:"kind"`
	Run     string    `json:"run"`
	Attempt string    `json:"attempt"`
	Agent   string    `json:"agent"`
	Summary string    `json:"summary"`
	Target  string    `json:"target"`
	Options []Option  `json:"options"`
	Opened  time.Time `json:"opened"`

	Decided string `json:"-"` // the option taken
	By      string `json:"-"`
}

// Open reports whether the gate waits.
func (g Gate) Open() bool { return g.Decided == "" }

// Option is one answer that a gate offers.
type Option struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// Agreed is the plan that all members of a council support.
type Agreed struct {
	Hash      string
	Finalizer string
	Items     []WorkItem
	At        time.Time
}

// WorkItem is one package of work of an agreed plan.
type WorkItem struct {
	ID        string   `json:"id"`
	Owner     string   `json:"owner"`
	Role      string   `json:"role"`
	Objective string   `json:"objective"`
	DependsOn []string `json:"depends_on"`
}

// Finding is something an agent reports. Adopted is the last word on it.
type Finding struct {
	ID       string
	Attempt  string
	Agent    string
	Severity string
	Stance   string
	Title    string
	Detail   string
	Path     string
	Line     int
	Evidence []string
	Adopted  string // accepted, rejected, reopened, …
	By       string
	At       time.Time
}

// Proof is an evidence or an artifact.
type Proof struct{ ID, Attempt, Agent, Kind, Level, Summary, Path, Hash string }

// Verdict is what became of a claim.
type Verdict struct{ Claim, Attempt, Source, Verdict, Reason string }

// Notice is a remark of the program about a run or an attempt.
type Notice struct{ Attempt, Code, Text string }

// Receipt is the typed statement that closed a turn, as far as it is shown.
type Receipt struct{ Phase, Stance, Summary, Source string }

// Commit is the result of a run.
type Commit struct{ ID, Impl, Target, Content string }

// Entry is a message that waits in the queue of a conversation.
type Entry struct {
	ID       string `json:"entry"`
	Position int    `json:"position"`
	Text     string `json:"text"`
	Held     bool   `json:"held"`
}
