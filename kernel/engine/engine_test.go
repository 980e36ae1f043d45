package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"witan/kernel"
	"witan/kernel/engine"
	"witan/kernel/kerneltest"
	"witan/kernel/plans"
)

// stage is a scripted node.
type stage[In, Out any] struct {
	id    string
	class kernel.Class
	run   func(ctx context.Context, env kernel.Env, in In) (Out, error)
}

func (s stage[In, Out]) Spec() kernel.Spec { return kernel.Spec{ID: s.id, Version: 1, Class: s.class} }

func (s stage[In, Out]) Run(ctx context.Context, env kernel.Env, in In) (Out, error) {
	return s.run(ctx, env, in)
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }
func (clock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// world is an engine on in-memory stores with an invoke stage of the test's own.
type world struct {
	t      *testing.T
	mem    *kerneltest.Mem
	ledger kernel.Ledger
	bus    kernel.Bus
	view   *kerneltest.Bus
	e      *engine.Engine
	invoke func(ctx context.Context, env kernel.Env, t kernel.Turn) (string, error)
	mu     sync.Mutex
	calls  []string // agents invoked
	ids    int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, mem: kerneltest.NewMem(), view: kerneltest.NewBus()}
	w.ledger, w.bus = w.mem, kerneltest.NewBus()
	w.invoke = func(_ context.Context, _ kernel.Env, t kernel.Turn) (string, error) {
		return "from " + string(t.Agent), nil
	}
	return w
}

func (w *world) registry() kernel.Registry {
	get := func(env kernel.Env, d kernel.Digest) kernel.Turn {
		t, err := kernel.GetObject[kernel.Turn](context.Background(), env.Packs, d)
		if err != nil {
			w.t.Error(err)
		}
		return t
	}
	canon := func(v any) kernel.Digest { b, _ := kernel.Canonical(v); return kernel.Sum(b) }
	return kernel.Registry{}.With(
		kernel.Erase(stage[kernel.Task, kernel.Snapshot]{"freeze/x", kernel.Pure, func(_ context.Context, _ kernel.Env, t kernel.Task) (kernel.Snapshot, error) {
			return kernel.Snapshot{Version: 1, Text: t.Text}, nil
		}}),
		kernel.Erase(stage[kernel.Turn, kernel.Delivery]{"deliver/x", kernel.Pure, func(ctx context.Context, env kernel.Env, t kernel.Turn) (kernel.Delivery, error) {
			_, err := env.Packs.Get(ctx, t.Snapshot)
			return kernel.Delivery{Version: 1, Turn: canon(t)}, err
		}}),
		kernel.Erase(stage[kernel.Delivery, kernel.Reply]{"invoke/x", kernel.Once, func(ctx context.Context, env kernel.Env, d kernel.Delivery) (kernel.Reply, error) {
			t := get(env, d.Turn)
			w.mu.Lock()
			w.calls = append(w.calls, string(t.Agent))
			w.mu.Unlock()
			if err := env.Note(ctx, kernel.DeliverySent, kernel.DeliverySentBody{Agent: t.Agent}); err != nil {
				return kernel.Reply{}, err
			}
			text, err := w.invoke(ctx, env, t)
			r := kernel.Reply{Version: 1, Turn: d.Turn}
			if text != "" {
				r.Text, _ = env.Packs.Put(ctx, "text", []byte(text))
			}
			var f *kernel.Failure
			if errors.As(err, &f) && text != "" {
				f.Partial = r
			}
			return r, err
		}}),
		kernel.Erase(stage[kernel.Reply, kernel.Claim]{"receipt/x", kernel.Pure, func(_ context.Context, _ kernel.Env, r kernel.Reply) (kernel.Claim, error) {
			return kernel.Claim{Version: 1, Turn: r.Turn, Text: r.Text}, nil
		}}),
		kernel.Erase(stage[kernel.Claim, kernel.Verdict]{"verify/x", kernel.Pure, func(_ context.Context, _ kernel.Env, c kernel.Claim) (kernel.Verdict, error) {
			return kernel.Verdict{Version: 1, Scope: "attempt", Turn: c.Turn, Text: c.Text, Status: "completed",
				Outcomes: []kernel.Outcome{{Type: "finding", ID: "fnd_1", Severity: "low", Title: "t"}, {Type: "evidence", ID: "evd_1"}}}, nil
		}}),
		kernel.Erase(stage[kernel.Verdict, kernel.Result]{"commit/x", kernel.Keyed, func(_ context.Context, env kernel.Env, v kernel.Verdict) (kernel.Result, error) {
			if v.Scope == "run" {
				return kernel.Result{Version: 1, Scope: "run", Commit: "cmt_1"}, nil
			}
			t := get(env, v.Turn)
			return kernel.Result{Version: 1, Scope: "attempt", Outcomes: v.Outcomes, Message: &kernel.Message{ID: kernel.MessageID("msg_" + string(t.Agent)), Role: "agent",
				Agent: t.Agent, Text: v.Text, Status: v.Status, TurnSeq: t.TurnSeq}}, nil
		}}))
}

