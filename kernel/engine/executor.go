package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode"

	"witan/kernel"
	"witan/kernel/marker"
)

type key struct {
	run kernel.RunID
	seq uint64
}

// executor runs stages on request. A request is answered once and remembered
// until the driver has journaled the answer.
type executor struct {
	e      *Engine
	wg     sync.WaitGroup
	mu     sync.Mutex
	jobs   map[key]*job              // guarded by mu
	closed bool                      // guarded by mu
	memo   map[memoKey]kernel.Digest // outputs of pure stages; guarded by mu
}

type job struct {
	cancel context.CancelCauseFunc
	result json.RawMessage // nil while running
}

type memoKey struct {
	impl    string
	version int
	options kernel.Digest
	in      kernel.Digest
}

const maxMemo = 4096

func newExecutor(e *Engine) *executor {
	return &executor{e: e, jobs: map[key]*job{}, memo: map[memoKey]kernel.Digest{}}
}

// onRequest starts the stage, or repeats the answer.
func (x *executor) onRequest(ctx context.Context, s kernel.Signal) {
	k := key{s.Run, s.Seq}
	x.mu.Lock()
	j := x.jobs[k]
	if j != nil {
		res := j.result
		x.mu.Unlock()
		if res != nil {
			x.answer(k, res)
		}
		return
	}
	if x.closed || x.e.driver(s.Run) == nil || x.e.ctx.Err() != nil {
		x.mu.Unlock()
		return
	}
	jctx, cancel := context.WithCancelCause(x.e.ctx)
	j = &job{cancel: cancel}
	x.jobs[k] = j
	x.wg.Add(1) // under mu: wait does not begin in between
	x.mu.Unlock()
	go func() {
		defer x.wg.Done()
		defer cancel(nil)
		b, ok := x.run(jctx, k)
		x.mu.Lock()
		if ok {
			j.result = b
		} else {
			delete(x.jobs, k)
		}
		x.mu.Unlock()
		if ok {
			x.answer(k, b)
		}
	}()
}

func (x *executor) answer(k key, b json.RawMessage) {
	if err := x.e.Control.Publish(x.e.ctx, kernel.Signal{Topic: TopicResult, Run: k.run, Seq: k.seq, Body: b}); err != nil {
		x.e.Log.Debug("result not sent", "run", k.run, "err", err)
	}
}

func (x *executor) onCancel(ctx context.Context, s kernel.Signal) {
	cause := errStopped
	switch string(s.Body) {
	case `"interrupted"`:
		cause = errHostClosing
	case `"gate"`:
		cause = errGate
	case `"budget"`:
		cause = errBudget
	}
	x.cancel(key{s.Run, s.Seq}, cause)
}

func (x *executor) cancel(k key, cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if j := x.jobs[k]; j != nil {
		j.cancel(cause)
	}
}

// release forgets an answer that was journaled.
func (x *executor) release(k key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if j := x.jobs[k]; j != nil && j.result != nil {
		delete(x.jobs, k)
	}
}

// forget drops everything of a run that ended; what still runs is cancelled.
func (x *executor) forget(run kernel.RunID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, j := range x.jobs {
		if k.run == run {
			j.cancel(errHostClosing)
			if j.result != nil {
				delete(x.jobs, k)
			}
		}
	}
}

// wait lets no further stage start and waits for those that run.
func (x *executor) wait() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.wg.Wait()
}

// request is what the ledger says about a job.
type request struct {
	rec     kernel.Record
	body    kernel.StageStartedBody
	ref     kernel.StageRef
	created kernel.CreatedBody
}

// lookup re-reads the ledger: a signal is only a hint.
func (x *executor) lookup(ctx context.Context, k key) (request, error) {
	var q request
	for r, err := range x.e.Ledger.Read(ctx, k.run, 1) {
		if err != nil {
			return q, err
		}
		if err := json.Unmarshal(r.Body, &q.created); err != nil {
			return q, err
		}
		break
	}
	for r, err := range x.e.Ledger.Read(ctx, k.run, k.seq) {
		if err != nil {
			return q, err
		}
		if r.Kind != kernel.StageStarted || r.Seq != k.seq {
			return q, kernel.E("engine.lookup", kernel.Invalid, nil, "record %d of %s starts no stage", k.seq, k.run)
		}
		q.rec = r
		q.ref = q.created.Stages[r.Stage]
		err = json.Unmarshal(r.Body, &q.body)
		if q.body.Impl != q.ref.Use { // the plan put another one in its place, with its defaults
			q.ref = kernel.StageRef{Use: q.body.Impl}
		}
		return q, err
	}
	return q, kernel.E("engine.lookup", kernel.NotFound, nil, "run %s has no record %d", k.run, k.seq)
}

