package kerneltest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"witan/kernel"
)

// QueueStore is what a queue needs: conversations are made through the other port.
type QueueStore struct {
	kernel.Queue
	kernel.Conversations
}

// Entry gives the nth entry of a suite in a conversation.
func Entry(conv, n int) kernel.QueueEntry {
	return kernel.QueueEntry{ID: kernel.EntryID(fmt.Sprintf("%s%d%019d", kernel.EntryPrefix, conv, n)), Conversation: Conv(conv).ID,
		Text: fmt.Sprint("text ", n), Options: []byte(`{"plan":"batch"}`), At: epoch}
}

// TestQueue is the conformance suite of kernel.Queue; open gives an empty one.
func TestQueue(t *testing.T, open func(t *testing.T) QueueStore) {
	ctx := context.Background()
	for name, test := range map[string]func(*testing.T, context.Context, QueueStore){
		"order": queueOrder, "changes": queueChanges, "keys": queueKeys, "take": queueTake, "pause": queuePause,
		"bounds": queueBounds, "unknown": queueUnknown, "queues": queueQueues, "concurrent": queueConcurrent,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			ok(t, s.PutConversation(ctx, Conv(1)))
			ok(t, s.PutConversation(ctx, Conv(2)))
			test(t, ctx, s)
		})
	}
}

func addEntries(t *testing.T, ctx context.Context, s QueueStore, conv int, ns ...int) {
	t.Helper()
	for _, n := range ns {
		got, again, err := s.AddEntry(ctx, Entry(conv, n))
		ok(t, err)
		if again || !reflect.DeepEqual(got, Entry(conv, n)) {
			t.Fatalf("got %+v, again %v", got, again)
		}
	}
}

func wantQueue(t *testing.T, ctx context.Context, s QueueStore, conv int, texts ...string) {
	t.Helper()
	es, _, err := s.Entries(ctx, Conv(conv).ID)
	ok(t, err)
	got := []string{}
	for _, e := range es {
		got = append(got, e.Text)
	}
	if !slices.Equal(got, texts) {
		t.Fatalf("the queue is %q, want %q", got, texts)
	}
}

func queueOrder(t *testing.T, ctx context.Context, s QueueStore) {
	wantQueue(t, ctx, s, 1)
	addEntries(t, ctx, s, 1, 5, 1, 3)
	addEntries(t, ctx, s, 2, 9)
	wantQueue(t, ctx, s, 1, "text 5", "text 1", "text 3")
	wantQueue(t, ctx, s, 2, "text 9")
	if got := must[kernel.QueueEntry](t)(s.Entry(ctx, Entry(1, 3).ID)); !reflect.DeepEqual(got, Entry(1, 3)) {
		t.Fatalf("got %+v", got)
	}
	_, _, err := s.AddEntry(ctx, Entry(1, 3))
	wantKind(t, err, kernel.Exists)
}

func queueChanges(t *testing.T, ctx context.Context, s QueueStore) {
	addEntries(t, ctx, s, 1, 1, 2, 3)
	id := Conv(1).ID
	for _, m := range []struct {
		n, place int
		want     string
	}{{3, 1, "312"}, {3, 2, "132"}, {1, 3, "321"}, {3, 99, "213"}, {1, 2, "213"}} {
		ok(t, s.MoveEntry(ctx, id, Entry(1, m.n).ID, m.place))
		var want []string
		for _, c := range m.want {
			want = append(want, "text "+string(c))
		}
		wantQueue(t, ctx, s, 1, want...)
	}
	wantKind(t, s.MoveEntry(ctx, id, Entry(1, 1).ID, 0), kernel.Invalid)
	ok(t, s.EditEntry(ctx, id, Entry(1, 1).ID, "changed"))
	ok(t, s.RemoveEntry(ctx, id, Entry(1, 2).ID))
	wantKind(t, s.RemoveEntry(ctx, id, Entry(1, 2).ID), kernel.NotFound)
	wantQueue(t, ctx, s, 1, "changed", "text 3")
	for _, held := range []bool{true, true, false} {
		ok(t, s.HoldEntry(ctx, id, Entry(1, 1).ID, held))
		if got := must[kernel.QueueEntry](t)(s.Entry(ctx, Entry(1, 1).ID)); got.Held != held || string(got.Options) != `{"plan":"batch"}` {
			t.Fatalf("got %+v", got)
		}
	}
}