// open starts an engine on the world's stores, as a new host would.
func (w *world) open() *engine.Engine {
	w.t.Helper()
	w.e = engine.New(engine.Deps{Ledger: w.ledger, Packs: w.mem, Conversations: w.mem, Streams: w.mem, Control: w.bus, View: w.view,
		Registry: w.registry(), Plans: plans.List{plans.Direct{}, plans.Batch{}}, Clock: clock{}, Log: slog.New(slog.DiscardHandler), Instance: "host_1",
		NewID: func(p string) (string, error) { w.ids++; return kernel.DeriveID(p, fmt.Sprint(w.ids)), nil }})
	if _, err := w.e.Start(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	return w.e
}

func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = w.e.Close(ctx)
	_, _ = w.bus.Close(ctx)
	_, _ = w.view.Close(ctx)
}

func submission(key string, agents ...kernel.AgentID) engine.Submission {
	st := map[string]kernel.StageRef{}
	for _, k := range []string{"freeze", "deliver", "invoke", "receipt", "verify", "commit"} {
		st[k] = kernel.StageRef{Use: k + "/x", Class: "pure"}
	}
	return engine.Submission{Text: "task", Key: key, Body: kernel.CreatedBody{Agents: agents, Plan: "batch", Permission: "read-only", Concurrency: 4,
		Attempts: 512, Stages: st, Writable: []kernel.AgentID{}}}
}

func (w *world) submit(sub engine.Submission) kernel.RunID {
	w.t.Helper()
	run, _, err := w.e.Submit(context.Background(), sub)
	if err != nil {
		w.t.Fatal(err)
	}
	return run
}

// watch follows a run to its end.
func (w *world) watch(run kernel.RunID) (lines []map[string]any) {
	w.t.Helper()
	err := w.e.Watch(context.Background(), run, 1, func(l json.RawMessage) error {
		var m map[string]any
		if err := json.Unmarshal(l, &m); err != nil {
			w.t.Fatalf("%s: %v", l, err)
		}
		if _, err := kernel.CanonicalJSON(l); err != nil { // no key twice
			w.t.Fatalf("%s: %v", l, err)
		}
		lines = append(lines, m)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for i, m := range lines {
		if m["seq"] != float64(i+1) {
			w.t.Fatalf("line %d has seq %v", i+1, m["seq"])
		}
	}
	return lines
}

func (w *world) want(run kernel.RunID, status kernel.RunStatus, reason string) {
	w.t.Helper()
	s, err := w.ledger.Summary(context.Background(), run)
	if err != nil || s.Status != status || s.Reason != reason {
		w.t.Fatalf("%s %s, %v; want %s %s", s.Status, s.Reason, err, status, reason)
	}
}

func TestBatchEndToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open()
		defer w.close()
		run := w.submit(submission("", "a", "b"))
		var text, order string
		for _, m := range w.watch(run) {
			switch m["type"] {
			case "text":
				text += m["delta"].(string)
			case "message":
				order += m["agent"].(string)
			}
		}
		w.want(run, kernel.RunCompleted, "")
		if order != "ab" || len(text) != len("from afrom b") {
			t.Fatalf("messages %q, text %q", order, text)
		}
	})
}

func TestSameKeySameRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open()
		defer w.close()
		one := w.submit(submission("k", "a"))
		two := w.submit(submission("k", "a"))
		w.watch(one)
		other := submission("k", "a")
		other.Text = "another"
		if _, _, err := w.e.Submit(context.Background(), other); !kernel.IsKind(err, kernel.Invalid) || one != two {
			t.Fatalf("%s %s %v", one, two, err)
		}
	})
}

func TestFailingAgentIsRetriedWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := 0
		w.invoke = func(context.Context, kernel.Env, kernel.Turn) (string, error) {
			if n++; n < 4 {
				return "", &kernel.Failure{Class: kernel.ClassNetwork, Reason: "refused"}
			}
			return "at last", nil
		}
		w.open()
		defer w.close()
		t0 := time.Now()
		run := w.submit(submission("", "a"))
		w.watch(run)
		w.want(run, kernel.RunCompleted, "")
		if d := time.Since(t0); d < 1750*time.Millisecond || d > 3*time.Second {
			t.Fatalf("took %s, want 250 ms + 500 ms + 1 s", d)
		}
	})
}

func TestStopKeepsTextAndRejectsLateSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		started := make(chan struct{})
		w.invoke = func(ctx context.Context, env kernel.Env, _ kernel.Turn) (string, error) {
			env.Emit(kernel.Event{Type: "text", Text: "half"})
			close(started)
			<-ctx.Done()
			return "half and more", nil // an agent that ignores the stop
		}
		w.open()
		defer w.close()
		run := w.submit(submission("", "a"))
		<-started
		if err := w.e.Stop(context.Background(), run, "", "person"); err != nil {
			t.Fatal(err)
		}
		lines := w.watch(run)
		w.want(run, kernel.RunStopped, "stopped_by_person")
		for _, m := range lines {
			if m["type"] == "attempt.finished" && m["status"] != "stopped" {
				t.Fatalf("%v", m)
			}
		}
	})
}

func TestHostDiesAndTheNextOneResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		said := make(chan struct{})
		w.invoke = func(ctx context.Context, env kernel.Env, tn kernel.Turn) (string, error) {
			if tn.Agent == "a" {
				return "done", nil
			}
			env.Emit(kernel.Event{Type: "text", Text: "partial <witan-rec"})
			close(said)
			<-ctx.Done()
			return "", ctx.Err()
		}
		dead := w.open()
		run := w.submit(submission("", "a", "b"))
		<-said
		synctest.Wait()
		time.Sleep(time.Second) // on the fake clock: the text is durable by now
		synctest.Wait()
		w.invoke = func(context.Context, kernel.Env, kernel.Turn) (string, error) { return "whole", nil }
		oldBus, oldView := w.bus, w.view
		w.bus, w.view = kerneltest.NewBus(), kerneltest.NewBus()
		w.open() // recovers
		w.want(run, kernel.RunInterruptedSt, "host_gone")
		texts := w.messages()
		if texts["msg_a"] != "done" || texts["msg_b"] != "partial " {
			t.Fatalf("%q", texts)
		}
		if err := w.e.Reopen(context.Background(), run, kernel.ResumedBody{By: "resume"}); err != nil {
			t.Fatal(err)
		}
		w.watch(run)
		w.want(run, kernel.RunCompleted, "")
		w.mu.Lock()
		if calls := strings.Join(w.calls, ""); strings.Count(calls, "a") != 1 || strings.Count(calls, "b") != 2 {
			t.Errorf("invoked %s", calls)
		}
		w.mu.Unlock()
		w.close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = dead.Close(ctx) // its driver finds that the head has moved
		_, _ = oldBus.Close(ctx)
		_, _ = oldView.Close(ctx)
	})
}

