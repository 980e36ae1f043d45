package kerneltest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"witan/kernel"
)

// Conv gives the nth conversation of a suite; ids sort by n.
func Conv(n int) kernel.Conversation {
	return kernel.Conversation{ID: kernel.ConversationID(fmt.Sprintf("%s%020d", kernel.ConversationPrefix, n)), Title: fmt.Sprint("title ", n),
		Workspace: "/w", Agents: []kernel.AgentID{"a", "b"}, Plan: "ask", Permission: "read", Created: epoch, Updated: epoch}
}

// TestConversations is the conformance suite of kernel.Conversations; open gives an empty one.
func TestConversations(t *testing.T, open func(t *testing.T) kernel.Conversations) {
	ctx := context.Background()
	for name, test := range map[string]func(*testing.T, context.Context, kernel.Conversations){
		"threads": convThreads, "messages": convMessages, "turns": convTurns, "sessions": convSessions,
		"unknown": convUnknown, "concurrent": convConcurrent,
	} {
		t.Run(name, func(t *testing.T) { test(t, ctx, open(t)) })
	}
}

func convThreads(t *testing.T, ctx context.Context, c kernel.Conversations) {
	for _, n := range []int{2, 3, 1, 2} {
		ok(t, c.PutConversation(ctx, Conv(n)))
	}
	changed := Conv(2)
	changed.Archived, changed.Agents = true, []kernel.AgentID{"c"}
	changed.Messages = 77 // filled in on reading, whatever was written
	ok(t, c.PutConversation(ctx, changed))
	changed.Messages = 0
	if got := must[kernel.Conversation](t)(c.Conversation(ctx, changed.ID)); !reflect.DeepEqual(got, changed) {
		t.Fatalf("got %+v, want %+v", got, changed)
	}
	want := []kernel.Conversation{Conv(3), changed, Conv(1)}
	if got := must[[]kernel.Conversation](t)(collect(c.Conversations(ctx))); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for range c.Conversations(ctx) {
		break
	}
}

func message(conv, n int) kernel.Message {
	return kernel.Message{ID: kernel.MessageID(fmt.Sprintf("%s%020d", kernel.MessagePrefix, n)), Conversation: Conv(conv).ID, Run: Run(1),
		Role: "user", TurnSeq: uint64(n), Text: kernel.Sum(fmt.Append(nil, n)), Status: "done", At: epoch}
}

