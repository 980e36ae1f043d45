// Package desk gives the window its data: it is the window's Source over a host, in
// this process or behind its socket.
package desk

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"path/filepath"

	"witan/cmd/internal/host"
	"witan/kernel"
	"witan/ui/model"
)

// Caller runs an operation of a host.
type Caller interface {
	Call(ctx context.Context, op string, args any, emit func(json.RawMessage) error) error
}

// Source is a host as a window sees it.
type Source struct{ Host Caller }

// errEnough ends a call of which only the first lines are wanted.
var errEnough = errors.New("enough")

// rows collects the lines of an operation.
func rows[T any](ctx context.Context, c Caller, op string, args any) ([]T, error) {
	out := []T{}
	err := c.Call(ctx, op, args, func(l json.RawMessage) error {
		var v T
		if err := json.Unmarshal(l, &v); err != nil {
			return err
		}
		out = append(out, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Lists reads the four lists.
func (s Source) Lists(ctx context.Context) (l model.Lists, err error) {
	if l.Conversations, err = rows[model.Conversation](ctx, s.Host, "conversations", host.ListArgs{}); err != nil {
		return l, err
	}
	if l.Agents, err = rows[model.Agent](ctx, s.Host, "agents", struct{}{}); err != nil {
		return l, err
	}
	if l.Gates, err = rows[model.Gate](ctx, s.Host, "gates", struct{}{}); err != nil {
		return l, err
	}
	l.Runs, err = rows[model.Run](ctx, s.Host, "runs", host.ListArgs{})
	return l, err
}

// Attach follows a conversation.
func (s Source) Attach(ctx context.Context, conversation string, emit func(json.RawMessage) error) error {
	return s.Host.Call(ctx, "attach", host.ConversationArgs{Conversation: conversation}, emit)
}

// Detail gives the lines of a run; its first row is a summary, and no line.
func (s Source) Detail(ctx context.Context, run string, emit func(json.RawMessage) error) error {
	return s.Host.Call(ctx, "run-show", host.RunRef{Run: run}, emit)
}

// Queue reads the messages that wait.
func (s Source) Queue(ctx context.Context, conversation string) ([]model.Entry, error) {
	return rows[model.Entry](ctx, s.Host, "queue", host.QueueArgs{Conversation: conversation})
}

// Pack reads the beginning of a pack.
func (s Source) Pack(ctx context.Context, hash string, limit int) ([]byte, error) {
	var out []byte
	err := s.Host.Call(ctx, "pack.cat", host.PackArgs{Hash: hash}, func(l json.RawMessage) error {
		var part struct {
			Data string `json:"data"`
		}
		if err := json.Unmarshal(l, &part); err != nil {
			return err
		}
		b, err := base64.StdEncoding.DecodeString(part.Data)
		if err != nil {
			return err
		}
		if out = append(out, b...); len(out) >= limit {
			out = out[:limit]
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

// Do carries out an action. Of a run only the beginning is waited for: the window
// follows it by its conversation.
func (s Source) Do(ctx context.Context, a model.Action) (model.Done, error) {
	const op = "desk.Do"
	switch a := a.(type) {
	case model.Submit:
		return s.submit(ctx, a)
	case model.StopRun:
		return model.Done{Run: a.Run}, s.all(ctx, "stop", host.RunRef{Run: a.Run, Agent: a.Agent})
	case model.Resume:
		return s.begin(ctx, "resume", host.RunRef{Run: a.Run, OnGate: kernel.OnGateWait})
	case model.Retry:
		ref := host.RunRef{Run: a.Run, OnGate: kernel.OnGateWait}
		if a.Agent != "" {
			ref.Agents = []string{a.Agent}
		}
		return s.begin(ctx, "retry", ref)
	case model.Answer:
		return model.Done{}, s.all(ctx, "answer", host.AnswerArgs{Gate: a.Gate, Option: a.Option, Text: a.Text})
	case model.Adopt:
		return model.Done{}, s.all(ctx, "adopt", host.AdoptArgs{Finding: a.Finding, Word: a.Word})
	case model.Rename:
		return model.Done{}, s.all(ctx, "rename", host.ConversationArgs{Conversation: a.Conversation, Title: a.Title})
	case model.Archive:
		return model.Done{}, s.all(ctx, "archive", host.ConversationArgs{Conversation: a.Conversation, Archived: a.Archived})
	case model.CheckAgents:
		return model.Done{}, s.all(ctx, "agents.doctor", struct{}{})
	case model.QueueEdit:
		return model.Done{}, s.all(ctx, "queue."+a.Word, host.QueueArgs{Entry: a.Entry, Position: a.Place})
	}
	return model.Done{}, kernel.E(op, kernel.Internal, nil, "the window asked for %T, which nothing does", a)
}

func (s Source) submit(ctx context.Context, a model.Submit) (model.Done, error) {
	args := host.RunArgs{Text: a.Text, Dir: a.Workspace, Agents: a.Agents, Plan: a.Plan, Permission: a.Permission,
		Conversation: a.Conversation, OnGate: kernel.OnGateWait}
	if a.Conversation != "" {
		args.Dir = "" // the conversation's own
	} else if !filepath.IsAbs(a.Workspace) {
		return model.Done{}, kernel.E("desk.submit", kernel.Invalid, nil, "%q is no absolute path", a.Workspace).WithNext("name a folder from the root on")
	}
	if a.Queue {
		return model.Done{Conversation: a.Conversation}, s.all(ctx, "queue.add", host.QueueAddArgs{Run: args})
	}
	args.Detach = true
	return s.begin(ctx, "run", args)
}

// all runs an operation to its end and leaves its lines.
func (s Source) all(ctx context.Context, op string, args any) error {
	return s.Host.Call(ctx, op, args, func(json.RawMessage) error { return nil })
}

// begin runs an operation until its first line names the run.
func (s Source) begin(ctx context.Context, op string, args any) (done model.Done, err error) {
	err = s.Host.Call(ctx, op, args, func(l json.RawMessage) error {
		line, err := model.Parse(l)
		if err != nil {
			return err
		}
		done = model.Done{Conversation: line.Conversation, Run: line.Run}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return done, err
}
