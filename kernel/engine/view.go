package engine

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"witan/kernel"
)

// Lines turns records and live items of one run into the NDJSON lines of the
// command-line contract. Numbers start at 1 and have no holes. A Lines is used
// by one view.
type Lines struct {
	Packs kernel.Packs
	run   kernel.RunID
	seq   int
	sent  map[kernel.AttemptID]int // bytes of text already given
	tools map[string]string        // attempt and tool id to the status last given
	agent map[kernel.AttemptID]kernel.AgentID
}

// NewLines starts a view of a run.
func NewLines(p kernel.Packs, run kernel.RunID) *Lines {
	return &Lines{Packs: p, run: run, sent: map[kernel.AttemptID]int{}, tools: map[string]string{}, agent: map[kernel.AttemptID]kernel.AgentID{}}
}

// hidden kinds serve recovery, not people.
var hidden = map[kernel.RecordKind]bool{kernel.StageStarted: true, kernel.DeliverySent: true, kernel.ProcessStarted: true,
	kernel.GateUsed: true, kernel.BudgetTripped: true}

// Item gives the lines of a live item.
func (l *Lines) Item(ctx context.Context, it Item, now time.Time) ([]json.RawMessage, error) {
	switch {
	case it.Record != nil:
		return l.Record(ctx, *it.Record)
	case it.Event != nil:
		return l.event(it, now), nil
	case it.Text != "":
		return l.text(it.Attempt, it.Text, now), nil
	}
	return nil, nil
}

// Record gives the lines of a record; the end of an invoke stage is preceded by
// whatever of its text was not given yet.
func (l *Lines) Record(ctx context.Context, r kernel.Record) ([]json.RawMessage, error) {
	var out []json.RawMessage
	body := r.Body
	switch r.Kind {
	case kernel.AttemptQueued:
		var b kernel.AttemptBody
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return nil, err
		}
		l.agent[r.Attempt] = b.Agent
	case kernel.StageFinished, kernel.StageFailed:
		if r.Stage == "invoke" {
			rest, err := l.rest(ctx, r)
			if err != nil {
				return nil, err
			}
			out = rest
		}
	case kernel.FindingRec, kernel.EvidenceRec, kernel.ArtifactRec, kernel.VerifyRec, kernel.RunFinished:
		b, err := whole(r.Kind, r.Body)
		if err != nil {
			return nil, err
		}
		body = b
	case kernel.MessageRec:
		b, err := l.message(ctx, r)
		if err != nil {
			return nil, err
		}
		body = b
	}
	if hidden[r.Kind] {
		return out, nil
	}
	return append(out, l.line(string(r.Kind), r.Attempt, r.Stage, r.At, body)), nil
}

// always are fields that a record leaves out where there is nothing to say, and
// a line does not: who reads lines need not ask whether they are there.
var always = map[kernel.RecordKind]string{
	kernel.FindingRec:  `{"detail":"","evidence":[],"line":null,"path":"","severity":"","stance":"","title":""}`,
	kernel.EvidenceRec: `{"hash":"","kind":"","level":"","path":"","summary":""}`,
	kernel.ArtifactRec: `{"hash":"","kind":"","path":"","summary":""}`,
	kernel.VerifyRec:   `{"evidence":[],"reason":""}`,
	kernel.RunFinished: `{"reason":""}`,
}

// whole is the body of a record with all the fields of its kind. The type of an
// outcome is the type of the line already.
func whole(kind kernel.RecordKind, body json.RawMessage) (json.RawMessage, error) {
	var m map[string]json.RawMessage
	for _, b := range []json.RawMessage{json.RawMessage(always[kind]), body} {
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, err
		}
	}
	delete(m, "type")
	return kernel.Canonical(m)
}

// rest is what live views have not had of an ended attempt: tools and text.
func (l *Lines) rest(ctx context.Context, r kernel.Record) ([]json.RawMessage, error) {
	var end kernel.StageEndBody
	if err := json.Unmarshal(r.Body, &end); err != nil {
		return nil, err
	}
	tools, err := l.restTools(ctx, r, end.Out)
	if err != nil || end.Text.IsZero() {
		return tools, err
	}
	text, err := l.Packs.Get(ctx, end.Text)
	if err != nil {
		return nil, err
	}
	n := l.sent[r.Attempt]
	if n >= len(text) {
		return tools, nil
	}
	return append(tools, l.text(r.Attempt, string(text[n:]), r.At)...), nil
}

func (l *Lines) restTools(ctx context.Context, r kernel.Record, reply kernel.Digest) ([]json.RawMessage, error) {
	if reply.IsZero() {
		return nil, nil
	}
	rep, err := kernel.GetObject[kernel.Reply](ctx, l.Packs, reply)
	if err != nil {
		return nil, err
	}
	var out []json.RawMessage
	for _, t := range rep.Tools {
		if l.tools[string(r.Attempt)+"/"+t.ID] != t.Status {
			out = append(out, l.event(Item{Attempt: r.Attempt, Event: &kernel.Event{Type: "tool", Tool: t}}, r.At)...)
		}
	}
	return out, nil
}

