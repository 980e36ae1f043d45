package model

import (
	"slices"
	"sort"
	"sync"
)

// Thread is the conversation that is shown. It must not be copied once it was
// handed out; reducers make a new one.
type Thread struct {
	Conversation Conversation
	Epoch        string
	Revision     uint64
	Blocks       []*Block
	Queue        []Entry
	Older        bool // there are older messages that were not loaded

	index *index
}

// index counts the items before each block.
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

// clone returns a copy that may be changed before it is handed out.
func (t *Thread) clone() *Thread {
	return &Thread{Conversation: t.Conversation, Epoch: t.Epoch, Revision: t.Revision, Blocks: t.Blocks, Queue: t.Queue, Older: t.Older, index: &index{}}
}

// Len is the number of items.
func (t *Thread) Len() int {
	start := t.starts()
	return start[len(start)-1]
}

// At returns an item by its place.
func (t *Thread) At(i int) Item {
	start := t.starts()
	b := sort.SearchInts(start, i+1) - 1
	return t.Blocks[b].Items()[i-start[b]]
}

func (t *Thread) starts() []int {
	t.index.once.Do(func() {
		start := make([]int, len(t.Blocks)+1)
		for i, b := range t.Blocks {
			start[i+1] = start[i] + len(b.Items())
		}
		t.index.start = start
	})
	return t.index.start
}

// Run returns a run of the thread, or nil.
func (t *Thread) Run(id string) *Run {
	if i := t.block(id); i >= 0 {
		return t.Blocks[i].Run
	}
	return nil
}

// Last is the newest run, or nil.
func (t *Thread) Last() *Run {
	for i := len(t.Blocks) - 1; i >= 0; i-- {
		if t.Blocks[i].Run != nil {
			return t.Blocks[i].Run
		}
	}
	return nil
}

// block finds the block of a run, -1 if there is none. New runs are at the end.
func (t *Thread) block(run string) int {
	for i := len(t.Blocks) - 1; i >= 0; i-- {
		if r := t.Blocks[i].Run; r != nil && r.ID == run {
			return i
		}
	}
	return -1
}

// replace returns a thread with another block at a place.
func (t *Thread) replace(i int, b *Block) *Thread {
	n := t.clone()
	n.Blocks = slices.Clone(t.Blocks)
	n.Blocks[i] = b
	return n
}

// withBlock returns a thread with one block more at its end.
func (t *Thread) withBlock(b *Block) *Thread {
	n := t.clone()
	n.Blocks = append(slices.Clip(t.Blocks), b)
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
