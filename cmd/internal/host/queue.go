package host

import (
	"bytes"
	"context"
	"encoding/json"

	"witan/cmd/internal/say"
	"witan/kernel"
)

// Why a queue is paused.
const (
	reasonHostRestarted = "host_restarted"
	reasonNoHost        = "no_host"
	reasonPerson        = "paused_by_person"
	reasonRefused       = "not_accepted"
	reasonQueueBroken   = "queue_unreadable"

	reasonStopped     = "run_stopped"
	reasonInterrupted = "run_interrupted"
	reasonFailed      = "run_failed"
	reasonPartial     = "run_partial"
	reasonBlocked     = "run_blocked"
	reasonRounds      = "run_round_limit"
	reasonBudget      = "run_budget_exhausted"
	reasonWaiting     = "run_waiting"
)

// afterRun says why a queue pauses after a run; "" when it goes on.
func afterRun(s kernel.RunStatus) string {
	switch s {
	case kernel.RunCompleted:
		return ""
	case kernel.RunStopped:
		return reasonStopped
	case kernel.RunInterruptedSt:
		return reasonInterrupted
	case kernel.RunPartial:
		return reasonPartial
	case kernel.RunBlocked:
		return reasonBlocked
	case kernel.RunRoundLimit:
		return reasonRounds
	case kernel.RunBudgetExhausted:
		return reasonBudget
	case kernel.RunWaiting:
		return reasonWaiting
	}
	return reasonFailed
}

func (h *Host) queue() kernel.Queue { return h.store.Conversations }

// submissionKey makes the entry's submission idempotent.
func submissionKey(e kernel.EntryID) string { return "queue/" + string(e) }

// deliver submits a taken entry. Whatever happens on the way, it ends up either
// as one run or back in its place with the queue paused. No run and no error
// means the latter.
func (d *drain) deliver(ctx context.Context, e kernel.QueueEntry) (kernel.RunID, error) {
	err := d.h.submitEntry(ctx, e)
	run, kerr := d.h.store.Ledger.ByKey(ctx, submissionKey(e.ID))
	switch {
	case kerr == nil: // on record, even if it could not start
		return run, d.h.queue().EntryDelivered(ctx, e.Conversation, e.ID)
	case !kernel.IsKind(kerr, kernel.NotFound):
		return "", kerr
	}
	if rerr := d.h.queue().ReturnEntry(ctx, e.Conversation, e.ID); rerr != nil {
		return "", rerr
	}
	if d.ctx.Err() != nil {
		return "", nil // the next host pauses the queue
	}
	return "", d.h.queue().PauseQueue(ctx, e.Conversation, reasonRefused, say.Sentence(err))
}

func (h *Host) submitEntry(ctx context.Context, e kernel.QueueEntry) error {
	args, err := entryArgs(e)
	if err != nil {
		return err
	}
	sub, err := h.submission(ctx, args)
	if err != nil {
		return err
	}
	_, _, err = h.engine.Submit(ctx, sub)
	return err
}

// entryArgs is an entry as a submission.
func entryArgs(e kernel.QueueEntry) (a RunArgs, err error) {
	if len(e.Options) > 0 {
		dec := json.NewDecoder(bytes.NewReader(e.Options))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&a); err != nil {
			return a, kernel.E("host.entryArgs", kernel.Newer, err, "the options of %s are of another version", e.ID).
				WithNext("remove the entry and add it again")
		}
	}
	a.Text, a.Conversation, a.Key = e.Text, string(e.Conversation), submissionKey(e.ID)
	return a, nil
}

// activeIn lists the runs of a conversation that are being worked on.
func (h *Host) activeIn(ctx context.Context, id kernel.ConversationID) (out []kernel.RunID, err error) {
	for _, r := range h.engine.ActiveRuns() {
		sum, err := h.store.Ledger.Summary(ctx, r)
		if err != nil {
			return nil, err
		}
		if sum.Conversation == id {
			out = append(out, r)
		}
	}
	return out, nil
}

// settleQueues is done at start-up, before anything can be sent: what was on its
// way is either on record as a run or waits again, and queues with entries are
// paused until somebody has seen them. What cannot be read stays as it is; it
// is not sent either, for its entries cannot be taken.
func (h *Host) settleQueues(ctx context.Context) {
	for id, err := range h.queue().Queues(ctx) {
		if err == nil {
			err = h.settleQueue(ctx, id)
		}
		if err != nil {
			h.opts.Log.Error("queue not settled", "conversation", id, "err", err)
		}
	}
}

func (h *Host) settleQueue(ctx context.Context, id kernel.ConversationID) error {
	if err := h.queue().PauseQueue(ctx, id, reasonHostRestarted, "the host was started again"); err != nil {
		return err
	}
	entries, _, err := h.queue().Entries(ctx, id)
	for _, e := range entries {
		if !e.Taken {
			continue
		}
		_, kerr := h.store.Ledger.ByKey(ctx, submissionKey(e.ID))
		switch {
		case kerr == nil:
			kerr = h.queue().EntryDelivered(ctx, id, e.ID)
		case kernel.IsKind(kerr, kernel.NotFound):
			kerr = h.queue().ReturnEntry(ctx, id, e.ID)
		}
		if kerr != nil {
			return kerr
		}
	}
	return err
}
