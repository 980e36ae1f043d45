package session

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"witan/ui/model"
)

// attachment follows one conversation until another is opened.
type attachment struct {
	ctx    context.Context
	conv   string
	cancel context.CancelFunc // of the call that runs now
}

// again ends the call that runs; the next begins with a snapshot.
func (a *attachment) again() { a.cancel() }

// Open shows a conversation; "" shows none.
func (s *Session) Open(conv string) {
	s.mu.Lock()
	if s.detach != nil {
		s.detach()
		s.detach = nil
	}
	if conv == "" {
		s.mu.Unlock()
		s.post(model.Close{})
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.detach = cancel
	s.mu.Unlock()
	s.wg.Go(func() {
		defer cancel()
		s.follow(ctx, conv)
	})
}

// follow attaches again and again, with a pause that grows while it fails.
func (s *Session) follow(ctx context.Context, conv string) {
	pause := backoff
	for ctx.Err() == nil {
		began := time.Now()
		call, cancel := context.WithCancel(ctx)
		a := &attachment{ctx: call, conv: conv, cancel: cancel}
		err := s.attach(call, a)
		gap := call.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil && !gap {
			s.trouble(err)
		}
		if time.Since(began) > maxBackoff {
			pause = backoff
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, maxBackoff)
	}
}

// attach makes one call. After the snapshot, which has only summaries of runs, and
// before the next line it reads what has to be known of them.
func (s *Session) attach(ctx context.Context, a *attachment) error {
	first := true
	return s.src.Attach(ctx, a.conv, func(raw json.RawMessage) error {
		if !s.post(line{raw, a}) {
			return s.ctx.Err()
		}
		if first {
			first = false
			for d, err := range details(ctx, s.src, raw) {
				if err == nil {
					s.post(d)
				}
			}
			s.post(model.Looked{Conversation: a.conv, At: time.Now()})
			s.queue(ctx, a.conv)
		}
		return ctx.Err()
	})
}

// details gives the lines of the runs of a snapshot that have to be known: of the
// newest, and of those at work.
func details(ctx context.Context, src model.Source, snapshot json.RawMessage) iter.Seq2[model.Detail, error] {
	return func(yield func(model.Detail, error) bool) {
		var snap struct {
			Runs []model.Run `json:"runs"`
		}
		if err := json.Unmarshal(snapshot, &snap); err != nil {
			yield(model.Detail{}, err)
			return
		}
		newest := 0
		for i, r := range snap.Runs {
			if r.Created.After(snap.Runs[newest].Created) {
				newest = i
			}
		}
		for i := range snap.Runs {
			r := &snap.Runs[i]
			if i != newest && !r.Active() && r.Status != "waiting" {
				continue
			}
			d := model.Detail{Run: r.ID}
			err := src.Detail(ctx, r.ID, func(raw json.RawMessage) error {
				if l, err := model.Parse(raw); err == nil {
					d.Lines = append(d.Lines, l)
				}
				return ctx.Err()
			})
			if !yield(d, err) {
				return
			}
		}
	}
}

func (s *Session) queue(ctx context.Context, conv string) {
	entries, err := s.src.Queue(ctx, conv)
	if err == nil {
		s.post(model.Queue{Conversation: conv, Entries: entries})
	}
}
