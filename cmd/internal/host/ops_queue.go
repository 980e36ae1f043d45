package host

import (
	"context"
	"encoding/json"

	"witan/kernel"
)

// QueueArgs names a queue, or an entry and what to change of it. An entry is
// found without its conversation too.
type QueueArgs struct {
	Conversation string `json:"conversation,omitempty"`
	Entry        string `json:"entry,omitempty"`
	Text         string `json:"text,omitempty"`
	Position     int    `json:"position,omitempty"`
}

// QueueAddArgs is a message and how it is to be run, as for run.
type QueueAddArgs struct {
	Run RunArgs `json:"run"`
	Key string  `json:"key,omitempty"`
}

// QueueRow is an entry as people and scripts see it. Position is 0 when the
// entry has left the queue.
type QueueRow struct {
	Entry        kernel.EntryID        `json:"entry"`
	Conversation kernel.ConversationID `json:"conversation"`
	Position     int                   `json:"position"`
	Text         string                `json:"text"`
	Held         bool                  `json:"held"`
	Sending      bool                  `json:"sending"`
	Paused       bool                  `json:"paused"` // the whole queue
	Reason       string                `json:"reason"`
	Why          string                `json:"why"`
}

func rowOf(e kernel.QueueEntry, position int, st kernel.QueueState) QueueRow {
	return QueueRow{e.ID, e.Conversation, position, e.Text, e.Held, e.Taken, st.Paused, st.Reason, st.Why}
}

func opQueue(ctx context.Context, h *Host, a QueueArgs, emit Emit) error {
	c, err := h.conversation(ctx, a.Conversation)
	if err != nil {
		return err
	}
	return h.giveQueue(ctx, c.ID, emit)
}

// giveQueue lists what can be read and then says what cannot.
func (h *Host) giveQueue(ctx context.Context, id kernel.ConversationID, emit Emit) error {
	entries, st, err := h.queue().Entries(ctx, id)
	for i, e := range entries {
		if err := give(emit, rowOf(e, i+1, st)); err != nil {
			return err
		}
	}
	return err
}

// giveEntry shows where an entry is now.
func (h *Host) giveEntry(ctx context.Context, e kernel.QueueEntry, emit Emit) error {
	entries, st, err := h.queue().Entries(ctx, e.Conversation)
	if err != nil {
		return err
	}
	for i, o := range entries {
		if o.ID == e.ID {
			return give(emit, rowOf(o, i+1, st))
		}
	}
	return give(emit, rowOf(e, 0, st))
}

// opQueueAdd answers when the entry is durable. What the submission would refuse
// is refused now, while the person is there.
func opQueueAdd(ctx context.Context, h *Host, a QueueAddArgs, emit Emit) error {
	c, err := h.conversation(ctx, a.Run.Conversation)
	if err != nil {
		return err
	}
	if err := h.acceptable(ctx, a.Run); err != nil {
		return err
	}
	text := a.Run.Text
	a.Run.Text, a.Run.Conversation, a.Run.Key, a.Run.Detach = "", "", "", false
	options, err := json.Marshal(a.Run)
	if err != nil {
		return err
	}
	id, err := h.engine.NewID(kernel.EntryPrefix)
	if err != nil {
		return err
	}
	active, err := h.activeIn(ctx, c.ID) // before the entry is there: how these end decides
	if err != nil {
		return err
	}
	e, _, err := h.queue().AddEntry(ctx, kernel.QueueEntry{ID: kernel.EntryID(id), Conversation: c.ID, Text: text,
		Options: options, Key: a.Key, At: h.engine.Clock.Now()})
	if err != nil {
		return err
	}
	if h.drain == nil {
		if err := h.queue().PauseQueue(ctx, c.ID, reasonNoHost, "no long-lived host runs"); err != nil {
			return err
		}
	}
	err = h.giveEntry(ctx, e, emit)
	h.drain.wake(c.ID, active...)
	return err
}

// acceptable refuses what a submission would refuse.
func (h *Host) acceptable(ctx context.Context, a RunArgs) error {
	sub, err := h.submission(ctx, a)
	if err != nil {
		return err
	}
	return kernel.CheckQueueText("host.queue", sub.Text) // without the names it began with
}

