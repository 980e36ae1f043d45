package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"witan/kernel"
	"witan/kernel/marker"
	"witan/kernel/secrets"
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
	report, err := s.agent.Run(ctx, work.Turn{Workspace: ses.cwd, State: dir}, e)
	if errors.Is(context.Cause(ctx), errCancelled) {
		return map[string]any{"stopReason": "cancelled"}, nil
	}
	if err != nil {
		return nil, err
	}
	text := report.Text
	if phase := phaseOf(prompt); phase == "" || phase == "respond" {
		r, err := receipt(report)
		if err != nil {
			return nil, err
		}
		text += r
	}
	for _, chunk := range chunks(text) {
		e.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": chunk}})
	}
	return map[string]any{"stopReason": "end_turn"}, nil
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

// phaseOf reads the phase of the turn block at the end of a prompt; "" without one.
func phaseOf(prompt string) string {
	i := strings.LastIndex(prompt, marker.TurnOpen)
	if i < 0 {
		return ""
	}
	block, _, _ := strings.Cut(prompt[i+len(marker.TurnOpen):], marker.TurnClose)
	var t struct {
		Phase string `json:"phase"`
	}
	if json.Unmarshal([]byte(block), &t) != nil {
		return ""
	}
	return t.Phase
}

// receipt closes a turn of the phase respond.
func receipt(r work.Report) (string, error) {
	// A receipt with a secret in it would be refused, whoever it belongs to.
	claims := make([]kernel.ClaimText, len(r.Claims))
	for i, c := range r.Claims {
		c.Text, c.Command = secrets.Redact(work.Clip(c.Text, 800)), secrets.Redact(c.Command)
		claims[i] = c
	}
	b, err := kernel.Canonical(map[string]any{"version": 1, "phase": "respond", "summary": secrets.Redact(work.Clip(r.Summary, 700)), "claims": claims})
	return "\n" + marker.ReceiptOpen + "\n" + string(b) + "\n" + marker.ReceiptClose + "\n", err
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
