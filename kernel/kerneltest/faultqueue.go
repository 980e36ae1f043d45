package kerneltest

import (
	"context"
	"iter"

	"witan/kernel"
)

// Queue decorates q.
func (f *Faults) Queue(q kernel.Queue) kernel.Queue { return &faultQueue{q, f} }

type faultQueue struct {
	q kernel.Queue
	f *Faults
}

func (d *faultQueue) AddEntry(ctx context.Context, e kernel.QueueEntry) (kernel.QueueEntry, bool, error) {
	if err := d.f.at("AddEntry"); err != nil {
		return e, false, err
	}
	return d.q.AddEntry(ctx, e)
}

func (d *faultQueue) Entries(ctx context.Context, id kernel.ConversationID) ([]kernel.QueueEntry, kernel.QueueState, error) {
	if err := d.f.at("Entries"); err != nil {
		return nil, kernel.QueueState{}, err
	}
	return d.q.Entries(ctx, id)
}

func (d *faultQueue) Entry(ctx context.Context, e kernel.EntryID) (kernel.QueueEntry, error) {
	return call(d.f, "Entry", func() (kernel.QueueEntry, error) { return d.q.Entry(ctx, e) })
}

func (d *faultQueue) EditEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID, text string) error {
	return do(d.f, "EditEntry", func() error { return d.q.EditEntry(ctx, id, e, text) })
}

func (d *faultQueue) RemoveEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID) error {
	return do(d.f, "RemoveEntry", func() error { return d.q.RemoveEntry(ctx, id, e) })
}

func (d *faultQueue) MoveEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID, place int) error {
	return do(d.f, "MoveEntry", func() error { return d.q.MoveEntry(ctx, id, e, place) })
}

func (d *faultQueue) HoldEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID, held bool) error {
	return do(d.f, "HoldEntry", func() error { return d.q.HoldEntry(ctx, id, e, held) })
}

func (d *faultQueue) TakeEntry(ctx context.Context, id kernel.ConversationID) (kernel.QueueEntry, error) {
	return call(d.f, "TakeEntry", func() (kernel.QueueEntry, error) { return d.q.TakeEntry(ctx, id) })
}

func (d *faultQueue) ReturnEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID) error {
	return do(d.f, "ReturnEntry", func() error { return d.q.ReturnEntry(ctx, id, e) })
}

func (d *faultQueue) EntryDelivered(ctx context.Context, id kernel.ConversationID, e kernel.EntryID) error {
	return do(d.f, "EntryDelivered", func() error { return d.q.EntryDelivered(ctx, id, e) })
}

func (d *faultQueue) PauseQueue(ctx context.Context, id kernel.ConversationID, reason, why string) error {
	return do(d.f, "PauseQueue", func() error { return d.q.PauseQueue(ctx, id, reason, why) })
}

func (d *faultQueue) ResumeQueue(ctx context.Context, id kernel.ConversationID) error {
	return do(d.f, "ResumeQueue", func() error { return d.q.ResumeQueue(ctx, id) })
}

func (d *faultQueue) Queues(ctx context.Context) iter.Seq2[kernel.ConversationID, error] {
	return seq(d.f, "Queues", func() iter.Seq2[kernel.ConversationID, error] { return d.q.Queues(ctx) })
}
