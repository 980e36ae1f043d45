package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// oneShot is a dialect whose program answers one prompt, all of its input, and
// ends. It prints whole texts: steps that say something one after the other are one.
type oneShot interface {
	dialect
	id() string // of the session
	begin() []byte
	// end is how the turn ends, and the exit code. A turn that was told to stop ends without a word.
	end(t *turn) ([]byte, int)
}

// stopped is the exit code of a program that obeyed a signal.
const stopped = 143

// once answers the prompt. SIGTERM is what a cancel is elsewhere.
func (a *agent) once(p oneShot) int {
	session := p.id()
	if a.Blind {
		forever()
	}
	b, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeagent:", err)
		return 2
	}
	a.record(session, string(b))
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	a.print(string(p.begin()))
	t := &turn{a: a, ctx: ctx, asked: ctx, session: session, prompt: string(b), stop: "end_turn"}
	t.steps(a.stepsFor(string(b)))
	t.flush()
	switch {
	case t.mute:
		forever()
	case t.ctx.Err() != nil:
		return stopped
	}
	out, code := p.end(t)
	if t.late {
		out = append(out, out...)
	}
	a.print(string(out))
	return code
}

// flush prints the text that was held back.
func (t *turn) flush() {
	if s := t.held.String(); s != "" {
		t.held.Reset()
		t.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": s}})
	}
}

// failed is the message and the code of an error step.
func (t *turn) failed() (message string, code int) {
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(t.fail, &e)
	return e.Message, e.Code
}