// run executes one request and gives the body of its end record. It reports
// false when there is nothing to answer.
func (x *executor) run(ctx context.Context, k key) (json.RawMessage, bool) {
	q, err := x.lookup(ctx, k)
	if err != nil {
		x.e.Log.Debug("request dropped", "run", k.run, "seq", k.seq, "err", err)
		return nil, false
	}
	t0 := x.e.Clock.Now()
	end := kernel.StageEndBody{Impl: q.body.Impl, In: q.body.In, Version: q.body.Version, Started: k.seq}
	out, err := x.stage(ctx, q)
	if err != nil {
		x.failure(ctx, q, err, &end)
	} else {
		end.Out = out
		switch q.rec.Stage {
		case "invoke":
			err = x.reply(ctx, q.created.Plan, out, &end)
		case "deliver":
			err = x.delivery(ctx, out, &end)
		case "verify":
			err = x.verdict(ctx, out, &end)
		}
		if err != nil {
			x.failure(ctx, q, err, &end)
		}
	}
	end.Ms = since(t0, x.e.Clock.Now())
	b, err := kernel.Canonical(end)
	if err != nil {
		x.e.Log.Error("result not encodable", "run", k.run, "err", err)
		return nil, false
	}
	return b, true
}

// stage runs the node and stores its output. A panic is an internal error of
// this one stage.
func (x *executor) stage(ctx context.Context, q request) (d kernel.Digest, err error) {
	defer func() {
		if p := recover(); p != nil {
			x.e.Log.Error("stage panicked", "stage", q.body.Impl, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = kernel.E("engine.stage", kernel.Internal, nil, "stage %s panicked", q.body.Impl)
		}
	}()
	node, ok := x.e.Registry.Lookup(q.body.Impl)
	if !ok {
		return d, &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "unknown_stage", Text: fmt.Sprintf("stage %q is not in this version", q.body.Impl)}
	}
	mk := memoKey{q.body.Impl, q.body.Version, kernel.Sum(q.ref.Options), q.body.In}
	if node.Spec().Class == kernel.Pure {
		x.mu.Lock()
		d, ok = x.memo[mk]
		x.mu.Unlock()
		if ok {
			return d, nil
		}
	}
	in, err := x.e.Packs.Get(ctx, q.body.In)
	if err != nil {
		return d, err
	}
	env, done := x.env(ctx, q)
	out, err := node.RunJSON(ctx, env, in)
	done()
	if err != nil {
		return d, err
	}
	if d, err = x.e.Packs.Put(context.WithoutCancel(ctx), q.rec.Stage+".out", out); err != nil {
		return d, err
	}
	if node.Spec().Class == kernel.Pure {
		x.mu.Lock()
		if len(x.memo) >= maxMemo {
			clear(x.memo)
		}
		x.memo[mk] = d
		x.mu.Unlock()
	}
	return d, nil
}

// env is what the stage may touch. done flushes what it emitted.
func (x *executor) env(ctx context.Context, q request) (kernel.Env, func()) {
	env := kernel.Env{Run: q.rec.Run, Attempt: q.rec.Attempt, Now: x.e.Clock.Now, Packs: x.e.Packs, Options: q.ref.Options,
		Log:  x.e.Log.With("run", q.rec.Run, "attempt", q.rec.Attempt, "stage", q.body.Impl),
		Emit: func(kernel.Event) {},
		Note: func(ctx context.Context, kind kernel.RecordKind, body any) error {
			return x.e.note(ctx, q.rec, kind, body)
		}}
	d := x.e.driver(q.rec.Run)
	if d == nil || q.rec.Stage != "invoke" {
		return env, func() {}
	}
	st := newStream(x.e, d, q.rec.Attempt)
	env.Emit = st.emit
	env.Ask = func(ctx context.Context, question kernel.Question) (kernel.Answer, error) {
		return d.question(ctx, q.rec.Attempt, question)
	}
	return env, st.close
}

func (e *Engine) note(ctx context.Context, r kernel.Record, kind kernel.RecordKind, body any) error {
	d := e.driver(r.Run)
	m := noteMsg{attempt: r.Attempt, stage: "", kind: kind, body: body, reply: make(chan error, 1)}
	if d == nil || !d.send(ctx, m) {
		return kernel.E("engine.note", kernel.Cancelled, context.Cause(ctx), "the run is over")
	}
	select {
	case err := <-m.reply:
		return err
	case <-d.done:
		return kernel.E("engine.note", kernel.Cancelled, nil, "the run is over")
	}
}

