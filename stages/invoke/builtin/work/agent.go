package work

import (
	"context"

	"witan/kernel"
)

// Agent is a built-in agent: deterministic, offline, without a model. Run may
// be called by several goroutines.
type Agent interface {
	Info() Info
	// Run does the turn. What it found goes to emit as it is found; the report
	// is what a person reads. A check that could not run is a sentence of the
	// report; an error means that there is nothing to report at all.
	Run(ctx context.Context, turn Turn, emit Emit) (Report, error)
}

// Info is what lists show of an agent.
type Info struct {
	ID   kernel.AgentID
	Name string
	Doc  string // one line
}

// Turn is where an agent works.
type Turn struct {
	Workspace string // folder to look at; Run never writes it
	State     string // existing folder of this turn for everything that must be written
}

// Report is how an agent closes its turn. It is the same for the same state of
// the workspace: no times, everything sorted.
type Report struct {
	Text    string // Markdown
	Summary string // one sentence, for the receipt
	Claims  []kernel.ClaimText
}

// Emit shows what an agent does while it does it. Its methods may be called by
// one goroutine at a time.
type Emit interface {
	// Plan replaces the plan shown for the turn.
	Plan(steps []Step)
	// Tool says that a step with an effect or a cost begins; kind is one of
	// ACP's tool kinds (read, search, execute). end is called exactly once.
	Tool(kind, title string) (end func(ok bool))
	// Outcome reports a finding or a piece of evidence. content is what
	// o.Hash names; nil for a finding.
	Outcome(o kernel.Outcome, content []byte)
}

// Step is one entry of a plan. Status is pending, in_progress or completed.
type Step struct {
	Text   string
	Status string
}