func convMessages(t *testing.T, ctx context.Context, c kernel.Conversations) {
	ok(t, c.PutConversation(ctx, Conv(1)))
	ok(t, c.PutConversation(ctx, Conv(2)))
	for _, n := range []int{300, 1, 2, 256, 255} { // TurnSeq orders, not the order of writing
		ok(t, c.PutMessage(ctx, message(1, n)))
	}
	ok(t, c.PutMessage(ctx, message(2, 7)))
	partial := message(1, 2)
	partial.Status, partial.Attachments = "partial", []kernel.Attachment{{ID: "x", Name: "a.txt", Bytes: 3, Hash: kernel.Sum([]byte("abc"))}}
	ok(t, c.PutMessage(ctx, partial))
	for from, want := range map[uint64][]int{0: {1, 2, 255, 256, 300}, 2: {2, 255, 256, 300}, 256: {256, 300}, 301: {}} {
		var got []int
		for _, m := range must[[]kernel.Message](t)(collect(c.Messages(ctx, Conv(1).ID, from))) {
			got = append(got, int(m.TurnSeq))
			if w := message(1, int(m.TurnSeq)); m.TurnSeq != 2 && !reflect.DeepEqual(m, w) {
				t.Fatalf("got %+v, want %+v", m, w)
			} else if m.TurnSeq == 2 && !reflect.DeepEqual(m, partial) {
				t.Fatalf("got %+v, want %+v", m, partial)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("from %d: %v, want %v", from, got, want)
		}
	}
	moved := message(1, 2) // the same message with another number
	moved.TurnSeq = 400
	ok(t, c.PutMessage(ctx, moved))
	all := must[[]kernel.Message](t)(collect(c.Messages(ctx, Conv(1).ID, 0)))
	if len(all) != 5 || all[4].ID != moved.ID {
		t.Fatalf("%d messages, the last is %s", len(all), all[len(all)-1].ID)
	}
	if n := must[kernel.Conversation](t)(c.Conversation(ctx, Conv(1).ID)).Messages; n != 5 {
		t.Fatalf("%d messages are counted, want 5", n)
	}
}

func convTurns(t *testing.T, ctx context.Context, c kernel.Conversations) {
	ok(t, c.PutConversation(ctx, Conv(1)))
	ok(t, c.PutConversation(ctx, Conv(2)))
	for _, s := range []struct {
		conv  int
		claim string
		n     int
		want  uint64
	}{{1, "a", 3, 1}, {1, "b", 1, 4}, {1, "a", 3, 1}, {1, "c", 2, 5}, {2, "a", 1, 1}, {1, "b", 1, 4}, {1, "d", 1, 7}} {
		if got := must[uint64](t)(c.ReserveTurns(ctx, Conv(s.conv).ID, s.claim, s.n)); got != s.want {
			t.Fatalf("claim %s of %d in %d starts at %d, want %d", s.claim, s.n, s.conv, got, s.want)
		}
	}
}

func convSessions(t *testing.T, ctx context.Context, c kernel.Conversations) {
	ok(t, c.PutConversation(ctx, Conv(1)))
	id := Conv(1).ID
	_, err := c.Session(ctx, id, "a")
	wantKind(t, err, kernel.NotFound)
	for _, s := range []kernel.Session{{Native: "n1", Workspace: "/w", Seen: 1}, {Native: "n2", Workspace: "/w", Seen: 9, Host: "h"}} {
		ok(t, c.PutSession(ctx, id, "a", s))
		if got := must[kernel.Session](t)(c.Session(ctx, id, "a")); got != s {
			t.Fatalf("got %+v, want %+v", got, s)
		}
	}
	_, err = c.Session(ctx, id, "b")
	wantKind(t, err, kernel.NotFound)
	for range 2 {
		ok(t, c.ForgetSession(ctx, id, "a"))
	}
	_, err = c.Session(ctx, id, "a")
	wantKind(t, err, kernel.NotFound)
}

func convUnknown(t *testing.T, ctx context.Context, c kernel.Conversations) {
	id := Conv(9).ID
	_, err := c.Conversation(ctx, id)
	wantKind(t, err, kernel.NotFound)
	wantKind(t, c.PutMessage(ctx, message(9, 1)), kernel.NotFound)
	_, err = collect(c.Messages(ctx, id, 0))
	wantKind(t, err, kernel.NotFound)
	_, err = c.ReserveTurns(ctx, id, "a", 1)
	wantKind(t, err, kernel.NotFound)
	wantKind(t, c.PutSession(ctx, id, "a", kernel.Session{}), kernel.NotFound)
	ok(t, c.ForgetSession(ctx, id, "a"))
	if all := must[[]kernel.Conversation](t)(collect(c.Conversations(ctx))); len(all) != 0 {
		t.Fatalf("an empty store lists %d conversations", len(all))
	}
}

// convConcurrent: several agents answer in one conversation at the same time,
// so neither a number nor a message may be lost, nor may anybody see a Conflict.
func convConcurrent(t *testing.T, ctx context.Context, c kernel.Conversations) {
	ok(t, c.PutConversation(ctx, Conv(1)))
	const writers, each = 6, 10
	var mu sync.Mutex
	seen := map[uint64]string{}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				claim := fmt.Sprint(w, "/", i)
				first, err := c.ReserveTurns(ctx, Conv(1).ID, claim, 2)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, turn := range []uint64{first, first + 1} {
					if other, taken := seen[turn]; taken {
						t.Errorf("%s and %s have turn %d", claim, other, turn)
					}
					seen[turn] = claim
				}
				mu.Unlock()
				if err := c.PutMessage(ctx, message(1, int(first))); err != nil {
					t.Error(err)
				}
				if err := c.PutConversation(ctx, Conv(1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := must[kernel.Conversation](t)(c.Conversation(ctx, Conv(1).ID)).Messages; n != writers*each {
		t.Fatalf("%d messages are counted, want %d", n, writers*each)
	}
	if n := len(must[[]kernel.Message](t)(collect(c.Messages(ctx, Conv(1).ID, 0)))); n != writers*each {
		t.Fatalf("%d messages, want %d", n, writers*each)
	}
}

// TestStreams is the conformance suite of kernel.Streams; open gives an empty one.
func TestStreams(t *testing.T, open func(t *testing.T) kernel.Streams) {
	ctx := context.Background()
	t.Run("order", func(t *testing.T) {
		s := open(t)
		var want []byte
		for i, chunk := range [][]byte{[]byte("one"), {}, {0, 0xff}, Random(1, 1<<20+7), []byte("end")} {
			ok(t, s.AppendStream(ctx, "atp_1", chunk))
			ok(t, s.AppendStream(ctx, "atp_2", fmt.Append(nil, i)))
			want = append(want, chunk...)
			if got := must[[]byte](t)(s.ReadStream(ctx, "atp_1")); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes after chunk %d, want %d", len(got), i, len(want))
			}
		}
		ok(t, s.DropStream(ctx, "atp_1"))
		ok(t, s.DropStream(ctx, "atp_1"))
		if got := must[[]byte](t)(s.ReadStream(ctx, "atp_1")); len(got) != 0 {
			t.Fatalf("%d bytes of a dropped stream", len(got))
		}
		if got := must[[]byte](t)(s.ReadStream(ctx, "atp_2")); string(got) != "01234" {
			t.Fatalf("the other stream holds %q", got)
		}
		ok(t, s.AppendStream(ctx, "atp_1", []byte("again")))
		if got := must[[]byte](t)(s.ReadStream(ctx, "atp_1")); string(got) != "again" {
			t.Fatalf("a stream begun again holds %q", got)
		}
	})
	t.Run("prefix", func(t *testing.T) { // an id may begin like another
		s := open(t)
		ok(t, s.AppendStream(ctx, "atp_1", []byte("a")))
		ok(t, s.AppendStream(ctx, "atp_11", []byte("b")))
		ok(t, s.DropStream(ctx, "atp_1"))
		if got := must[[]byte](t)(s.ReadStream(ctx, "atp_11")); string(got) != "b" {
			t.Fatalf("the stream holds %q", got)
		}
	})
	t.Run("concurrent", func(t *testing.T) {
		s := open(t)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 20 {
					if err := s.AppendStream(ctx, "atp_1", []byte("x")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := must[[]byte](t)(s.ReadStream(ctx, "atp_1")); len(got) != 80 {
			t.Fatalf("%d bytes, want 80", len(got))
		}
	})
}
