package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// turn lets the agent do one turn and returns the result of session/prompt.
func (s *server) turn(ctx context.Context, ses *session, prompt, state string) (result any, err error) {
	dir, done, err := stateFolder(state)
	if err != nil {
		return nil, kernel.E("builtin.Serve", kernel.ReadOnly, err, "the turn's state folder cannot be made")
	}
	defer done()
	// What an agent reads is hostile; a parser that panics must not end the host.
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, kernel.E("builtin.Serve", kernel.Internal, nil, "%s failed: %v", s.agent.Info().ID, p)
		}
	}()
	e := &emitter{s: s, session: ses.id}
	text, err := s.answerTo(ctx, prompt, work.Turn{Workspace: ses.cwd, State: dir}, e)
	if errors.Is(context.Cause(ctx), errCancelled) {
		return map[string]any{"stopReason": "cancelled"}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, chunk := range chunks(text) {
		e.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": chunk}})
	}
	return map[string]any{"stopReason": "end_turn"}, nil
}

// answerTo does what the phase of the prompt asks for and returns the whole
// answer. In a phase that the agent does not know it does its own analysis, and
// closes with no receipt, as it knows none.
func (s *server) answerTo(ctx context.Context, prompt string, turn work.Turn, e *emitter) (string, error) {
	b, prose := readBlock(prompt)
	if m, ok := s.agent.(*member); ok && phases[b.Phase] != nil {
		a, err := phases[b.Phase](m, task{ctx: ctx, turn: turn, b: b, words: quoted(prose), emit: e})
		if err != nil {
			return "", err
		}
		r, err := receipt(b.Phase, a.summary, a.keys)
		return a.text + r, err
	}
	report, err := s.agent.Run(ctx, turn, e)
	if err != nil || b.Phase != "" && b.Phase != "respond" {
		return report.Text, err
	}
	r, err := receipt("respond", report.Summary, map[string]any{"claims": claimsOf(report)})
	return report.Text + r, err
}

// emitter turns what an agent does into session updates. A client that is gone
// is noticed by the reader, so its errors are of no use here.
type emitter struct {
	s       *server
	session string
	tools   int
}

func (e *emitter) update(u map[string]any) {
	_ = e.s.notify("session/update", map[string]any{"sessionId": e.session, "update": u})
}

func (e *emitter) Plan(steps []work.Step) {
	entries := make([]any, len(steps))
	for i, st := range steps {
		entries[i] = map[string]any{"content": st.Text, "priority": "medium", "status": st.Status}
	}
	e.update(map[string]any{"sessionUpdate": "plan", "entries": entries})
}

func (e *emitter) Tool(kind, title string) func(ok bool) {
	e.tools++
	id := fmt.Sprintf("tool-%d", e.tools)
	e.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "in_progress"})
	return func(ok bool) {
		status := "completed"
		if !ok {
			status = "failed"
		}
		e.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status})
	}
}

func (e *emitter) Outcome(o kernel.Outcome, content []byte) {
	params := map[string]any{"sessionId": e.session, "outcome": o}
	if content != nil {
		params["content"] = string(content)
	}
	_ = e.s.notify("_witan/outcome", params)
}

// chunks cuts a text at line ends into pieces that a screen can follow.
func chunks(text string) []string {
	const size = 4 << 10
	var out []string
	start, end := 0, 0
	for l := range strings.Lines(text) {
		if end > start && end+len(l)-start > size {
			out = append(out, text[start:end])
			start = end
		}
		end += len(l)
	}
	return append(out, text[start:])
}
