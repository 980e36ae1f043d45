package engine

import (
	"context"
	"strings"
	"unicode/utf8"

	"witan/kernel"
)

// Submission is one task of a person.
type Submission struct {
	Text         string
	Conversation kernel.ConversationID // empty = a new one
	Key          string                // idempotency key, empty = none
	Body         kernel.CreatedBody    // plan, agents, permission, stages, limits, workspace
	Attachments  []kernel.Attachment
}

// Bounds of a submission.
const (
	MaxTask    = kernel.MaxTask
	maxKey     = 200 // bytes
	maxHistory = 400 // messages a task refers to
	maxTitle   = 60  // characters
)

// Submit records the run durably and starts it. With a key that a run has
// already claimed it starts nothing and returns that run and true; the same key
// with another text is Invalid.
func (e *Engine) Submit(ctx context.Context, sub Submission) (kernel.RunID, bool, error) {
	if err := e.check(sub); err != nil {
		return "", false, err
	}
	if run, ok, err := e.claimed(ctx, sub); ok || err != nil {
		return run, ok, err
	}
	id, err := e.NewID(kernel.RunPrefix)
	if err != nil {
		return "", false, err
	}
	run := kernel.RunID(id)
	s, err := e.create(ctx, run, sub)
	if kernel.IsKind(err, kernel.Exists) { // somebody claimed the key meanwhile
		return e.claimed(ctx, sub)
	}
	if err != nil {
		return "", false, err
	}
	if err := e.ensure(ctx, s); err != nil {
		return run, false, err
	}
	_, recs, err := e.load(ctx, run)
	if err != nil {
		return run, false, err
	}
	_, err = e.launch(s, recs)
	return run, false, err
}

func (e *Engine) check(sub Submission) error {
	const op = "engine.Submit"
	switch {
	case strings.TrimSpace(sub.Text) == "":
		return kernel.E(op, kernel.Invalid, nil, "the task is empty").WithNext("say what the agents should do")
	case !utf8.ValidString(sub.Text):
		return kernel.E(op, kernel.Invalid, nil, "the task is not UTF-8 text").WithNext("attach the file with --attach")
	case utf8.RuneCountInString(sub.Text) > MaxTask:
		return kernel.E(op, kernel.Invalid, nil, "the task has %d characters, more than %d", utf8.RuneCountInString(sub.Text), MaxTask).
			WithNext("put the long part into a file of the workspace and name it")
	case len(sub.Key) > maxKey:
		return kernel.E(op, kernel.Invalid, nil, "the idempotency key has %d bytes, more than %d", len(sub.Key), maxKey).WithNext("use a shorter --key")
	}
	plan, err := e.Plans.Find(sub.Body.Plan)
	if err != nil {
		return err
	}
	return plan.Check(sub.Body)
}

