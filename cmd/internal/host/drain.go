package host

import (
	"context"
	"sync"

	"witan/kernel"
)

// drain sends waiting messages, each conversation on its own. It watches the
// runs of conversations whose queue has entries, so that a run which did not
// complete pauses the queue before anything else is sent. Only a long-lived host
// has one: another host may end at any time.
type drain struct {
	h    *Host
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	closed bool                               // guarded by mu
	work   map[kernel.ConversationID]*watched // guarded by mu; conversations being worked on
}

// watched is what is left to do in one conversation; drain.mu guards it.
type watched struct {
	runs  []kernel.RunID // whose end decides what comes next
	again bool           // something changed meanwhile
}

func newDrain(h *Host) *drain {
	d := &drain{h: h, work: map[kernel.ConversationID]*watched{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// close waits until nothing is on its way. What waits for a run stays queued.
func (d *drain) close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.wg.Wait()
}

// wake looks at a queue again once the given runs have ended.
func (d *drain) wake(id kernel.ConversationID, runs ...kernel.RunID) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	if w := d.work[id]; w != nil {
		w.runs, w.again = append(w.runs, runs...), true
		return
	}
	w := &watched{runs: runs}
	d.work[id] = w
	d.wg.Go(func() {
		for d.step(id, w) || d.more(id, w) {
		}
	})
}

// more reports whether there is something new to do; if not, w is given up.
func (d *drain) more(id kernel.ConversationID, w *watched) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.again && d.ctx.Err() == nil {
		w.again = false
		return true
	}
	delete(d.work, id)
	return false
}

// next takes a run that is to be waited for.
func (d *drain) next(w *watched) (run kernel.RunID, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(w.runs) == 0 {
		return "", false
	}
	run, w.runs = w.runs[0], w.runs[1:]
	return run, true
}

// step waits for one run, or else sends one entry; false when there is nothing
// to do for now.
func (d *drain) step(id kernel.ConversationID, w *watched) bool {
	ctx := context.WithoutCancel(d.ctx) // what has begun is brought to its end
	if d.ctx.Err() != nil {
		return false
	}
	run, waits := d.next(w)
	entries, st, err := d.h.queue().Entries(ctx, id)
	if err != nil {
		d.trouble(ctx, id, err)
		return false
	}
	switch {
	case len(entries) == 0:
		return waits
	case waits:
		return d.settle(id, run)
	case st.Paused:
		return false
	}
	e, err := d.h.queue().TakeEntry(ctx, id)
	if kernel.IsKind(err, kernel.NotFound) {
		return false // all are held
	}
	if err != nil {
		d.trouble(ctx, id, err)
		return false
	}
	if run, err = d.deliver(ctx, e); err != nil {
		d.trouble(ctx, id, err)
		return false
	}
	if run != "" {
		d.mu.Lock()
		w.runs = append(w.runs, run)
		d.mu.Unlock()
	}
	return true
}

// settle waits for a run and pauses the queue unless it completed.
func (d *drain) settle(id kernel.ConversationID, run kernel.RunID) bool {
	sum := kernel.RunSummary{Status: kernel.RunRunning}
	for sum.Status == kernel.RunRunning {
		_ = d.h.engine.Wait(d.ctx, run) // its error is in how the run ended
		if d.ctx.Err() != nil {
			return false // the next host finds the entries
		}
		var err error
		if sum, err = d.h.run(d.ctx, string(run)); err != nil {
			d.trouble(d.ctx, id, err)
			return false
		}
	}
	if reason := afterRun(sum.Status); reason != "" {
		if err := d.h.queue().PauseQueue(context.WithoutCancel(d.ctx), id, reason, string(run)+" ended "+string(sum.Status)); err != nil {
			d.trouble(d.ctx, id, err)
			return false
		}
	}
	return true
}

// trouble stops a queue whose next entry cannot be told or sent.
func (d *drain) trouble(ctx context.Context, id kernel.ConversationID, err error) {
	if d.ctx.Err() != nil {
		return // the next host finds the entries
	}
	d.h.opts.Log.Error("queue stopped", "conversation", id, "err", err)
	why := "an entry cannot be read"
	if !kernel.IsKind(err, kernel.Corrupt) {
		why = "the queue cannot be stored"
	}
	if err := d.h.queue().PauseQueue(ctx, id, reasonQueueBroken, why); err != nil {
		d.h.opts.Log.Error("queue not paused", "conversation", id, "err", err)
	}
}
