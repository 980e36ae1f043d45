package term

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"witan/kernel"
	"witan/kernel/plaintext"
)

// Run renders the lines of one run. Out gets what the person asked for, Err the
// progress; on a terminal the progress is one line that is rewritten.
type Run struct {
	Out, Err io.Writer
	TTY      bool // Err is a terminal
	Color    bool // Out is a terminal

	// What the run came to; for the caller's exit code.
	ID     kernel.RunID
	Status kernel.RunStatus
	Reason string

	agents   []*agent
	byTry    map[string]*agent
	started  time.Time
	plan     string
	findings []line
	proofs   map[string]line
	drawn    bool // a progress line is on the screen
	inText   bool

	committed line // where the result went, if anywhere
}

type agent struct {
	id, state, detail string
	class, reason     string
}

// line holds every field of any line that is shown.
type line struct {
	Type         string   `json:"type"`
	Run          string   `json:"run"`
	At           string   `json:"at"`
	Attempt      string   `json:"attempt"`
	Agent        string   `json:"agent"`
	Agents       []string `json:"agents"`
	Plan         string   `json:"plan"`
	Permission   string   `json:"permission"`
	Routing      string   `json:"routing"`
	Workspace    string   `json:"workspace"`
	Conversation string   `json:"conversation"`
	Snapshot     string   `json:"snapshot"`
	Status       string   `json:"status"`
	Class        string   `json:"class"`
	Reason       string   `json:"reason"`
	Why          string   `json:"why"`
	Stage        string   `json:"stage"`
	Delta        string   `json:"delta"`
	Text         string   `json:"text"`
	Code         string   `json:"code"`
	Title        string   `json:"title"`
	Kind         string   `json:"kind"`
	Severity     string   `json:"severity"`
	Detail       string   `json:"detail"`
	Path         string   `json:"path"`
	Line         int      `json:"line"`
	ID           string   `json:"id"`
	Evidence     []string `json:"evidence"`
	Summary      string   `json:"summary"`
	Level        string   `json:"level"`
	Hash         string   `json:"hash"`
	Claim        string   `json:"claim"`
	Verdict      string   `json:"verdict"`
	Role         string   `json:"role"`
	Commit       string   `json:"commit"`
	Content      string   `json:"content"`
	Target       string   `json:"target"`
	Try          int      `json:"try"`
	Phase        string   `json:"phase"`
	Round        int      `json:"round"`
	Gate         string   `json:"gate"`
	Option       string   `json:"option"`
	By           string   `json:"by"`
	PlanHash     string   `json:"plan_hash"`
	Finalizer    string   `json:"finalizer"`
	Items        []struct {
		ID        string   `json:"id"`
		Owner     string   `json:"owner"`
		Role      string   `json:"role"`
		Objective string   `json:"objective"`
		DependsOn []string `json:"depends_on"`
	} `json:"items"`
}

// Line shows one line. Lines it does not know change nothing.
func (r *Run) Line(raw json.RawMessage) error {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		// A known key with another shape in a kind of line that is not shown.
		return nil
	}
	if r.byTry == nil {
		r.byTry, r.proofs = map[string]*agent{}, map[string]line{}
	}
	switch l.Type {
	case "run.created":
		r.created(l)
	case "snapshot.frozen":
		r.note("context frozen as %s", short(l.Snapshot))
	case "attempt.queued":
		r.queued(l)
	case "attempt.started":
		r.set(l, "working", "")
	case "attempt.finished":
		r.finished(l)
	case "tool":
		if l.Status != "completed" && l.Status != "failed" {
			r.set(l, "working", l.Title)
		}
	case "text":
		r.delta(l)
	case "notice":
		r.say("%s: %s", r.name(l), plaintext.Clean(l.Text))
	case "stage.failed":
		if a := r.byTry[l.Attempt]; a != nil {
			a.class, a.reason = l.Class, l.Why
		}
	case "message":
		r.message(l)
	case "phase.started":
		r.phase(l)
	case "plan.agreed":
		r.agreed(l)
	case "gate.opened":
		r.say("waits for you: %s (%s)", plaintext.Clean(l.Summary), l.Gate)
	case "gate.decided":
		r.say("answered %s by %s (%s)", l.Option, l.By, l.Gate)
	case "commit":
		if l.Target != "record" {
			r.committed = l
		}
	case "finding":
		r.found(l)
	case "evidence":
		r.proofs[l.ID] = l
	case "verify":
		r.verify(l)
	case "run.finished":
		r.end(l)
	}
	return nil
}

