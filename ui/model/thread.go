package model

import (
	"slices"
	"sort"
	"sync"
)

// Thread is the conversation that is shown: blocks in the order in which they
// began. What happens is mostly about the last one, so it is held apart: a change
// of it costs the same however long the conversation is.
type Thread struct {
	Conversation Conversation
	Epoch        string
	Revision     uint64
	Queue        []Entry
	Older        bool // there are older messages that were not loaded

	head  []*Block // all but the last
	last  *Block   // nil: there are none
	index *index   // of head
}

// index counts the items before each block of a thread's head.
type index struct {
	once  sync.Once
	start []int
}

// Block is one run with its messages, or messages that belong to no run.
type Block struct {
	Run      *Run // nil: messages only
	Messages []*Message

	once  sync.Once
	items []Item
}

// ItemKind says what an item is.
type ItemKind int

// The kinds of items.
const (
	ItemUser   ItemKind = iota // a message of the person
	ItemRule                   // the beginning of a phase
	ItemAgent                  // an agent's turn, or its message
	ItemGate                   // a gate
	ItemSystem                 // a system message or a notice about the run
	ItemEnd                    // how a run ended, where that needs saying
)

// Item is one row of a conversation. Which fields are set depends on its kind.
type Item struct {
	Kind    ItemKind
	Key     string // the same for the same row in every state
	Run     *Run
	Message *Message
	Attempt *Attempt
	Phase   *Phase
	Gate    *Gate
	Notice  *Notice
}

// newThread returns a thread of blocks.
func newThread(bs []*Block) *Thread {
	t := &Thread{index: &index{}}
	if n := len(bs); n > 0 {
		t.head, t.last = bs[:n-1], bs[n-1]
	}
	return t
}

// clone returns a copy that may be changed before it is handed out.
func (t *Thread) clone() *Thread {
	n := *t
	return &n
}

// Blocks counts the blocks.
func (t *Thread) Blocks() int {
	if t.last == nil {
		return 0
	}
	return len(t.head) + 1
}

// Block returns a block by its place.
func (t *Thread) Block(i int) *Block {
	if i == len(t.head) {
		return t.last
	}
	return t.head[i]
}

// Len is the number of items.
func (t *Thread) Len() int {
	if t.last == nil {
		return 0
	}
	return t.before() + len(t.last.Items())
}

// before is the number of items of all blocks but the last.
func (t *Thread) before() int {
	start := t.starts()
	return start[len(start)-1]
}

// At returns an item by its place.
func (t *Thread) At(i int) Item {
	start := t.starts()
	if n := start[len(start)-1]; i >= n {
		return t.last.Items()[i-n]
	}
	b := sort.SearchInts(start, i+1) - 1
	return t.head[b].Items()[i-start[b]]
}

func (t *Thread) starts() []int {
	t.index.once.Do(func() {
		start := make([]int, len(t.head)+1)
		for i, b := range t.head {
			start[i+1] = start[i] + len(b.Items())
		}
		t.index.start = start
	})
	return t.index.start
}

// Run returns a run of the thread, or nil.
func (t *Thread) Run(id string) *Run {
	if i := t.block(id); i >= 0 {
		return t.Block(i).Run
	}
	return nil
}

// Last is the newest run, or nil.
func (t *Thread) Last() *Run {
	for i := t.Blocks() - 1; i >= 0; i-- {
		if r := t.Block(i).Run; r != nil {
			return r
		}
	}
	return nil
}

// block finds the block of a run, -1 if there is none. New runs are at the end.
func (t *Thread) block(run string) int {
	for i := t.Blocks() - 1; i >= 0; i-- {
		if r := t.Block(i).Run; r != nil && r.ID == run {
			return i
		}
	}
	return -1
}

// replace returns a thread with another block at a place.
func (t *Thread) replace(i int, b *Block) *Thread {
	n := t.clone()
	if i == len(t.head) {
		n.last = b
		return n
	}
	n.head, n.index = slices.Clone(t.head), &index{}
	n.head[i] = b
	return n
}

// withBlock returns a thread with one block more at its end. The room behind the
// head is shared with older threads, which do not see that far.
func (t *Thread) withBlock(b *Block) *Thread {
	n := t.clone()
	if t.last != nil {
		n.head, n.index = append(t.head, t.last), &index{}
	}
	n.last = b
	return n
}

// blocks groups messages by their runs, in the order in which they begin.
func blocks(messages []Message, runs []Run) []*Block {
	byRun := map[string]*Run{}
	for i := range runs {
		r := runs[i]
		byRun[r.ID] = &r
	}
	var out []*Block
	place := map[string]*Block{}
	for i := range messages {
		m := messages[i]
		b := place[m.Run]
		if b == nil || m.Run == "" {
			b = &Block{Run: byRun[m.Run]}
			out = append(out, b)
			place[m.Run] = b
		}
		b.Messages = append(b.Messages, &m)
	}
	rest := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return place[r.ID] != nil })
	slices.SortStableFunc(rest, func(a, b Run) int { return a.Created.Compare(b.Created) })
	for _, r := range rest {
		out = append(out, &Block{Run: byRun[r.ID]})
	}
	return out
}
