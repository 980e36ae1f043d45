package engine

import (
	"context"
	"strings"
	"sync"
	"time"

	"witan/kernel"
	"witan/kernel/marker"
)

// Live is what views of an active run read: its records and what its agents
// are saying right now. Writers never wait for readers.
type Live struct {
	mu    sync.Mutex
	items []Item // guarded by mu
	over  bool   // guarded by mu; the run ended
	drops int    // guarded by mu; events left out at the bound
}

// Item is one thing to show, in order. Exactly one of Record, Event and Text is
// set; the last Text item of an attempt may still grow.
type Item struct {
	Record  *kernel.Record
	Event   *kernel.Event
	Text    string
	Attempt kernel.AttemptID
}

// maxItems bounds what one active run keeps in memory for its views; beyond it
// tool events are left out and counted. Text is bounded by the adapters.
const maxItems = 50_000

func newLive(recs []kernel.Record) *Live {
	l := &Live{}
	l.records(recs)
	return l
}

func (l *Live) records(recs []kernel.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range recs {
		l.items = append(l.items, Item{Record: &recs[i], Attempt: recs[i].Attempt})
	}
}

func (l *Live) text(at kernel.AttemptID, s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.items); n > 0 && l.items[n-1].Text != "" && l.items[n-1].Attempt == at && len(l.items[n-1].Text) < 8<<10 {
		l.items[n-1].Text += s
		return
	}
	l.items = append(l.items, Item{Text: s, Attempt: at})
}

func (l *Live) event(at kernel.AttemptID, ev kernel.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) >= maxItems {
		l.drops++
		return
	}
	l.items = append(l.items, Item{Event: &ev, Attempt: at})
}

// drop frees the text of an attempt whose reply is stored; a view that is
// behind reads it from there.
func (l *Live) drop(at kernel.AttemptID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.items {
		if l.items[i].Attempt == at {
			l.items[i].Text = ""
		}
	}
}

func (l *Live) close() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
}

// Cursor is a view's place in a Live.
type Cursor struct{ item, off int }

// Next returns what is new since c, at most limit items, the cursor behind it,
// and whether the run is over and everything was returned.
func (l *Live) Next(c Cursor, limit int) ([]Item, Cursor, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Item
	for c.item < len(l.items) && len(out) < limit {
		it := l.items[c.item]
		last := c.item == len(l.items)-1
		if it.Record == nil && it.Event == nil {
			if c.off < len(it.Text) {
				part := it
				part.Text = it.Text[c.off:]
				out = append(out, part)
			}
			if last && !l.over { // may still grow
				c.off = max(c.off, len(it.Text))
				return out, c, false
			}
		} else {
			out = append(out, it)
		}
		c.item, c.off = c.item+1, 0
	}
	return out, c, l.over && c.item >= len(l.items)
}

// Drops is the number of events left out at the bound.
func (l *Live) Drops() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drops
}

// stream carries the events of one running attempt: to views at once, to the
// disk at most flushEvery later.
type stream struct {
	e     *Engine
	d     *driver
	at    kernel.AttemptID
	mu    sync.Mutex
	hider marker.Hider    // guarded by mu
	buf   strings.Builder // guarded by mu; visible text not yet durable
	stop  func()          // guarded by mu; of the armed flush
	over  bool            // guarded by mu
	muted bool            // guarded by mu; what follows is a receipt alone
	noted int             // guarded by mu; notices made durable
	calls map[string]bool // guarded by mu; tool calls by their ids
	wg    sync.WaitGroup
	fmu   sync.Mutex // one flush at a time, so that chunks keep their order
}

// flushEvery keeps the promise "durable within 250 ms" with room for the disk.
const flushEvery = 150 * time.Millisecond

func newStream(e *Engine, d *driver, at kernel.AttemptID) *stream {
	return &stream{e: e, d: d, at: at}
}

func (s *stream) emit(ev kernel.Event) {
	switch ev.Type {
	case "text":
		s.mu.Lock()
		if !s.muted {
			s.keep(s.hider.Write(ev.Text))
		}
		s.mu.Unlock()
	case "receipt-only":
		s.mu.Lock()
		s.keep(s.hider.Close())
		s.muted = true
		s.mu.Unlock()
	case "notice":
		if ev.Code != "silent" && s.notices() {
			err := s.e.note(s.e.ctx, kernel.Record{Run: s.d.s.Run, Attempt: s.at}, kernel.NoticeRec, kernel.NoticeBody{Code: ev.Code, Text: clip(ev.Text, 1000)})
			if err == nil {
				return
			}
		}
		s.d.live.event(s.at, ev)
		s.show()
	case "usage":
		if ev.Usage != nil && len(s.d.s.Created.Budget) > 0 {
			s.d.send(s.e.ctx, usageMsg{s.at, *ev.Usage})
		}
	case "tool", "plan":
		s.d.live.event(s.at, ev)
		s.show()
		if n := s.called(ev); n > 0 {
			s.d.send(s.e.ctx, toolsMsg{s.at, n})
		}
	}
}

// called counts the tool calls of the attempt where a budget wants to know: 0
// when the event is no new one. Calls that are not shown are counted at the end.
func (s *stream) called(ev kernel.Event) int {
	if _, is := s.d.s.Created.Budget["tool_calls"]; !is || ev.Type != "tool" {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[ev.Tool.ID] || len(s.calls) >= kernel.MaxReplyTools {
		return 0
	}
	if s.calls == nil {
		s.calls = map[string]bool{}
	}
	s.calls[ev.Tool.ID] = true
	return len(s.calls)
}

// maxNotices bounds the notices of one attempt that become records.
const maxNotices = 100

func (s *stream) notices() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted++
	return s.noted <= maxNotices
}

// keep shows vis and arms a flush; mu is held.
func (s *stream) keep(vis string) {
	if vis == "" {
		return
	}
	s.d.live.text(s.at, vis)
	s.show()
	s.buf.WriteString(vis)
	if s.stop != nil || s.over {
		return
	}
	c, stop := s.e.Clock.After(flushEvery)
	quit := make(chan struct{})
	s.stop = func() { stop(); close(quit) }
	s.wg.Go(func() {
		select {
		case <-c:
			s.flush()
		case <-quit:
		}
	})
}

func (s *stream) flush() {
	s.fmu.Lock()
	defer s.fmu.Unlock()
	s.mu.Lock()
	chunk := s.buf.String()
	s.buf.Reset()
	s.stop = nil
	s.mu.Unlock()
	if err := s.e.Streams.AppendStream(context.WithoutCancel(s.e.ctx), s.at, []byte(chunk)); err != nil {
		s.e.Log.Error("streamed text not kept", "run", s.d.s.Run, "attempt", s.at, "err", err)
	}
}

// close shows what the hider still held and waits for flushes. What was not
// flushed is in the stage's output, which is stored next.
func (s *stream) close() {
	s.mu.Lock()
	s.over = true
	if !s.muted {
		if vis := s.hider.Close(); vis != "" {
			s.d.live.text(s.at, vis)
		}
	}
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	s.mu.Unlock()
	s.wg.Wait()
	s.show()
}

// show hints to views; it must not touch the driver's state.
func (s *stream) show() {
	_ = s.e.View.Publish(s.e.ctx, kernel.Signal{Topic: TopicView, Run: s.d.s.Run, Key: string(s.d.s.Run)})
}