func (r *Run) created(l line) {
	r.ID, r.plan = kernel.RunID(l.Run), l.Plan
	r.started, _ = time.Parse(time.RFC3339Nano, l.At)
	for _, id := range l.Agents {
		r.agents = append(r.agents, &agent{id: id, state: "queued"})
	}
	r.note("%s · %s of %s · %s · %s", l.Run, l.Plan, strings.Join(l.Agents, ", "), l.Permission, plaintext.Clean(l.Workspace))
	if l.Routing != "" {
		r.say("picked: %s", plaintext.Clean(l.Routing))
	}
}

func (r *Run) queued(l line) {
	if r.ID == "" {
		r.ID = kernel.RunID(l.Run)
	}
	a := r.find(l.Agent)
	r.byTry[l.Attempt] = a
	a.state, a.detail = "queued", ""
	if l.Try > 1 {
		a.detail = fmt.Sprintf("try %d", l.Try)
	}
	r.progress()
}

// phase heads what follows, where a run has more than one phase.
func (r *Run) phase(l line) {
	if l.Phase == "respond" || l.Phase == "" {
		return
	}
	r.clear()
	head := l.Phase
	if l.Round > 1 || l.Phase == "discuss" {
		head += fmt.Sprintf(", round %d", l.Round)
	}
	r.rule(head)
}

// agreed prints the plan that all support.
func (r *Run) agreed(l line) {
	r.clear()
	fmt.Fprintf(r.Out, "agreed on plan %s; %s integrates\n", short(l.PlanHash), l.Finalizer)
	for _, it := range l.Items {
		after := ""
		if len(it.DependsOn) > 0 {
			after = "  after " + oneLine(strings.Join(it.DependsOn, ", "))
		}
		fmt.Fprintf(r.Out, "  %-4s %-10s %-10s %s%s\n", oneLine(it.ID), it.Owner, it.Role, oneLine(it.Objective), after)
	}
	fmt.Fprintln(r.Out)
}

func (r *Run) find(id string) *agent {
	for _, a := range r.agents {
		if a.id == id {
			return a
		}
	}
	a := &agent{id: id}
	r.agents = append(r.agents, a)
	return a
}

func (r *Run) set(l line, state, detail string) {
	if a := r.byTry[l.Attempt]; a != nil {
		a.state, a.detail = state, detail
		r.progress()
	}
}

func (r *Run) finished(l line) {
	a := r.byTry[l.Attempt]
	if a == nil {
		return
	}
	a.state, a.detail = l.Status, ""
	if l.Status == "completed" {
		r.note("%s answered", a.id)
		return
	}
	why := a.reason
	if why == "" {
		why = strings.ReplaceAll(l.Reason, "_", " ")
	}
	r.say("%s %s: %s", a.id, l.Status, plaintext.Clean(why))
}

// delta streams text where one agent speaks alone; replies of several agents
// are shown whole, in member order, when they are published.
func (r *Run) delta(l line) {
	if r.plan != "direct" {
		return
	}
	r.clear()
	r.inText = true
	fmt.Fprint(r.Out, plaintext.Clean(l.Delta))
}

func (r *Run) message(l line) {
	r.clear()
	if r.plan == "direct" && r.inText {
		r.inText = false
		fmt.Fprintln(r.Out)
		return
	}
	head := l.Agent
	if l.Status != "completed" {
		head += " (" + l.Status + ")"
	}
	r.rule(head)
	fmt.Fprintln(r.Out, strings.TrimRight(plaintext.Clean(l.Text), "\n"))
	fmt.Fprintln(r.Out)
}

