package session

import (
	"context"
	"encoding/json"
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

// attach makes one call. After the snapshot it asks for the lines of the runs that
// the snapshot has only summaries of: of the newest, and of those at work.
func (s *Session) attach(ctx context.Context, a *attachment) error {
	first := true
	return s.src.Attach(ctx, a.conv, func(raw json.RawMessage) error {
		if !s.post(line{raw, a}) {
			return s.ctx.Err()
		}
		if first {
			first = false
			s.details(ctx, raw)
			s.post(model.Looked{Conversation: a.conv, At: time.Now()})
			s.queue(ctx, a.conv)
		}
		return ctx.Err()
	})
}

// details reads the lines of runs. It is called before the next line of the
// attachment is taken, so that those come after what was read here.
func (s *Session) details(ctx context.Context, raw json.RawMessage) {
	var snap struct {
		Runs []model.Run `json:"runs"`
	}
	if json.Unmarshal(raw, &snap) != nil {
		return
	}
	for i := range snap.Runs {
		r := &snap.Runs[i]
		if !r.Active() && r.Status != "waiting" && i < len(snap.Runs)-1 {
			continue
		}
		d := model.Detail{Run: r.ID}
		err := s.src.Detail(ctx, r.ID, func(raw json.RawMessage) error {
			l, err := model.Parse(raw)
			if err == nil {
				d.Lines = append(d.Lines, l)
			}
			return ctx.Err()
		})
		if err == nil {
			s.post(d)
		}
	}
}

func (s *Session) queue(ctx context.Context, conv string) {
	entries, err := s.src.Queue(ctx, conv)
	if err == nil {
		s.post(model.Queue{Conversation: conv, Entries: entries})
	}
}
