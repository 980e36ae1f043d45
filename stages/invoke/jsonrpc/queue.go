package jsonrpc

import (
	"io"
	"sync"
)

// queue holds what is to be written, so that a side that does not read holds
// nobody up. Its one writer is run.
type queue struct {
	w    io.Writer
	wake chan struct{} // something was added, or it was closed

	mu     sync.Mutex
	todo   []outgoing // guarded by mu
	closed bool       // guarded by mu: run ends when todo is empty
}

// outgoing is a line and what to do once it needs no room any more.
type outgoing struct {
	line    []byte
	written func()
}

func newQueue(w io.Writer) *queue { return &queue{w: w, wake: make(chan struct{}, 1)} }

// add never waits.
func (q *queue) add(line []byte, written func()) {
	q.mu.Lock()
	q.todo = append(q.todo, outgoing{line, written})
	q.mu.Unlock()
	q.poke()
}

// close lets run end once everything is written.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.poke()
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run writes line by line. After an error it only empties the queue: why the
// other side is gone is seen better where it is read.
func (q *queue) run() {
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
