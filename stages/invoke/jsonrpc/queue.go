package jsonrpc

import (
	"io"
	"sync"
)

// Queue holds what is to be written, so that a side that does not read holds
// nobody up. Its one writer is Run.
type Queue struct {
	w    io.Writer
	wake chan struct{} // something was added, or it was closed

	mu     sync.Mutex
	todo   []outgoing // guarded by mu
	closed bool       // guarded by mu: Run ends when todo is empty
}

// outgoing is a line and what to do once it needs no room any more.
type outgoing struct {
	line    []byte
	written func()
}

// NewQueue returns an empty one for w.
func NewQueue(w io.Writer) *Queue { return &Queue{w: w, wake: make(chan struct{}, 1)} }

// Add never waits. written, if any, is called once the line needs no room any more.
func (q *Queue) Add(line []byte, written func()) {
	q.mu.Lock()
	q.todo = append(q.todo, outgoing{line, written})
	q.mu.Unlock()
	q.poke()
}

// Close lets Run end once everything is written.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.poke()
}

func (q *Queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Run writes line by line. After an error it only empties the queue: why the
// other side is gone is seen better where it is read.
func (q *Queue) Run() {
	broken := false
	for range q.wake {
		for {
			q.mu.Lock()
			todo, closed := q.todo, q.closed
			q.todo = nil
			q.mu.Unlock()
			if len(todo) == 0 && closed {
				return
			}
			if len(todo) == 0 {
				break
			}
			for i, o := range todo {
				if !broken {
					_, err := q.w.Write(o.line)
					broken = err != nil
				}
				todo[i] = outgoing{} // released now, not with the last one
				if o.written != nil {
					o.written()
				}
			}
		}
	}
}