// claimed finds the run that a submission's key already stands for.
func (e *Engine) claimed(ctx context.Context, sub Submission) (kernel.RunID, bool, error) {
	if sub.Key == "" {
		return "", false, nil
	}
	run, err := e.Ledger.ByKey(ctx, sub.Key)
	if kernel.IsKind(err, kernel.NotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	s, _, err := e.load(ctx, run)
	if err != nil {
		return "", false, err
	}
	t, err := kernel.GetObject[kernel.Task](ctx, e.Packs, s.Created.Task)
	if err != nil {
		return "", false, err
	}
	if t.Text != sub.Text {
		return "", false, kernel.E("engine.Submit", kernel.Invalid, nil, "key %q belongs to %s with another text", sub.Key, run).
			WithNext("use another --key")
	}
	return run, true, nil
}

// create stores the task and the first record.
func (e *Engine) create(ctx context.Context, run kernel.RunID, sub Submission) (*kernel.State, error) {
	b := sub.Body
	task := kernel.Task{Version: kernel.ObjectVersion, Text: sub.Text, Workspace: b.Workspace,
		History: []kernel.HistoryEntry{}, Attachments: sub.Attachments}
	if task.Attachments == nil {
		task.Attachments = []kernel.Attachment{}
	}
	b.TurnSeq = 1
	if sub.Conversation == "" {
		id, err := e.NewID(kernel.ConversationPrefix)
		if err != nil {
			return nil, err
		}
		sub.Conversation = kernel.ConversationID(id)
	} else {
		var err error
		if task.History, err = e.history(ctx, sub.Conversation); err != nil {
			return nil, err
		}
		if b.TurnSeq, err = e.Conversations.ReserveTurns(ctx, sub.Conversation, string(run), 1); err != nil {
			return nil, err
		}
	}
	task.Conversation, b.Conversation = sub.Conversation, sub.Conversation
	b.Message = kernel.MessageID(kernel.DeriveID(kernel.MessagePrefix, string(run), "user"))
	b.Engine, b.Title = kernel.EngineVersion, Title(sub.Text)
	if e.Output != nil {
		b.Output = e.Output(run)
	}
	d, err := kernel.PutObject(ctx, e.Packs, "task", task)
	if err != nil {
		return nil, err
	}
	b.Task = d
	s := kernel.NewState(run)
	dr := &driver{e: e, s: s}
	r, err := dr.newRecord(kernel.RunCreated, "", "", b)
	if err != nil {
		return nil, err
	}
	if r, err = dr.apply(r); err != nil {
		return nil, err
	}
	if e.BeforeAppend != nil {
		e.BeforeAppend([]kernel.Record{r})
	}
	if _, _, err := e.Ledger.Append(ctx, kernel.Batch{Run: run, Records: []kernel.Record{r}, Summary: s.Summary(), Key: sub.Key}); err != nil {
		return nil, err
	}
	return s, e.Ledger.Witness(ctx)
}

// history refers to the conversation's latest messages, and to its first.
func (e *Engine) history(ctx context.Context, id kernel.ConversationID) ([]kernel.HistoryEntry, error) {
	out := []kernel.HistoryEntry{}
	for m, err := range e.Conversations.Messages(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		out = append(out, kernel.HistoryEntry{Message: m.ID, Role: m.Role, Agent: m.Agent, TurnSeq: m.TurnSeq, Text: m.Text, Status: m.Status})
		if len(out) > maxHistory {
			out = append(out[:1], out[2:]...)
		}
	}
	return out, nil
}

// Title is the first line of a text, shortened.
func Title(text string) string {
	line := strings.TrimSpace(text)
	if i := strings.IndexAny(line, "\r\n"); i >= 0 {
		line = line[:i]
	}
	rs := []rune(line)
	if len(rs) > maxTitle {
		return strings.TrimSpace(string(rs[:maxTitle])) + "…"
	}
	return line
}

// Stop asks a run, or one agent of it, to stop; nil once that is durable. A run
// that is not being worked on is NotFound or already over, which is no error.
func (e *Engine) Stop(ctx context.Context, run kernel.RunID, agent kernel.AgentID, by string) error {
	d := e.driver(run)
	if d == nil {
		return e.stopParked(ctx, run, agent, by)
	}
	reply := make(chan error, 1)
	return d.ask(ctx, stopMsg{kernel.StopBody{Agent: agent, By: by}, reply}, reply)
}

// stopParked ends a run that waits for a gate: nobody works on it.
func (e *Engine) stopParked(ctx context.Context, run kernel.RunID, agent kernel.AgentID, by string) error {
	sum, err := e.Ledger.Summary(ctx, run)
	if err != nil || agent != "" || sum.Status != kernel.RunWaiting {
		return err
	}
	s, _, err := e.load(ctx, run)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		kind kernel.RecordKind
		body any
	}{{kernel.RunResumed, kernel.ResumedBody{By: "stop"}}, {kernel.StopRequested, kernel.StopBody{By: by}}} {
		if err := e.amend(ctx, s, r.kind, "", r.body); err != nil {
			return err
		}
	}
	s, recs, err := e.load(ctx, run)
	if err != nil {
		return err
	}
	d, err := e.launch(s, recs)
	if err != nil {
		return err
	}
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reopen lets an ended run go on (By "resume"), or retries its failed slots
// (By "retry"), of the given agents only if there are any.
func (e *Engine) Reopen(ctx context.Context, run kernel.RunID, b kernel.ResumedBody) error {
	if d := e.driver(run); d != nil {
		if b.By == "resume" {
			return nil // already being worked on
		}
		reply := make(chan error, 1)
		return d.ask(ctx, retryMsg{b, reply}, reply)
	}
	s, recs, err := e.load(ctx, run)
	if err != nil {
		return err
	}
	if err := reopenable(s, b); err != nil {
		return err
	}
	d := &driver{e: e, s: s}
	r, err := d.newRecord(kernel.RunResumed, "", "", b)
	if err != nil {
		return err
	}
	head := s.Head
	if r, err = d.apply(r); err != nil {
		return err
	}
	if e.BeforeAppend != nil {
		e.BeforeAppend([]kernel.Record{r})
	}
	if _, _, err := e.Ledger.Append(ctx, kernel.Batch{Run: run, Expect: head, Records: []kernel.Record{r}, Summary: s.Summary()}); err != nil {
		return err
	}
	if err := e.ensure(ctx, s); err != nil {
		return err
	}
	_, err = e.launch(s, append(recs, r))
	return err
}

func reopenable(s *kernel.State, b kernel.ResumedBody) error {
	const op = "engine.Reopen"
	switch {
	case s.Finished != nil && s.Finished.Status == kernel.RunCompleted:
		return kernel.E(op, kernel.Invalid, nil, "run %s is completed", s.Run).WithNext("there is nothing to %s", b.By)
	case s.Attempts >= s.Created.Attempts:
		return kernel.E(op, kernel.Invalid, nil, "run %s has used its %d attempts", s.Run, s.Created.Attempts).WithNext("submit the task again")
	}
	for _, a := range b.Agents {
		found := false
		for _, m := range s.Created.Agents {
			found = found || m == a
		}
		if !found {
			return kernel.E(op, kernel.NotFound, nil, "agent %q is not in run %s", a, s.Run).WithNext("see witan run-show %s", s.Run)
		}
	}
	return nil
}

// ask sends m to the driver and waits for its answer.
func (d *driver) ask(ctx context.Context, m any, reply chan error) error {
	over := kernel.E("engine.ask", kernel.Unavailable, nil, "run %s has just ended", d.s.Run).WithNext("see witan run-show %s", d.s.Run)
	if !d.send(ctx, m) {
		return over
	}
	select {
	case err := <-reply:
		return err
	case <-d.done:
		select { // it answered, and ended with that
		case err := <-reply:
			return err
		default:
			return over
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}
