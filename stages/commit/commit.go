package commit

import (
	"context"
	"strconv"

	"witan/kernel"
)

type record struct{ conv kernel.Conversations }

// Record returns the stage "commit/record": messages and outcomes only.
func Record(c kernel.Conversations) kernel.Commit { return record{c} }

func (record) Spec() kernel.Spec {
	return kernel.Spec{ID: "commit/record", Version: 1, Class: kernel.Keyed, Touches: []string{"store"},
		Doc: "Records the message and the outcomes, and nothing in the workspace", Options: kernel.NoOptions,
		In: kernel.Schema[kernel.Verdict](), Out: kernel.Schema[kernel.Result]()}
}

func (r record) Run(ctx context.Context, env kernel.Env, v kernel.Verdict) (kernel.Result, error) {
	raw, err := kernel.Canonical(v)
	if err != nil {
		return kernel.Result{}, err
	}
	res := kernel.Result{Version: kernel.ObjectVersion, Scope: v.Scope, Verdict: kernel.Sum(raw), Outcomes: v.Outcomes, Results: v.Results}
	switch v.Scope {
	case "run":
		return r.run(v, res)
	case "attempt":
		return r.attempt(ctx, env, v, res)
	}
	return res, kernel.E("commit", kernel.Invalid, nil, "scope %q is neither attempt nor run", v.Scope)
}

// run names the accepted result by the content of its parts.
func (record) run(v kernel.Verdict, res kernel.Result) (kernel.Result, error) {
	parts, err := kernel.Canonical(v.Parts)
	if err != nil {
		return res, err
	}
	res.Commit = kernel.DeriveID(kernel.CommitPrefix, string(v.Run))
	res.Target, res.Content = "record", kernel.SumDomain("content/1", parts)
	return res, nil
}

func (r record) attempt(ctx context.Context, env kernel.Env, v kernel.Verdict, res kernel.Result) (kernel.Result, error) {
	t, err := kernel.GetObject[kernel.Turn](ctx, env.Packs, v.Turn)
	if err != nil {
		return res, err
	}
	snap, err := kernel.GetObject[kernel.Snapshot](ctx, env.Packs, t.Snapshot)
	if err != nil {
		return res, err
	}
	task, err := kernel.GetObject[kernel.Task](ctx, env.Packs, snap.Task)
	if err != nil {
		return res, err
	}
	text := v.Text
	if text.IsZero() {
		if text, err = env.Packs.Put(ctx, "text", nil); err != nil {
			return res, err
		}
	}
	m := kernel.Message{ID: MessageID(t), Conversation: task.Conversation, Run: t.Run, Attempt: "", Role: "agent", Agent: t.Agent,
		TurnSeq: t.TurnSeq, Text: text, Status: v.Status}
	res.Message = &m
	stored := m
	stored.Attempt, stored.At = env.Attempt, env.Now()
	return res, r.conv.PutMessage(ctx, stored)
}

// MessageID names the message of a slot, whichever try fills it.
func MessageID(t kernel.Turn) kernel.MessageID {
	return kernel.MessageID(kernel.DeriveID(kernel.MessagePrefix, string(t.Run), t.Phase, strconv.Itoa(t.Round), strconv.Itoa(t.Slot)))
}
