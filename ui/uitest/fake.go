package uitest

import (
	"context"
	"encoding/json"
	"sync"

	"witan/ui/model"
)

// Fake is a source that gives the samples and remembers what it was asked for.
// Lines may be sent to who is attached.
type Fake struct {
	mu       sync.Mutex
	asked    []model.Action
	views    map[chan json.RawMessage]string
	attached int
	Fail     func(op string) error // an error for the operation, if any
	Results  model.Done
}

// NewFake returns the sample host.
func NewFake() *Fake { return &Fake{views: map[chan json.RawMessage]string{}} }

func (f *Fake) fail(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Fail == nil {
		return nil
	}
	return f.Fail(op)
}

// SetFail changes what fails.
func (f *Fake) SetFail(fail func(op string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Fail = fail
}

// Asked are the actions so far.
func (f *Fake) Asked() []model.Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]model.Action(nil), f.asked...)
}

// Attached counts the attachments so far.
func (f *Fake) Attached() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attached
}

// Send gives a line to all who look at a conversation.
func (f *Fake) Send(conv string, raw string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch, c := range f.views {
		if c == conv {
			ch <- json.RawMessage(raw)
		}
	}
}

// Lists gives the sample lists.
func (f *Fake) Lists(context.Context) (model.Lists, error) {
	if err := f.fail("lists"); err != nil {
		return model.Lists{}, err
	}
	return Lists(), nil
}

// Attach gives the lines of a sample conversation, then those that are sent.
func (f *Fake) Attach(ctx context.Context, conv string, emit func(json.RawMessage) error) error {
	if err := f.fail("attach"); err != nil {
		return err
	}
	ch := make(chan json.RawMessage, 64)
	f.mu.Lock()
	f.views[ch] = conv
	f.attached++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.views, ch)
		f.mu.Unlock()
	}()
	for _, l := range Threads()[conv] {
		if err := emit(l); err != nil {
			return err
		}
	}
	for {
		select {
		case l := <-ch:
			if err := emit(l); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Detail gives the lines of a sample run.
func (f *Fake) Detail(_ context.Context, run string, emit func(json.RawMessage) error) error {
	for _, s := range []*Script{council(), gated(), article(), ended()} {
		if s.Run != run {
			continue
		}
		for _, l := range s.Lines {
			if err := emit(l); err != nil {
				return err
			}
		}
	}
	return f.fail("detail")
}

// Queue is empty.
func (f *Fake) Queue(context.Context, string) ([]model.Entry, error) { return nil, f.fail("queue") }

// Pack gives a sample pack.
func (f *Fake) Pack(_ context.Context, hash string, limit int) ([]byte, error) {
	if err := f.fail("pack"); err != nil {
		return nil, err
	}
	b := []byte(Packs()[hash])
	return b[:min(len(b), limit)], nil
}

// Do remembers an action.
func (f *Fake) Do(_ context.Context, a model.Action) (model.Done, error) {
	f.mu.Lock()
	f.asked = append(f.asked, a)
	f.mu.Unlock()
	return f.Results, f.fail("do")
}
