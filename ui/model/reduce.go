package model

import (
	"bytes"
	"slices"
	"time"
)

// after returns the block after a line; the same block if nothing changed.
func (b *Block) after(l Line) *Block {
	r := Run{ID: l.Run}
	if b.Run != nil {
		r = *b.Run
	}
	n := &Block{Messages: b.Messages}
	changed := r.after(l)
	if l.Type == "run.created" {
		n.Messages = b.created(l)
	}
	if l.Type == "message" {
		n.Messages, changed = b.said(l), true
		r.attachMessage(l.Attempt, n.Messages[len(n.Messages)-1])
	}
	if !changed {
		return b
	}
	r.Records = max(r.Records, l.Seq)
	n.Run = &r
	return n
}

// created gives the run the person's message, as far as the line has it.
func (b *Block) created(l Line) []*Message {
	if l.Message == "" || slices.ContainsFunc(b.Messages, func(m *Message) bool { return m.ID == l.Message }) {
		return b.Messages
	}
	return append(slices.Clip(b.Messages), &Message{ID: l.Message, Role: "user", Run: l.Run, Text: l.Title, TurnSeq: l.TurnSeq, At: l.At})
}

// said adds or replaces a message.
func (b *Block) said(l Line) []*Message {
	m := &Message{ID: l.Message, Role: l.Role, Agent: l.Agent, Run: l.Run, Attempt: l.Attempt, Status: l.Status, Text: l.Text, TurnSeq: l.TurnSeq, At: l.At}
	out := slices.DeleteFunc(slices.Clone(b.Messages), func(o *Message) bool { return o.ID == m.ID })
	return append(out, m)
}

// after changes r by a line and says whether anything changed. Slices of r are
// shared with older runs, so they are cloned before an element is written.
func (r *Run) after(l Line) bool {
	switch l.Type {
	case "run.created":
		r.Conversation, r.Plan, r.Agents, r.Permission, r.Created = l.Conversation, l.Plan, l.Agents, l.Permission, l.At
		r.Title, r.Known = l.Title, true
		if r.Status == "" {
			r.Status = "running"
		}
	case "run.resumed":
		r.Status, r.Finished, r.Reason = "running", nil, ""
	case "run.finished":
		at := l.At
		r.Status, r.Reason, r.Finished = l.Status, l.Reason, &at
		if l.Usage != nil {
			r.Usage = *l.Usage
		}
	case "snapshot.frozen":
		r.Snapshot = l.Snapshot
	case "phase.started", "phase.finished":
		return r.phase(l)
	case "plan.agreed":
		r.Agreed = &Agreed{Hash: l.PlanHash, Finalizer: l.Finalizer, Items: l.Items, At: l.At}
	case "gate.opened", "gate.decided":
		return r.gate(l)
	case "finding", "adoption", "evidence", "artifact", "verify", "commit":
		return r.outcome(l)
	case "stage.finished", "stage.failed":
		if l.Attempt == "" {
			r.Stages = withStage(r.Stages, l)
			return true
		}
		return r.attempt(l)
	case "notice":
		if l.Attempt != "" {
			return r.attempt(l)
		}
		r.Notices = append(slices.Clip(r.Notices), Notice{Code: l.Code, Text: l.Text})
	default:
		if l.Attempt == "" {
			return false
		}
		return r.attempt(l)
	}
	return true
}

func (r *Run) phase(l Line) bool {
	i := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Name == l.Phase && p.Round == l.Round })
	if l.Type == "phase.finished" {
		if i < 0 {
			return false
		}
		r.Phases = slices.Clone(r.Phases)
		r.Phases[i].Status, r.Phases[i].Finished = l.Status, l.At
		return true
	}
	p := Phase{Name: l.Phase, Round: l.Round, Started: l.At}
	for _, s := range l.Slots {
		p.Agents = append(p.Agents, s.Agent)
	}
	if i >= 0 {
		return false
	}
	r.Phases = append(slices.Clip(r.Phases), p)
	return true
}

func gateOf(l Line) Gate {
	return Gate{ID: l.Gate, Kind: l.Kind, Run: l.Run, Attempt: l.Attempt, Agent: l.Agent, Summary: l.Summary, Target: l.Target, Options: l.Options, Opened: l.At}
}

func (r *Run) gate(l Line) bool {
	i := slices.IndexFunc(r.Gates, func(g Gate) bool { return g.ID == l.Gate })
	if l.Type == "gate.opened" {
		if i >= 0 {
			return false
		}
		g := gateOf(l)
		if a := r.Attempt(l.Attempt); a != nil {
			g.Agent = a.Agent
		}
		r.Gates = append(slices.Clip(r.Gates), g)
		return true
	}
	if i < 0 {
		return false
	}
	r.Gates = slices.Clone(r.Gates)
	r.Gates[i].Decided, r.Gates[i].By = l.Option, l.By
	return true
}

