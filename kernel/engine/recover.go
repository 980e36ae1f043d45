package engine

import (
	"context"
	"strings"

	"witan/kernel"
)

// recover turns every run that a dead host was working on into an interrupted
// one and waits until that is recorded. A run whose ledger does not hold is left
// as it is, for check to name; lists show it as interrupted.
func (e *Engine) recover(ctx context.Context) ([]kernel.RunID, error) {
	var ids []kernel.RunID
	for sum, err := range e.Ledger.Summaries(ctx) {
		if err != nil {
			return nil, err
		}
		if sum.Status == kernel.RunRunning {
			ids = append(ids, sum.Run)
		}
	}
	var out []kernel.RunID
	for _, id := range ids {
		if err := e.interrupt(ctx, id); err != nil {
			e.Log.Error("run not recovered", "run", id, "err", err)
			continue
		}
		out = append(out, id)
	}
	return out, nil
}

// interrupt records that the host of a run is gone: it closes an open invoke
// stage with the text its stream holds and lets the driver do the rest.
func (e *Engine) interrupt(ctx context.Context, id kernel.RunID) error {
	s, recs, err := e.load(ctx, id)
	if err != nil {
		return err
	}
	if s.Finished != nil { // the row is older than the records
		return nil
	}
	if err := e.ensure(ctx, s); err != nil {
		return err
	}
	more, err := e.closeInvokes(ctx, s)
	if err != nil {
		return err
	}
	d, err := e.launch(s, append(recs, more...))
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

// closeInvokes appends the end of every open invoke and the interruption.
func (e *Engine) closeInvokes(ctx context.Context, s *kernel.State) ([]kernel.Record, error) {
	head := s.Head
	d := &driver{e: e, s: s} // for its record building only
	var recs []kernel.Record
	var streams []kernel.AttemptID
	add := func(kind kernel.RecordKind, at kernel.AttemptID, stage string, body any) error {
		r, err := d.newRecord(kind, at, stage, body)
		if err == nil {
			r, err = d.apply(r)
		}
		recs = append(recs, r)
		return err
	}
	for _, p := range s.Phases {
		for _, sl := range p.Slots {
			for _, a := range sl.Attempts {
				if !a.Invoke.Open() {
					continue
				}
				end, err := e.interruptedEnd(ctx, a)
				if err != nil {
					return nil, err
				}
				if err := add(kernel.StageFailed, a.ID, "invoke", end); err != nil {
					return nil, err
				}
				streams = append(streams, a.ID)
			}
		}
	}
	if !s.Interrupted {
		if err := add(kernel.RunInterrupted, "", "", kernel.InterruptedBody{Reason: "host_gone"}); err != nil {
			return nil, err
		}
	}
	if len(recs) == 0 {
		return nil, nil
	}
	if e.BeforeAppend != nil {
		e.BeforeAppend(recs)
	}
	if _, _, err := e.Ledger.Append(ctx, kernel.Batch{Run: s.Run, Expect: head, Records: recs, Summary: s.Summary()}); err != nil {
		return nil, err
	}
	if err := e.Ledger.Witness(ctx); err != nil {
		return nil, err
	}
	for _, id := range streams {
		if err := e.Streams.DropStream(ctx, id); err != nil {
			return nil, err
		}
	}
	return recs, nil
}

// interruptedEnd is the end of an invoke whose host died, with what was streamed.
func (e *Engine) interruptedEnd(ctx context.Context, a *kernel.Attempt) (kernel.StageEndBody, error) {
	end := kernel.StageEndBody{Impl: a.Invoke.Impl, In: a.Invoke.In, Started: a.Invoke.Started, Class: kernel.ClassCancelled,
		Reason: "host_gone", Status: "interrupted", Why: "the host went away while the agent was working"}
	text, err := e.Streams.ReadStream(ctx, a.ID)
	if err != nil || len(text) == 0 {
		return end, err
	}
	if end.Text, err = e.Packs.Put(ctx, "text", text); err != nil {
		return end, err
	}
	end.Out, err = kernel.PutObject(ctx, e.Packs, "invoke.out", kernel.Reply{Version: kernel.ObjectVersion, Turn: a.Deliver.In,
		Delivery: a.Deliver.End.Out, Text: end.Text, Stop: "interrupted", Tools: []kernel.ToolCall{}, Outcomes: []kernel.Outcome{}})
	return end, err
}

// ensure makes what run.created implies: the conversation and the person's
// message. It is repeated freely.
func (e *Engine) ensure(ctx context.Context, s *kernel.State) error {
	c := s.Created
	conv, err := e.Conversations.Conversation(ctx, c.Conversation)
	if kernel.IsKind(err, kernel.NotFound) {
		conv = kernel.Conversation{ID: c.Conversation, Title: c.Title, Workspace: c.Workspace, Agents: c.Agents, Plan: c.Plan,
			Permission: c.Permission, Created: s.CreatedAt}
		err = nil
	}
	if err != nil {
		return err
	}
	if conv.Updated.Before(s.CreatedAt) {
		conv.Updated = s.CreatedAt
		if err := e.Conversations.PutConversation(ctx, conv); err != nil {
			return err
		}
	}
	if _, err := e.Conversations.ReserveTurns(ctx, c.Conversation, string(s.Run), 1); err != nil {
		return err
	}
	t, err := kernel.GetObject[kernel.Task](ctx, e.Packs, c.Task)
	if err != nil {
		return err
	}
	text, err := e.Packs.Put(ctx, "text", []byte(t.Text))
	if err != nil {
		return err
	}
	return e.Conversations.PutMessage(ctx, kernel.Message{ID: c.Message, Conversation: c.Conversation, Run: s.Run, Role: "user",
		TurnSeq: c.TurnSeq, Text: text, Status: "completed", At: s.CreatedAt, Attachments: t.Attachments})
}

func snake(s string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(s)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
