package commit

import (
	"context"
	"strconv"

	"witan/kernel"
)

// recorder is what all commits share: the message of an attempt, and the names of a
// run's result.
type recorder struct{ conv kernel.Conversations }

type record struct{ recorder }

// Record returns the stage "commit/record": messages and outcomes only.
func Record(c kernel.Conversations) kernel.Commit { return record{recorder{c}} }

func (record) Spec() kernel.Spec {
	return kernel.Spec{ID: "commit/record", Version: 1, Class: kernel.Keyed, Touches: []string{"store"},
		Doc: "Records the message and the outcomes, and nothing in the workspace", Options: kernel.NoOptions,
		In: kernel.Schema[kernel.Verdict](), Out: kernel.Schema[kernel.Result]()}
}

func (r record) Run(ctx context.Context, env kernel.Env, v kernel.Verdict) (kernel.Result, error) {
	return r.commit(ctx, env, v, nil)
}

// commit records an attempt, or a run. If the run's verdict has content, write puts
// it where it belongs and returns the name of that place.
func (r recorder) commit(ctx context.Context, env kernel.Env, v kernel.Verdict, write func(content) (string, error)) (kernel.Result, error) {
	raw, err := kernel.Canonical(v)
	if err != nil {
		return kernel.Result{}, err
	}
	res := kernel.Result{Version: kernel.ObjectVersion, Scope: v.Scope, Verdict: kernel.Sum(raw), Outcomes: v.Outcomes, Results: v.Results}
	switch v.Scope {
	case "run":
		return r.run(ctx, env, v, res, write)
	case "attempt":
		return r.attempt(ctx, env, v, res)
	}
	return res, kernel.E("commit", kernel.Invalid, nil, "scope %q is neither attempt nor run", v.Scope)
}

// run names the accepted result by its content, or where nothing was written by the
// content of its parts.
func (recorder) run(ctx context.Context, env kernel.Env, v kernel.Verdict, res kernel.Result, write func(content) (string, error)) (kernel.Result, error) {
	parts, err := kernel.Canonical(v.Parts)
	if err != nil {
		return res, err
	}
	res.Commit = kernel.DeriveID(kernel.CommitPrefix, string(v.Run))
	res.Target, res.Content = "record", kernel.SumDomain("content/1", parts)
	if write == nil || v.Candidate.IsZero() {
		return res, nil
	}
	c, err := load(ctx, env.Packs, v)
	if err != nil || len(c.files) == 0 {
		return res, err
	}
	res.Target, err = write(c)
	res.Content = v.Candidate
	return res, err
}

// content is an accepted candidate with what it belongs to.
type content struct {
	run   kernel.RunID
	snap  kernel.Snapshot
	files []kernel.CandidateFile
}

func load(ctx context.Context, p kernel.Packs, v kernel.Verdict) (content, error) {
	c, err := kernel.GetObject[kernel.Candidate](ctx, p, v.Candidate)
	if err != nil {
		return content{}, err
	}
	if c.Snapshot != v.Snapshot {
		return content{}, kernel.E("commit", kernel.Invalid, nil, "the candidate belongs to another snapshot than the run")
	}
	snap, err := kernel.GetObject[kernel.Snapshot](ctx, p, v.Snapshot)
	return content{v.Run, snap, c.Files}, err
}

func (r recorder) attempt(ctx context.Context, env kernel.Env, v kernel.Verdict, res kernel.Result) (kernel.Result, error) {
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