func (r *Run) verify(l line) {
	if l.Verdict == "unverified" && l.Reason == "no_record" {
		return // the ordinary case of a claim nobody checked
	}
	r.note("claim %q is %s%s", plaintext.Clean(l.Claim), l.Verdict, in(l.Reason))
}

func in(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + strings.ReplaceAll(reason, "_", " ") + ")"
}

func (r *Run) end(l line) {
	r.Status, r.Reason = kernel.RunStatus(l.Status), l.Reason
	r.clear()
	r.list()
	took := ""
	if at, err := time.Parse(time.RFC3339Nano, l.At); err == nil && !r.started.IsZero() {
		took = fmt.Sprintf(" in %.1f s", at.Sub(r.started).Seconds())
	}
	if r.committed.Target != "" {
		r.say("committed to %s (%s)", plaintext.Clean(r.committed.Target), short(r.committed.Content))
	}
	mark := "✗"
	if r.Status == kernel.RunCompleted {
		mark = "✓"
	}
	r.say("%s %s%s%s", mark, l.Status, took, in(l.Reason))
}

// found keeps a finding; what an agent has found before is not listed again.
func (r *Run) found(l line) {
	for _, f := range r.findings {
		if f.Agent == l.Agent && f.Title == l.Title && f.Path == l.Path && f.Line == l.Line && f.Detail == l.Detail {
			return
		}
	}
	r.findings = append(r.findings, l)
}

// list prints the findings with the evidence a person can check.
func (r *Run) list() {
	if len(r.findings) == 0 {
		return
	}
	r.rule(fmt.Sprintf("%d findings", len(r.findings)))
	for _, f := range r.findings {
		where := plaintext.Clean(f.Path)
		if f.Line > 0 {
			where += fmt.Sprintf(":%d", f.Line)
		}
		fmt.Fprintf(r.Out, "%-6s  %s  %s  [%s]\n", f.Severity, where, oneLine(f.Title), f.Agent)
		if d := oneLine(f.Detail); d != "" {
			fmt.Fprintf(r.Out, "        %s\n", d)
		}
		for _, id := range f.Evidence {
			if p, ok := r.proofs[id]; ok {
				fmt.Fprintf(r.Out, "        evidence %s: %s  %s\n", p.Level, oneLine(p.Summary), short(p.Hash))
			}
		}
	}
	fmt.Fprintln(r.Out)
}

func (r *Run) rule(head string) {
	head = oneLine(head)
	dash := strings.Repeat("─", max(3, 68-len([]rune(head))))
	if r.Color {
		fmt.Fprintf(r.Out, "\x1b[1m── %s %s\x1b[0m\n", head, dash)
		return
	}
	fmt.Fprintf(r.Out, "── %s %s\n", head, dash)
}

func (r *Run) name(l line) string {
	if a := r.byTry[l.Attempt]; a != nil {
		return a.id
	}
	return "run"
}

// note prints one line of progress, on a terminal only.
func (r *Run) note(format string, args ...any) {
	if r.TTY {
		r.say(format, args...)
	}
}

// say prints one line that stays.
func (r *Run) say(format string, args ...any) {
	r.clear()
	fmt.Fprintf(r.Err, format+"\n", args...)
	r.progress()
}

// progress rewrites the one status line of a terminal; it is drawn only when
// something changed.
func (r *Run) progress() {
	if !r.TTY || r.Status != "" || r.inText {
		return
	}
	var parts []string
	for _, a := range r.agents {
		p := a.id + " " + a.state
		if a.detail != "" {
			p += ": " + oneLine(a.detail)
		}
		parts = append(parts, p)
	}
	r.clear()
	fmt.Fprint(r.Err, cut(strings.Join(parts, " · "), 100))
	r.drawn = true
}

func (r *Run) clear() {
	if r.drawn {
		fmt.Fprint(r.Err, "\r\x1b[K")
		r.drawn = false
	}
}

func short(hash string) string { return cut(hash, 19) }

func cut(s string, n int) string {
	if rs := []rune(s); len(rs) > n {
		return string(rs[:n]) + "…"
	}
	return s
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(plaintext.Clean(s)), " ")
}