// entry finds what a command names.
func (h *Host) entry(ctx context.Context, a QueueArgs) (kernel.QueueEntry, error) {
	none := kernel.QueueEntry{ID: kernel.EntryID(a.Entry)}
	if !kernel.ValidID(kernel.EntryPrefix, a.Entry) {
		return none, kernel.E("host.entry", kernel.NotFound, nil, "%q is not an entry id", a.Entry).WithNext("see witan queue CONVERSATION")
	}
	e, err := h.queue().Entry(ctx, none.ID)
	if a.Conversation == "" {
		if err != nil {
			return none, h.sent(ctx, none.ID, err)
		}
		return e, nil
	}
	c, cerr := h.conversation(ctx, a.Conversation)
	if cerr != nil {
		return none, cerr
	}
	if err != nil || e.Conversation != c.ID { // a damaged entry can be named like this
		e = none
		e.Conversation = c.ID
	}
	return e, nil
}

// sent says of an entry that waits no more which run it became.
func (h *Host) sent(ctx context.Context, e kernel.EntryID, err error) error {
	if !kernel.IsKind(err, kernel.NotFound) {
		return err
	}
	if run, kerr := h.store.Ledger.ByKey(ctx, submissionKey(e)); kerr == nil {
		return kernel.E("host.entry", kernel.Conflict, nil, "entry %s was sent as %s", e, run).WithNext("see witan run-show %s", run)
	}
	return err
}

// changeEntry finds an entry, runs f on it and shows it.
func (h *Host) changeEntry(ctx context.Context, a QueueArgs, emit Emit, f func(kernel.QueueEntry) error) error {
	e, err := h.entry(ctx, a)
	if err != nil {
		return err
	}
	if err := f(e); err != nil {
		return h.sent(ctx, e.ID, err)
	}
	err = h.giveEntry(ctx, e, emit)
	return h.wakeNow(ctx, e.Conversation, err)
}

// wakeNow lets the queue go on after the runs that are at work now.
func (h *Host) wakeNow(ctx context.Context, id kernel.ConversationID, err error) error {
	active, aerr := h.activeIn(ctx, id)
	if aerr == nil {
		h.drain.wake(id, active...)
	}
	if err == nil {
		err = aerr
	}
	return err
}

func opQueueEdit(ctx context.Context, h *Host, a QueueArgs, emit Emit) error {
	return h.changeEntry(ctx, a, emit, func(e kernel.QueueEntry) error {
		e.Text = a.Text
		args, err := entryArgs(e)
		if err != nil {
			return err
		}
		if err := h.acceptable(ctx, args); err != nil {
			return err
		}
		return h.queue().EditEntry(ctx, e.Conversation, e.ID, a.Text)
	})
}

func opQueueRemove(ctx context.Context, h *Host, a QueueArgs, emit Emit) error {
	return h.changeEntry(ctx, a, emit, func(e kernel.QueueEntry) error { return h.queue().RemoveEntry(ctx, e.Conversation, e.ID) })
}

func opQueueMove(ctx context.Context, h *Host, a QueueArgs, emit Emit) error {
	return h.changeEntry(ctx, a, emit, func(e kernel.QueueEntry) error {
		return h.queue().MoveEntry(ctx, e.Conversation, e.ID, a.Position)
	})
}

// opQueueHold holds an entry, or pauses the queue when none is named.
func opQueueHold(ctx context.Context, h *Host, a QueueArgs, emit Emit) error {
	if a.Entry != "" {
		return h.changeEntry(ctx, a, emit, func(e kernel.QueueEntry) error { return h.queue().HoldEntry(ctx, e.Conversation, e.ID, true) })
	}
	c, err := h.conversation(ctx, a.Conversation)
	if err != nil {
		return err
	}
	if err := h.queue().PauseQueue(ctx, c.ID, reasonPerson, "somebody asked for it"); err != nil {
		return err
	}
	return h.giveQueue(ctx, c.ID, emit)
}

// opQueueRelease lets an entry go, or resumes the queue when none is named. It
// shows first what will be sent.
func opQueueRelease(ctx context.Context, h *Host, a QueueArgs, emit Emit) error {
	if a.Entry != "" {
		return h.changeEntry(ctx, a, emit, func(e kernel.QueueEntry) error { return h.queue().HoldEntry(ctx, e.Conversation, e.ID, false) })
	}
	c, err := h.conversation(ctx, a.Conversation)
	if err != nil {
		return err
	}
	if h.drain == nil {
		return kernel.E("host.release", kernel.Invalid, nil, "no long-lived host runs, and only one sends the queue").
			WithNext("start witan serve, then release the queue")
	}
	if err := h.queue().ResumeQueue(ctx, c.ID); err != nil {
		return err
	}
	return h.wakeNow(ctx, c.ID, h.giveQueue(ctx, c.ID, emit))
}
