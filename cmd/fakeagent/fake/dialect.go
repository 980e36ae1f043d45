package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// dialect is a protocol other than ACP that the same scripts are spoken in.
type dialect interface {
	// lines is what an update of ACP is there.
	lines(u map[string]any) []byte
	// ask sends a request to the client and returns the answer as ACP has it.
	ask(t *turn, method string, params any, id string) json.RawMessage
	// heard takes a line of input.
	heard(line []byte)
}

// dialects are the flags that choose one, and how it starts with its own flags.
var dialects = map[string]func(a *agent, flags []string) (dialect, int){
	"--claude": newClaude, "--codex": newCodex, "--gemini": newGemini, "--opencode": newOpencode, "--qwen": newQwen,
}

// oneShot is a dialect of a program that takes one prompt as its whole input.
type oneShot interface {
	dialect
	sessionID() string
	// begin is printed first, and end last.
	begin() []byte
	end(t *turn) []byte
}

// once answers the one prompt of the input. A signal to end is its cancel.
func (a *agent) once(d oneShot) int {
	if a.Blind {
		forever()
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeagent:", err)
		return 2
	}
	a.record(d.sessionID(), string(prompt))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if !a.Bare {
		a.print(string(d.begin()))
	}
	t := &turn{a: a, ctx: ctx, asked: ctx, session: d.sessionID(), prompt: string(prompt), stop: "end_turn"}
	t.steps(a.stepsFor(t.prompt))
	t.flush()
	switch {
	case t.mute:
		forever()
	case t.ctx.Err() != nil:
		return 143
	case a.Bare:
		return 0
	}
	a.print(string(d.end(t)))
	if t.fail != nil {
		return 1
	}
	return 0
}

// flush prints the text that was held back.
func (t *turn) flush() {
	if s := t.held.String(); s != "" {
		t.held.Reset()
		t.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": s}})
	}
}

// flag is the value behind a flag; "" when it is not there.
func flag(flags []string, name string) string {
	if i := slices.Index(flags, name); i >= 0 && i+1 < len(flags) {
		return flags[i+1]
	}
	return ""
}

// textOf is the text of an update's content.
func textOf(u map[string]any) string {
	c, _ := u["content"].(map[string]any)
	s, _ := c["text"].(string)
	return s
}

func str(u map[string]any, key string) string {
	s, _ := u[key].(string)
	return s
}

// encode makes lines of values.
func encode(values ...any) []byte {
	var out []byte
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		out = append(append(out, b...), '\n')
	}
	return out
}

type object = map[string]any

// tool is what a dialect's agent calls a tool of a kind, and the word that the
// title of a call begins with.
type tool struct{ name, word string }

// call is the call of a tool that the update speaks of: its name and what it was
// given, so that both together say the title.
func call(tools map[string]tool, u map[string]any) (name string, input object) {
	title := str(u, "title")
	t := tools[str(u, "kind")]
	if t.name == "" {
		return title, object{}
	}
	return t.name, object{"description": strings.TrimPrefix(title, t.word)}
}