// queueKeys: a key adds once, even when its entry was edited or has left.
func queueKeys(t *testing.T, ctx context.Context, s QueueStore) {
	e := Entry(1, 1)
	e.Key = "k"
	repeat := Entry(1, 2)
	repeat.Key, repeat.Text = e.Key, e.Text
	again := func(text string) {
		t.Helper()
		got, again, err := s.AddEntry(ctx, repeat)
		ok(t, err)
		if !again || got.ID != e.ID || got.Text != text {
			t.Fatalf("got %+v, again %v", got, again)
		}
	}
	_, seen, err := s.AddEntry(ctx, e)
	ok(t, err)
	if seen {
		t.Fatal("a new key is taken for an old one")
	}
	again(e.Text)
	ok(t, s.EditEntry(ctx, e.Conversation, e.ID, "edited"))
	again("edited")
	other := repeat
	other.Text = "other"
	_, _, err = s.AddEntry(ctx, other)
	wantKind(t, err, kernel.Invalid)
	ok(t, s.RemoveEntry(ctx, e.Conversation, e.ID))
	again(e.Text)
	wantQueue(t, ctx, s, 1)
	elsewhere := Entry(2, 1)
	elsewhere.Key = e.Key
	_, seen, err = s.AddEntry(ctx, elsewhere)
	if ok(t, err); seen {
		t.Fatal("a key of one conversation counts in another")
	}
}

func queueTake(t *testing.T, ctx context.Context, s QueueStore) {
	id := Conv(1).ID
	_, err := s.TakeEntry(ctx, id)
	wantKind(t, err, kernel.NotFound)
	addEntries(t, ctx, s, 1, 1, 2, 3)
	ok(t, s.HoldEntry(ctx, id, Entry(1, 1).ID, true))
	second := Entry(1, 2)
	second.Taken = true
	for range 2 { // the same again until it is delivered
		if got := must[kernel.QueueEntry](t)(s.TakeEntry(ctx, id)); !reflect.DeepEqual(got, second) {
			t.Fatalf("got %+v", got)
		}
	}
	wantKind(t, s.EditEntry(ctx, id, second.ID, "x"), kernel.Conflict)
	wantKind(t, s.MoveEntry(ctx, id, second.ID, 1), kernel.Conflict)
	wantKind(t, s.HoldEntry(ctx, id, second.ID, true), kernel.Conflict)
	wantKind(t, s.RemoveEntry(ctx, id, second.ID), kernel.Conflict)
	ok(t, s.ReturnEntry(ctx, id, second.ID))
	ok(t, s.EditEntry(ctx, id, second.ID, "x"))
	if got := must[kernel.QueueEntry](t)(s.TakeEntry(ctx, id)); got.Text != "x" {
		t.Fatalf("got %+v", got)
	}
	for range 2 {
		ok(t, s.EntryDelivered(ctx, id, second.ID))
	}
	wantQueue(t, ctx, s, 1, "text 1", "text 3")
	ok(t, s.EntryDelivered(ctx, id, Entry(1, 3).ID))
	_, err = s.TakeEntry(ctx, id) // only a held one is left
	wantKind(t, err, kernel.NotFound)
}

func queuePause(t *testing.T, ctx context.Context, s QueueStore) {
	id := Conv(1).ID
	state := func(want kernel.QueueState) {
		t.Helper()
		_, got, err := s.Entries(ctx, id)
		if ok(t, err); got != want {
			t.Fatalf("state %+v, want %+v", got, want)
		}
	}
	first := kernel.QueueState{Paused: true, Reason: "r", Why: "w"}
	ok(t, s.PauseQueue(ctx, id, "r", "w"))
	state(kernel.QueueState{}) // there is nothing to pause
	addEntries(t, ctx, s, 1, 1, 2)
	ok(t, s.PauseQueue(ctx, id, "r", "w"))
	ok(t, s.PauseQueue(ctx, id, "r2", "w2"))
	state(first)
	_, err := s.TakeEntry(ctx, id)
	wantKind(t, err, kernel.NotFound)
	addEntries(t, ctx, s, 1, 3)
	state(first)
	ok(t, s.ResumeQueue(ctx, id))
	state(kernel.QueueState{})
	must[kernel.QueueEntry](t)(s.TakeEntry(ctx, id))
	ok(t, s.PauseQueue(ctx, id, "r", "w"))
	must[kernel.QueueEntry](t)(s.TakeEntry(ctx, id)) // what is on its way stays so
	ok(t, s.EntryDelivered(ctx, id, Entry(1, 1).ID))
	state(first)
	for _, n := range []int{2, 3} {
		ok(t, s.RemoveEntry(ctx, id, Entry(1, n).ID))
	}
	state(kernel.QueueState{})
	addEntries(t, ctx, s, 1, 4)
	state(kernel.QueueState{})
}