func (l *Lines) message(ctx context.Context, r kernel.Record) (json.RawMessage, error) {
	var b kernel.MessageBody
	if err := json.Unmarshal(r.Body, &b); err != nil {
		return nil, err
	}
	text, err := l.Packs.Get(ctx, b.Text)
	if err != nil {
		return nil, err
	}
	return kernel.Canonical(struct {
		Agent   kernel.AgentID   `json:"agent,omitempty"`
		Hash    kernel.Digest    `json:"hash"`
		Message kernel.MessageID `json:"message"`
		Role    string           `json:"role"`
		Status  string           `json:"status"`
		Text    string           `json:"text"`
		TurnSeq uint64           `json:"turn_seq"`
	}{b.Agent, b.Text, b.Message, b.Role, b.Status, string(text), b.TurnSeq})
}

func (l *Lines) text(at kernel.AttemptID, delta string, now time.Time) []json.RawMessage {
	l.sent[at] += len(delta)
	b := append([]byte(`{"agent":`), kernel.AppendString(nil, string(l.agent[at]))...)
	b = append(b, `,"delta":`...)
	b = append(kernel.AppendString(b, delta), '}')
	return []json.RawMessage{l.line("text", at, "", now, b)}
}

func (l *Lines) event(it Item, now time.Time) []json.RawMessage {
	ev := it.Event
	var body any
	switch ev.Type {
	case "tool":
		l.tools[string(it.Attempt)+"/"+ev.Tool.ID] = ev.Tool.Status
		body = struct {
			Agent kernel.AgentID `json:"agent"`
			kernel.ToolCall
		}{l.agent[it.Attempt], ev.Tool}
	case "notice":
		body = kernel.NoticeBody{Code: ev.Code, Text: ev.Text}
	default:
		body = struct {
			Text string `json:"text"`
		}{ev.Text}
	}
	b, err := kernel.Canonical(body)
	if err != nil {
		return nil
	}
	return []json.RawMessage{l.line(ev.Type, it.Attempt, "", now, b)}
}

// line puts the common fields before those of the body.
func (l *Lines) line(kind string, at kernel.AttemptID, stage string, when time.Time, body json.RawMessage) json.RawMessage {
	l.seq++
	b := kernel.AppendString([]byte(`{"type":`), kind)
	b = kernel.AppendString(append(b, `,"run":`...), string(l.run))
	b = strconv.AppendInt(append(b, `,"seq":`...), int64(l.seq), 10)
	b = when.UTC().AppendFormat(append(b, `,"at":"`...), time.RFC3339Nano)
	b = append(b, '"')
	if at != "" {
		b = kernel.AppendString(append(b, `,"attempt":`...), string(at))
	}
	if stage != "" {
		b = kernel.AppendString(append(b, `,"stage":`...), stage)
	}
	if len(body) > 2 { // not {}
		b = append(append(b, ','), body[1:len(body)-1]...)
	}
	return append(b, '}')
}

// Watch gives the lines of a run from its record number from on: of an active
// run until it ends, of another at once. wake is called to learn of changes; it
// may return early and often. emit's error ends the watch.
func (e *Engine) Watch(ctx context.Context, run kernel.RunID, from uint64, emit func(json.RawMessage) error) error {
	l := NewLines(e.Packs, run)
	give := func(lines []json.RawMessage, err error) error {
		for _, ln := range lines {
			if err := emit(ln); err != nil {
				return err
			}
		}
		return err
	}
	d := e.driver(run)
	if d == nil {
		for r, err := range e.Ledger.Read(ctx, run, 1) {
			if err != nil {
				return err
			}
			if r.Seq < from {
				l.note(r)
				continue
			}
			if err := give(l.Record(ctx, r)); err != nil {
				return err
			}
		}
		return nil
	}
	return e.follow(ctx, d, from, l, give)
}

// note learns from a record that is not shown.
func (l *Lines) note(r kernel.Record) {
	if r.Kind == kernel.AttemptQueued {
		var b kernel.AttemptBody
		if json.Unmarshal(r.Body, &b) == nil {
			l.agent[r.Attempt] = b.Agent
		}
	}
}

const (
	recheckFirst = 250 * time.Millisecond
	recheckMost  = 5 * time.Second
)

// follow reads a Live as signals come; a lost signal costs at most one pause.
func (e *Engine) follow(ctx context.Context, d *driver, from uint64, l *Lines, give func([]json.RawMessage, error) error) error {
	wake := make(chan struct{}, 1)
	stop, err := e.View.Subscribe(TopicView, func(_ context.Context, s kernel.Signal) {
		if s.Run == d.s.Run {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	var c Cursor
	pause := recheckFirst
	for {
		items, next, over := d.live.Next(c, 256)
		for _, it := range items {
			if it.Record != nil && it.Record.Seq < from {
				l.note(*it.Record)
				continue
			}
			if err := give(l.Item(ctx, it, e.Clock.Now())); err != nil {
				return err
			}
		}
		c = next
		if over {
			return d.err
		}
		if len(items) > 0 {
			pause = recheckFirst
			continue
		}
		timer, stopTimer := e.Clock.After(pause)
		select {
		case <-wake:
		case <-d.done:
		case <-timer:
			pause = min(2*pause, recheckMost)
		case <-ctx.Done():
			stopTimer()
			return ctx.Err()
		}
		stopTimer()
	}
}
