package kerneltest

import (
	"context"
	"iter"
	"slices"

	"witan/kernel"
)

type memQueue struct {
	entries []kernel.QueueEntry
	state   kernel.QueueState
	used    map[string]kernel.QueueEntry // by key, as they were added
}

func (q *memQueue) find(e kernel.EntryID) int {
	return slices.IndexFunc(q.entries, func(o kernel.QueueEntry) bool { return o.ID == e })
}

// drop takes the entry at i out; an empty queue is not paused.
func (q *memQueue) drop(i int) {
	q.entries = slices.Delete(q.entries, i, i+1)
	if len(q.entries) == 0 {
		q.state = kernel.QueueState{}
	}
}

// AddEntry implements kernel.Queue.
func (m *Mem) AddEntry(ctx context.Context, e kernel.QueueEntry) (kernel.QueueEntry, bool, error) {
	if err := kernel.CheckQueueText("kerneltest.AddEntry", e.Text); err != nil {
		return e, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.conv("AddEntry", e.Conversation)
	if err != nil {
		return e, false, err
	}
	q := &c.queue
	e.Held, e.Taken = false, false
	if old, ok := q.used[e.Key]; ok && e.Key != "" {
		if old.Text != e.Text {
			return e, false, kernel.E("kerneltest.AddEntry", kernel.Invalid, nil, "the key belongs to another text")
		}
		if i := q.find(old.ID); i >= 0 {
			return q.entries[i], true, nil
		}
		e.ID = old.ID
		return e, true, nil
	}
	if len(q.entries) >= kernel.MaxQueue {
		return e, false, kernel.E("kerneltest.AddEntry", kernel.Invalid, nil, "the queue is full")
	}
	if _, _, err := m.entry(e.ID); err == nil {
		return e, false, kernel.E("kerneltest.AddEntry", kernel.Exists, nil, "the entry exists")
	}
	if q.used == nil {
		q.used = map[string]kernel.QueueEntry{}
	}
	q.used[e.Key] = e
	q.entries = append(q.entries, e)
	return e, false, nil
}

// entry finds an entry in whichever queue it waits; m.mu is held.
func (m *Mem) entry(e kernel.EntryID) (*memQueue, int, error) {
	for _, c := range m.convs {
		if i := c.queue.find(e); i >= 0 {
			return &c.queue, i, nil
		}
	}
	return nil, 0, notFound("Entry", "no entry %s", e)
}

// Entries implements kernel.Queue.
func (m *Mem) Entries(ctx context.Context, id kernel.ConversationID) ([]kernel.QueueEntry, kernel.QueueState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.conv("Entries", id)
	if err != nil {
		return nil, kernel.QueueState{}, err
	}
	return slices.Clone(c.queue.entries), c.queue.state, nil
}

// Entry implements kernel.Queue.
func (m *Mem) Entry(ctx context.Context, e kernel.EntryID) (kernel.QueueEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, i, err := m.entry(e)
	if err != nil {
		return kernel.QueueEntry{}, err
	}
	return q.entries[i], nil
}

// onEntry runs f on the queue and the place of an entry; fixed ones are refused.
func (m *Mem) onEntry(id kernel.ConversationID, e kernel.EntryID, taken bool, f func(*memQueue, int)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.conv("Queue", id)
	if err != nil {
		return err
	}
	i := c.queue.find(e)
	if i < 0 {
		return notFound("Queue", "no entry %s", e)
	}
	if c.queue.entries[i].Taken && !taken {
		return kernel.E("kerneltest.Queue", kernel.Conflict, nil, "entry %s is being sent", e)
	}
	f(&c.queue, i)
	return nil
}

// EditEntry implements kernel.Queue.
func (m *Mem) EditEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID, text string) error {
	if err := kernel.CheckQueueText("kerneltest.EditEntry", text); err != nil {
		return err
	}
	return m.onEntry(id, e, false, func(q *memQueue, i int) { q.entries[i].Text = text })
}

// RemoveEntry implements kernel.Queue.
func (m *Mem) RemoveEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID) error {
	return m.onEntry(id, e, false, func(q *memQueue, i int) { q.drop(i) })
}

// MoveEntry implements kernel.Queue.
func (m *Mem) MoveEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID, place int) error {
	if place < 1 {
		return kernel.E("kerneltest.MoveEntry", kernel.Invalid, nil, "place %d does not exist", place)
	}
	return m.onEntry(id, e, false, func(q *memQueue, i int) {
		moved := q.entries[i]
		rest := slices.Delete(q.entries, i, i+1)
		q.entries = slices.Insert(rest, min(place-1, len(rest)), moved)
	})
}

// HoldEntry implements kernel.Queue.
func (m *Mem) HoldEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID, held bool) error {
	return m.onEntry(id, e, false, func(q *memQueue, i int) { q.entries[i].Held = held })
}

// TakeEntry implements kernel.Queue.
func (m *Mem) TakeEntry(ctx context.Context, id kernel.ConversationID) (kernel.QueueEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.conv("TakeEntry", id)
	if err != nil {
		return kernel.QueueEntry{}, err
	}
	q := &c.queue
	i := slices.IndexFunc(q.entries, func(e kernel.QueueEntry) bool { return e.Taken })
	if i < 0 && !q.state.Paused {
		i = slices.IndexFunc(q.entries, func(e kernel.QueueEntry) bool { return !e.Held })
	}
	if i < 0 {
		return kernel.QueueEntry{}, notFound("TakeEntry", "nothing is to be sent")
	}
	q.entries[i].Taken = true
	return q.entries[i], nil
}

// ReturnEntry implements kernel.Queue.
func (m *Mem) ReturnEntry(ctx context.Context, id kernel.ConversationID, e kernel.EntryID) error {
	return m.onEntry(id, e, true, func(q *memQueue, i int) { q.entries[i].Taken = false })
}

// EntryDelivered implements kernel.Queue.
func (m *Mem) EntryDelivered(ctx context.Context, id kernel.ConversationID, e kernel.EntryID) error {
	return m.onQueue(id, func(q *memQueue) {
		if i := q.find(e); i >= 0 {
			q.drop(i)
		}
	})
}

func (m *Mem) onQueue(id kernel.ConversationID, f func(*memQueue)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.conv("Queue", id)
	if err != nil {
		return err
	}
	f(&c.queue)
	return nil
}

// PauseQueue implements kernel.Queue.
func (m *Mem) PauseQueue(ctx context.Context, id kernel.ConversationID, reason, why string) error {
	return m.onQueue(id, func(q *memQueue) {
		if len(q.entries) > 0 && !q.state.Paused {
			q.state = kernel.QueueState{Paused: true, Reason: reason, Why: why}
		}
	})
}

// ResumeQueue implements kernel.Queue.
func (m *Mem) ResumeQueue(ctx context.Context, id kernel.ConversationID) error {
	return m.onQueue(id, func(q *memQueue) { q.state = kernel.QueueState{} })
}

// Queues implements kernel.Queue.
func (m *Mem) Queues(ctx context.Context) iter.Seq2[kernel.ConversationID, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []kernel.ConversationID
	for id, c := range m.convs {
		if len(c.queue.entries) > 0 {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return values(out)
}
