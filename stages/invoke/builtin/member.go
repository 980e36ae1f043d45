package builtin

import (
	"context"
	"slices"

	"witan/kernel"
	"witan/stages/invoke/builtin/mend"
	"witan/stages/invoke/builtin/work"
)

// Kinds of reviews of a candidate.
const (
	reviewContent = "content" // the inspector's checks
	reviewTests   = "tests"   // the project's own tests
)

// member is a built-in agent that takes part in discussions and councils.
type member struct {
	Agent
	review Agent          // what it checks a candidate with
	kind   string         // of the review
	checks kernel.AgentID // whose they are
	run    kernel.Runner
}

// task is one turn of a member.
type task struct {
	ctx   context.Context
	turn  work.Turn
	b     block
	words []word // what the others said, as far as the prompt quotes it
	emit  work.Emit
}

// answer closes a turn.
type answer struct {
	text    string
	summary string
	keys    map[string]any // of the receipt, beside those of every phase
}

// phases is what a member does in the phases beyond respond.
var phases = map[string]func(*member, task) (answer, error){
	"discuss":      (*member).discuss,
	"proposal":     (*member).propose,
	"challenge":    (*member).challenge,
	"work":         (*member).work,
	"synthesis":    (*member).synthesise,
	"verification": (*member).verify,
}

// analyse lets the agent do its own analysis.
func (m *member) analyse(t task) (work.Report, []kernel.Outcome, error) {
	h := &held{Emit: t.emit}
	rep, err := m.Run(t.ctx, t.turn, h)
	found := h.findings()
	h.release(none)
	return rep, found, err
}

// first is an analysis before anything is changed: what it finds is kept for
// the verification.
func (m *member) first(t task) (work.Report, []kernel.Outcome, error) {
	rep, found, err := m.analyse(t)
	if err == nil {
		err = m.remember(t, found)
	}
	return rep, found, err
}

// remember keeps what there is before the work, once a run. A member that
// reviews with other checks than its own runs them, unless one is here whose
// they are.
func (m *member) remember(t task, found []kernel.Outcome) error {
	file := beforeFile(t, m.kind)
	if _, known := loadBefore(file); known || file == "" {
		return nil
	}
	if m.review != m.Agent {
		if slices.Contains(t.b.Members, m.checks) {
			return nil
		}
		h := &held{Emit: quiet{}}
		if _, err := m.review.Run(t.ctx, t.turn, h); err != nil {
			return err
		}
		found = h.findings()
	}
	print, err := m.print(t)
	if err != nil {
		return err
	}
	b := before{Version: 1, Print: print, High: []kernel.Digest{}}
	for _, o := range found {
		if o.Severity == "high" {
			b.High = append(b.High, key(o))
		}
	}
	saveBefore(file, b)
	return nil
}

// print names the content of the turn's folder.
func (m *member) print(t task) (kernel.Digest, error) {
	f, err := work.Open(t.ctx, t.turn.Workspace, m.run)
	if err != nil {
		return kernel.Digest{}, err
	}
	defer f.Close()
	return f.Print(t.ctx)
}

// mendable is what could be corrected, with the examples of tests that a
// failing test names.
func (m *member) mendable(t task, said ...string) (changes []mend.Change, notes []string, err error) {
	f, err := work.Open(t.ctx, t.turn.Workspace, m.run)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	changes, notes = mend.Find(t.ctx, f, blamed(said))
	return changes, notes, context.Cause(t.ctx)
}