// messages are the texts that the run's last message records name.
func (w *world) messages() map[string]string {
	out := map[string]string{}
	for s := range w.mem.Summaries(context.Background()) {
		for r, err := range w.mem.Read(context.Background(), s.Run, 1) {
			if err != nil {
				w.t.Fatal(err)
			}
			var b kernel.MessageBody
			if r.Kind == kernel.MessageRec && json.Unmarshal(r.Body, &b) == nil {
				text, _ := w.mem.Get(context.Background(), b.Text)
				out[string(b.Message)] = string(text)
			}
		}
	}
	return out
}

func TestChangedSnapshotStartsNoAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.bus = &flipping{Bus: w.bus, mem: w.mem, w: w}
		w.open()
		defer w.close()
		run := w.submit(submission("", "a", "b"))
		w.watch(run)
		w.want(run, kernel.RunFailed, kernel.ReasonSnapshotChanged)
		if len(w.calls) != 0 {
			t.Fatalf("invoked %v", w.calls)
		}
	})
}

// flipping changes a byte of the snapshot as soon as it is frozen.
type flipping struct {
	kernel.Bus
	mem *kerneltest.Mem
	w   *world
}

func (f *flipping) Publish(ctx context.Context, s kernel.Signal) error {
	if s.Topic == engine.TopicResult {
		var end kernel.StageEndBody
		if json.Unmarshal(s.Body, &end) == nil && end.Impl == "freeze/x" {
			f.mem.Flip(end.Out)
		}
	}
	return f.Bus.Publish(ctx, s)
}

// refusing fails appends from the n-th on.
type refusing struct {
	kernel.Ledger
	mu   sync.Mutex
	left int
}

func (r *refusing) Append(ctx context.Context, b kernel.Batch) (kernel.Head, []kernel.Record, error) {
	r.mu.Lock()
	r.left--
	full := r.left < 0
	r.mu.Unlock()
	if full {
		return kernel.Head{}, nil, kernel.E("test", kernel.NoSpace, nil, "the disk is full")
	}
	return r.Ledger.Append(ctx, b)
}

// TestFullDiskAtEveryAppend: wherever the disk fills up, the run stops at a
// checkpoint, what is on record holds, and a host with space completes it.
func TestFullDiskAtEveryAppend(t *testing.T) {
	for n := 1; ; n++ {
		done := false
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r := &refusing{Ledger: w.mem, left: n}
			w.ledger = r
			w.open()
			run := w.submit(submission("", "a", "b"))
			err := w.e.Watch(context.Background(), run, 1, func(json.RawMessage) error { return nil })
			s, serr := w.mem.Summary(context.Background(), run)
			if serr != nil {
				t.Fatal(serr)
			}
			done = s.Status == kernel.RunCompleted
			parked := err == nil && !w.e.Active(run) // before anybody looked
			if !done && !parked && !kernel.IsKind(err, kernel.NoSpace) {
				t.Fatalf("append %d: %v, status %s", n, err, s.Status)
			}
			w.close()
			w.ledger, w.bus, w.view = w.mem, kerneltest.NewBus(), kerneltest.NewBus()
			w.open()
			defer w.close()
			if !done {
				if err := w.e.Reopen(context.Background(), run, kernel.ResumedBody{By: "resume"}); err != nil {
					t.Fatalf("append %d: %v", n, err)
				}
				w.watch(run)
			}
			w.want(run, kernel.RunCompleted, "")
			if m := w.messages(); m["msg_a"] != "from a" || m["msg_b"] != "from b" {
				t.Fatalf("append %d: %q", n, m)
			}
		})
		if done {
			if n < 8 {
				t.Fatalf("a run of %d appends", n)
			}
			return
		}
	}
}