func (r *Run) outcome(l Line) bool {
	switch l.Type {
	case "finding":
		f := Finding{ID: l.ID, Attempt: l.Attempt, Agent: l.Agent, Severity: l.Severity, Stance: l.Stance, Title: l.Title,
			Detail: l.Detail, Path: l.Path, Line: l.LineNo, Evidence: l.Evidence}
		if slices.ContainsFunc(r.Findings, func(o Finding) bool { return o.ID == f.ID }) {
			return false
		}
		r.Findings = append(slices.Clip(r.Findings), f)
	case "adoption":
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.ID == l.ID })
		if i < 0 {
			return false
		}
		r.Findings = slices.Clone(r.Findings)
		r.Findings[i].Adopted, r.Findings[i].By, r.Findings[i].At = l.State, l.By, l.At
	case "evidence":
		r.Evidence = withProof(r.Evidence, l)
	case "artifact":
		r.Artifacts = withProof(r.Artifacts, l)
	case "verify":
		v := Verdict{Claim: l.Claim, Attempt: l.Attempt, Source: l.Source, Verdict: l.Verdict, Reason: l.Reason}
		if slices.Contains(r.Verdicts, v) {
			return false
		}
		r.Verdicts = append(slices.Clip(r.Verdicts), v)
	case "commit":
		r.Commit = &Commit{ID: l.Commit, Impl: l.Impl, Target: l.Target, Content: l.Content}
	}
	return true
}

func withProof(ps []Proof, l Line) []Proof {
	p := Proof{ID: l.ID, Attempt: l.Attempt, Agent: l.Agent, Kind: l.Kind, Level: l.Level, Summary: l.Summary, Path: l.Path, Hash: l.Hash}
	if i := slices.IndexFunc(ps, func(o Proof) bool { return o.ID == p.ID }); i >= 0 {
		ps = slices.Clone(ps)
		ps[i] = p
		return ps
	}
	return append(slices.Clip(ps), p)
}

// withStage adds the end of a stage; a stage of an attempt that ran again
// replaces what it was before.
func withStage(ss []StageEnd, l Line) []StageEnd {
	e := StageEnd{Stage: l.Stage, Impl: l.Impl, In: l.In, Out: l.Out, Took: time.Duration(l.MS) * time.Millisecond}
	if l.Type == "stage.failed" {
		e.Failed = firstOf(l.Why, l.Reason, l.Class, "failed")
	}
	if i := slices.IndexFunc(ss, func(o StageEnd) bool { return o.Stage == e.Stage }); i >= 0 {
		ss = slices.Clone(ss)
		ss[i] = e
		return ss
	}
	return append(slices.Clip(ss), e)
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// attempt applies a line about an attempt of the run.
func (r *Run) attempt(l Line) bool {
	i := slices.IndexFunc(r.Attempts, func(a *Attempt) bool { return a.ID == l.Attempt })
	var a Attempt
	switch {
	case i >= 0:
		a = *r.Attempts[i]
	case l.Type == "attempt.queued" || l.Type == "attempt.started":
		a, i = Attempt{ID: l.Attempt}, len(r.Attempts)
	default:
		return false
	}
	if !a.after(l) {
		return false
	}
	if i == len(r.Attempts) {
		r.Attempts = append(slices.Clip(r.Attempts), &a)
		return true
	}
	r.Attempts = slices.Clone(r.Attempts)
	r.Attempts[i] = &a
	return true
}

func (a *Attempt) after(l Line) bool {
	switch l.Type {
	case "attempt.queued", "attempt.started":
		a.Agent, a.Phase, a.Round, a.Try = l.Agent, l.Phase, l.Round, l.Try
		a.Item = firstOf(l.Item, a.Item)
		if l.Type == "attempt.queued" {
			a.Queued, a.Status = l.At, firstOf(a.Status, "queued")
		} else if a.Status == "" || a.Status == "queued" {
			a.Started, a.Status = l.At, "working"
		}
	case "attempt.finished":
		a.Status, a.Class, a.Reason, a.Finished = l.Status, l.Class, l.Reason, l.At
		if l.Usage != nil {
			a.Usage = *l.Usage
		}
	case "usage":
		if l.Usage == nil {
			return false
		}
		a.Usage = *l.Usage
	case "text":
		if l.Delta == "" || !a.Live() {
			return false // what is told again of an attempt that ended
		}
		a.Text = append(a.Text, l.Delta...) // older states see a shorter slice
	case "tool":
		t := Tool{ID: l.ID, Kind: l.Kind, Title: l.Title, Status: l.Status}
		i := slices.IndexFunc(a.Tools, func(o Tool) bool { return o.ID == t.ID })
		if i < 0 {
			a.Tools = append(slices.Clip(a.Tools), t)
			break
		}
		a.Tools = slices.Clone(a.Tools)
		t.Title, t.Kind = firstOf(t.Title, a.Tools[i].Title), firstOf(t.Kind, a.Tools[i].Kind)
		a.Tools[i] = t
	case "notice":
		a.Notices = append(slices.Clip(a.Notices), Notice{Attempt: l.Attempt, Code: l.Code, Text: l.Text})
	case "stage.finished", "stage.failed":
		a.Stages = withStage(a.Stages, l)
	case "receipt":
		a.Receipt = &Receipt{Phase: l.Phase, Source: l.Source}
		if l.Receipt != nil {
			a.Receipt.Summary, a.Receipt.Stance = l.Receipt.Summary, l.Receipt.Stance
		}
	default:
		return false
	}
	return true
}

// attachMessage gives an attempt the message that it became.
func (r *Run) attachMessage(id string, m *Message) {
	i := slices.IndexFunc(r.Attempts, func(a *Attempt) bool { return a.ID == id })
	if i < 0 {
		return
	}
	a := *r.Attempts[i]
	a.Message = m
	r.Attempts = slices.Clone(r.Attempts)
	r.Attempts[i] = &a
}

// Words is the text of the attempt to show: the message, once there is one, and
// else what was streamed.
func (a *Attempt) Words() string {
	if a.Message != nil && a.Message.Text != "" {
		return a.Message.Text
	}
	return string(bytes.TrimRight(a.Text, "\n"))
}
