// Package session keeps a window's state in step with a host: it attaches to the
// conversation that is shown, attaches again after a gap or when the host was
// away, reads the lists, and carries out what a person asks for.
//
// One goroutine makes the states, each from the one before; others only wait for
// the source and post what came. A burst of lines becomes one new state, and a
// state that is equal to the one before is not told of. Closing a session ends all
// its calls and never a run. A crash leaves nothing behind: nothing is stored here.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"witan/kernel"
	"witan/ui/model"
)

// Times of a session.
const (
	burst      = 40 * time.Millisecond // between two states while lines come
	listEvery  = 5 * time.Second
	backoff    = 250 * time.Millisecond
	maxBackoff = 5 * time.Second
	packLimit  = 256 << 10
	mailbox    = 1024
)

// Note is what a session tells the window besides its state.
type Note struct {
	Pack, Text string // a pack that was asked for
	Opened     string // a conversation that an action made
	Error      string // an action failed
}

// Session is the link between one window and one source.
type Session struct {
	src     model.Source
	changed func()
	state   atomic.Pointer[model.State]

	ctx  context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup
	mail chan any // model.Event, line, or Note

	mu      sync.Mutex
	notes   []Note
	detach  context.CancelFunc // of the conversation that is attached
	refresh chan struct{}
}

// line is a line of an attachment; gen tells it from those of an older one.
type line struct {
	raw json.RawMessage
	gen *attachment
}

// New starts a session. changed is called, from another goroutine, after the state
// changed or a note came; it must return at once.
func New(src model.Source, home string, changed func()) *Session {
	ctx, end := context.WithCancel(context.Background())
	s := &Session{src: src, changed: changed, ctx: ctx, end: end, mail: make(chan any, mailbox), refresh: make(chan struct{}, 1)}
	s.state.Store(&model.State{Home: home})
	s.wg.Go(s.reduce)
	s.wg.Go(s.lists)
	return s
}

// State is the newest state.
func (s *Session) State() *model.State { return s.state.Load() }

// Notes takes what was told since the last call.
func (s *Session) Notes() []Note {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.notes
	s.notes = nil
	return n
}

// Close ends everything and waits for it.
func (s *Session) Close() {
	s.end()
	s.wg.Wait()
}

// post hands something to the goroutine that makes states.
func (s *Session) post(v any) bool {
	select {
	case s.mail <- v:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// reduce makes the states.
func (s *Session) reduce() {
	for {
		select {
		case v := <-s.mail:
			s.drain(v)
		case <-s.ctx.Done():
			return
		}
		select {
		case <-time.After(burst):
		case <-s.ctx.Done():
			return
		}
	}
}

// drain applies everything that waits and publishes the result once.
func (s *Session) drain(v any) {
	st := s.state.Load()
	next, told := st, false
	for n := 0; ; n++ {
		switch v := v.(type) {
		case model.Event:
			next = next.With(v)
		case line:
			next = s.line(next, v)
		case Note:
			s.mu.Lock()
			s.notes = append(s.notes, v)
			s.mu.Unlock()
			told = true
		}
		if n >= 4*mailbox {
			break
		}
		select {
		case v = <-s.mail:
			continue
		default:
		}
		break
	}
	if next != st {
		s.state.Store(next)
	}
	if next != st || told {
		s.changed()
	}
}

// line applies a line of the attachment that is current.
func (s *Session) line(st *model.State, l line) *model.State {
	if l.gen.ctx.Err() != nil {
		return st
	}
	next, fit, err := st.Raw(l.raw)
	if err != nil || fit == model.Gap {
		l.gen.again() // what is missing comes with a new snapshot
		return st
	}
	return next
}

// Refresh reads the lists now.
func (s *Session) Refresh() {
	select {
	case s.refresh <- struct{}{}:
	default:
	}
}

// lists reads the lists now and then. Lists that are as before change nothing.
func (s *Session) lists() {
	var last model.Lists
	for {
		l, err := s.src.Lists(s.ctx)
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			s.trouble(err)
		default:
			s.trouble(nil)
			if !reflect.DeepEqual(l, last) {
				last = l
				s.post(l)
			}
		}
		select {
		case <-s.refresh:
		case <-time.After(listEvery):
		case <-s.ctx.Done():
			return
		}
	}
}

// trouble tells that the host cannot be reached, or that it can again.
func (s *Session) trouble(err error) {
	word := ""
	if err != nil {
		word = sentence(err)
	}
	if s.state.Load().Trouble != word {
		s.post(model.Trouble(word))
	}
}

// sentence is an error for a person.
func sentence(err error) string {
	var e *kernel.Error
	if errors.As(err, &e) {
		return strings.TrimSpace(e.Error())
	}
	return err.Error()
}

// Fetch reads a pack; its text comes as a note.
func (s *Session) Fetch(hash string) {
	s.wg.Go(func() {
		b, err := s.src.Pack(s.ctx, hash, packLimit)
		if err != nil {
			s.post(Note{Pack: hash, Text: sentence(err)})
			return
		}
		s.post(Note{Pack: hash, Text: string(b)})
	})
}

// Do carries out an action.
func (s *Session) Do(a model.Action) {
	s.wg.Go(func() {
		done, err := s.src.Do(s.ctx, a)
		if s.ctx.Err() != nil {
			return
		}
		if err != nil {
			s.post(Note{Error: sentence(err)})
			return
		}
		if sub, ok := a.(model.Submit); ok {
			if sub.Conversation == "" && done.Conversation != "" {
				s.post(Note{Opened: done.Conversation})
			} else if done.Run != "" {
				s.post(model.Said{Run: done.Run, Text: sub.Text})
			}
		}
		s.Refresh()
	})
}