func queueBounds(t *testing.T, ctx context.Context, s QueueStore) {
	id := Conv(1).ID
	addEntries(t, ctx, s, 1, 1)
	for name, text := range map[string]string{"empty": "", "blank": " \n\t", "long": strings.Repeat("ä", kernel.MaxTask+1), "not text": "a\xff"} {
		e := Entry(1, 2)
		e.Text = text
		if _, _, err := s.AddEntry(ctx, e); !kernel.IsKind(err, kernel.Invalid) {
			t.Fatalf("add %s: %v", name, err)
		}
		if err := s.EditEntry(ctx, id, Entry(1, 1).ID, text); !kernel.IsKind(err, kernel.Invalid) {
			t.Fatalf("edit %s: %v", name, err)
		}
	}
	longest := strings.Repeat("ä", kernel.MaxTask)
	ok(t, s.EditEntry(ctx, id, Entry(1, 1).ID, longest))
	for n := 2; n <= kernel.MaxQueue; n++ {
		addEntries(t, ctx, s, 1, n)
	}
	_, _, err := s.AddEntry(ctx, Entry(1, kernel.MaxQueue+1))
	wantKind(t, err, kernel.Invalid)
	addEntries(t, ctx, s, 2, 1) // the bound is of one conversation
	if got := must[kernel.QueueEntry](t)(s.Entry(ctx, Entry(1, 1).ID)); got.Text != longest {
		t.Fatalf("%d bytes came back", len(got.Text))
	}
}

func queueUnknown(t *testing.T, ctx context.Context, s QueueStore) {
	e := Entry(9, 1)
	addEntries(t, ctx, s, 2, 1)
	_, _, err := s.AddEntry(ctx, e)
	wantKind(t, err, kernel.NotFound)
	_, _, err = s.Entries(ctx, e.Conversation)
	wantKind(t, err, kernel.NotFound)
	_, err = s.Entry(ctx, e.ID)
	wantKind(t, err, kernel.NotFound)
	_, err = s.TakeEntry(ctx, e.Conversation)
	wantKind(t, err, kernel.NotFound)
	for _, at := range []kernel.ConversationID{e.Conversation, Conv(1).ID} { // entry 1 of 2 waits elsewhere
		id := Entry(2, 1).ID
		wantKind(t, s.EditEntry(ctx, at, id, "x"), kernel.NotFound)
		wantKind(t, s.RemoveEntry(ctx, at, id), kernel.NotFound)
		wantKind(t, s.MoveEntry(ctx, at, id, 1), kernel.NotFound)
		wantKind(t, s.HoldEntry(ctx, at, id, true), kernel.NotFound)
		wantKind(t, s.ReturnEntry(ctx, at, id), kernel.NotFound)
	}
	wantKind(t, s.EntryDelivered(ctx, e.Conversation, e.ID), kernel.NotFound)
	wantKind(t, s.PauseQueue(ctx, e.Conversation, "r", "w"), kernel.NotFound)
	wantKind(t, s.ResumeQueue(ctx, e.Conversation), kernel.NotFound)
	wantQueue(t, ctx, s, 2, "text 1")
}

func queueQueues(t *testing.T, ctx context.Context, s QueueStore) {
	want := func(ids ...kernel.ConversationID) {
		t.Helper()
		if got := must[[]kernel.ConversationID](t)(collect(s.Queues(ctx))); !slices.Equal(got, ids) {
			t.Fatalf("got %v, want %v", got, ids)
		}
	}
	want()
	addEntries(t, ctx, s, 2, 1)
	addEntries(t, ctx, s, 1, 1, 2)
	want(Conv(1).ID, Conv(2).ID)
	for range s.Queues(ctx) {
		break
	}
	ok(t, s.EntryDelivered(ctx, Conv(2).ID, Entry(2, 1).ID))
	want(Conv(1).ID)
}

// queueConcurrent: nothing is lost, doubled or refused when several windows add
// while the host takes.
func queueConcurrent(t *testing.T, ctx context.Context, s QueueStore) {
	const writers, each = 4, 10
	id := Conv(1).ID
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, _, err := s.AddEntry(ctx, Entry(1, w*each+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := map[kernel.EntryID]int{}
	wg.Go(func() {
		for range 3 * each {
			e, err := s.TakeEntry(ctx, id)
			if kernel.IsKind(err, kernel.NotFound) {
				continue
			}
			if err == nil {
				seen[e.ID]++
				err = s.EntryDelivered(ctx, id, e.ID)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	left, _, err := s.Entries(ctx, id)
	ok(t, err)
	for _, e := range left {
		seen[e.ID]++
	}
	for e, n := range seen {
		if n != 1 {
			t.Errorf("%s was there %d times", e, n)
		}
	}
	if len(seen) != writers*each {
		t.Errorf("%d entries, want %d", len(seen), writers*each)
	}
}