// reply reads the invoke stage's output for what its end record shows.
func (x *executor) reply(ctx context.Context, plan string, out kernel.Digest, end *kernel.StageEndBody) error {
	ctx = context.WithoutCancel(ctx)
	r, err := kernel.GetObject[kernel.Reply](ctx, x.e.Packs, out)
	if err != nil {
		return err
	}
	end.Usage, end.Candidate, end.Tools = &r.Usage, r.Candidate, len(r.Tools)+r.MoreTool
	if r.Text.IsZero() {
		return nil
	}
	raw, err := x.e.Packs.Get(ctx, r.Text)
	if err != nil {
		return err
	}
	if vis := marker.Visible(string(raw)); vis != "" {
		end.Text, err = x.e.Packs.Put(ctx, "text", []byte(vis))
		if plan == "discuss" {
			end.Norm = normal(vis)
		}
	}
	return err
}

// normal names a text but for case, space and signs: two turns that say the same
// have the same one.
func normal(text string) kernel.Digest {
	keep := func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}
	return kernel.SumDomain("norm/1", []byte(strings.Map(keep, text)))
}

// delivery lets the end record of a delivery show what is sent.
func (x *executor) delivery(ctx context.Context, out kernel.Digest, end *kernel.StageEndBody) error {
	d, err := kernel.GetObject[kernel.Delivery](context.WithoutCancel(ctx), x.e.Packs, out)
	end.Bytes = d.Bytes
	return err
}

// verdict lets the end record of a verification show that it did not pass.
func (x *executor) verdict(ctx context.Context, out kernel.Digest, end *kernel.StageEndBody) error {
	v, err := kernel.GetObject[kernel.Verdict](context.WithoutCancel(ctx), x.e.Packs, out)
	if err == nil && v.Status != "completed" {
		end.Status = v.Status
	}
	return err
}

// failure fills the end record of a stage that did not do it.
func (x *executor) failure(ctx context.Context, q request, err error, end *kernel.StageEndBody) {
	var f *kernel.Failure
	switch {
	case errors.As(err, &f):
		end.Class, end.Reason, end.Status, end.Why = f.Class, f.Reason, f.Status, clip(f.Text, 600)
		end.Effects, end.RetryAfter = f.Effects, int64(f.RetryAfter/time.Millisecond)
		x.partial(ctx, q.created.Plan, f, end)
	case kernel.IsKind(err, kernel.Corrupt):
		end.Class, end.Reason, end.Why = kernel.ClassExecution, kernel.ReasonSnapshotChanged, clip(err.Error(), 600)
	default:
		end.Class, end.Reason, end.Why = kernel.ClassExecution, reasonOf(err), clip(err.Error(), 600)
	}
	switch context.Cause(ctx) {
	case errGate:
		end.Class, end.Reason, end.Status = kernel.ClassPermission, kernel.ReasonGateWaits, "interrupted"
	case errBudget:
		end.Class, end.Reason, end.Status = kernel.ClassBudget, "budget_exhausted", "stopped"
	case errStopped:
		end.Class, end.Reason, end.Status = kernel.ClassCancelled, "stopped_by_person", "stopped"
	case errHostClosing:
		end.Class, end.Reason, end.Status = kernel.ClassCancelled, "host_gone", "interrupted"
	}
	x.e.Log.Info("stage failed", "run", q.rec.Run, "attempt", q.rec.Attempt, "stage", q.body.Impl, "class", end.Class, "reason", end.Reason)
}

func reasonOf(err error) string {
	switch k := kernel.KindOf(err); k {
	case kernel.Internal:
		return "internal_error"
	case kernel.NoSpace:
		return "no_space"
	default:
		return "stage_" + snake(k.String())
	}
}

// partial keeps the reply that had arrived before the failure.
func (x *executor) partial(ctx context.Context, plan string, f *kernel.Failure, end *kernel.StageEndBody) {
	r, ok := f.Partial.(kernel.Reply)
	if !ok {
		return
	}
	ctx = context.WithoutCancel(ctx)
	d, err := kernel.PutObject(ctx, x.e.Packs, "invoke.out", r)
	if err == nil {
		end.Out = d
		err = x.reply(ctx, plan, d, end)
	}
	if err != nil {
		x.e.Log.Error("partial reply not kept", "err", err)
	}
}
