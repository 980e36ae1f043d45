package host

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"witan/bus"
	"witan/kernel"
	"witan/kernel/engine"
)

type snapshotRow struct {
	Type     string              `json:"type"`
	Epoch    string              `json:"epoch"`
	Revision uint64              `json:"revision"`
	Conv     kernel.Conversation `json:"conversation"`
	Messages []messageRow        `json:"messages"`
	Runs     []kernel.RunSummary `json:"runs"`
}

// attachment is one view of a conversation: subscribe, buffer, snapshot, drain.
type attachment struct {
	h    *Host
	emit Emit
	conv kernel.ConversationID
	mu   sync.Mutex // one line at a time
	rev  uint64     // guarded by mu
}

// opAttach shows a conversation and then everything that happens in it, until
// the caller goes away. Signals that come before the snapshot are kept.
func opAttach(ctx context.Context, h *Host, a ConversationArgs, emit Emit) error {
	c, err := h.conversation(ctx, a.Conversation)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	changed := make(chan kernel.RunID, 256)
	stop, err := h.view.Subscribe(engine.TopicView, func(_ context.Context, s kernel.Signal) {
		run := s.Run
		if s.Topic == bus.TopicOverflow {
			run = "" // some were dropped, nobody knows of which runs
		}
		select {
		case changed <- run:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	defer cancel(nil) // before stop: the handler may wait
	v := &attachment{h: h, emit: emit, conv: c.ID}
	heads, err := v.snapshot(ctx, c)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	watching := map[kernel.RunID]bool{}
	var done sync.Mutex
	follow := func(run kernel.RunID) {
		done.Lock()
		defer done.Unlock()
		if watching[run] || !v.mine(ctx, run) || heads[run] > 0 && !h.engine.Active(run) {
			return
		}
		watching[run] = true
		from := heads[run] + 1
		wg.Go(func() {
			if err := h.engine.Watch(ctx, run, from, v.line); err != nil {
				cancel(err)
			}
			head, _ := h.store.Ledger.Head(ctx, run)
			done.Lock()
			delete(watching, run)
			heads[run] = head.Seq
			done.Unlock()
		})
	}
	for run := range heads {
		follow(run)
	}
	for {
		select {
		case run := <-changed:
			if run != "" {
				follow(run)
				continue
			}
			if err := v.catchUp(ctx, follow); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// catchUp looks at all runs of the conversation after signals were dropped, and
// says so: every run is followed by its records, so none of those is missed.
func (v *attachment) catchUp(ctx context.Context, follow func(kernel.RunID)) error {
	var runs []kernel.RunID
	for s, err := range v.h.store.Ledger.Summaries(ctx) {
		if err != nil {
			return err
		}
		if s.Conversation == v.conv {
			runs = append(runs, s.Run)
		}
	}
	for _, r := range runs {
		follow(r)
	}
	return v.line(json.RawMessage(`{"type":"notice","code":"view_overflow","text":"signals were dropped; the runs were looked at again"}`))
}

func (v *attachment) mine(ctx context.Context, run kernel.RunID) bool {
	s, err := v.h.store.Ledger.Summary(ctx, run)
	return err == nil && s.Conversation == v.conv
}

// snapshot gives the state and returns up to which record of each run it goes.
func (v *attachment) snapshot(ctx context.Context, c kernel.Conversation) (map[kernel.RunID]uint64, error) {
	row := snapshotRow{Type: "snapshot", Epoch: v.h.instance, Revision: 1, Conv: c, Messages: []messageRow{}, Runs: []kernel.RunSummary{}}
	heads := map[kernel.RunID]uint64{}
	for s, err := range v.h.store.Ledger.Summaries(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Conversation != c.ID {
			continue
		}
		head, err := v.h.store.Ledger.Head(ctx, s.Run)
		if err != nil {
			return nil, err
		}
		heads[s.Run] = head.Seq
		row.Runs = append(row.Runs, v.h.honest(s))
	}
	for m, err := range v.h.store.Conversations.Messages(ctx, c.ID, 0) {
		if err != nil {
			return nil, err
		}
		r, err := v.h.messageRow(ctx, m)
		if err != nil {
			return nil, err
		}
		row.Messages = append(row.Messages, r)
	}
	v.rev = 1
	return heads, give(v.emit, row)
}

// line gives a run's line with epoch and revision; revisions have no holes.
func (v *attachment) line(l json.RawMessage) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rev++
	b := append([]byte{}, l[:len(l)-1]...)
	b = kernel.AppendString(append(b, `,"epoch":`...), v.h.instance)
	b = strconv.AppendUint(append(b, `,"revision":`...), v.rev, 10)
	return v.emit(append(b, '}'))
}
