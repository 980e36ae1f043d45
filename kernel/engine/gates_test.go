package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"witan/kernel"
)

func question(key, request string) kernel.Question {
	return kernel.Question{Kind: kernel.GatePermission, Key: kernel.Sum([]byte(key)), Request: request, Summary: key, Options: kernel.PermissionOptions}
}

// asks lets an agent ask all questions at once; what it got becomes its text.
func asks(qs ...kernel.Question) func(context.Context, kernel.Env, kernel.Turn) (string, error) {
	return func(ctx context.Context, env kernel.Env, _ kernel.Turn) (string, error) {
		got := make([]string, len(qs))
		var wg sync.WaitGroup
		for i, q := range qs {
			wg.Go(func() {
				a, err := env.Ask(ctx, q)
				if err != nil {
					a.Option = "withdrawn"
				}
				got[i] = q.Request + "=" + a.Option + ";"
			})
		}
		wg.Wait()
		return strings.Join(got, ""), ctx.Err()
	}
}

func (w *world) gates() []kernel.GateID {
	w.t.Helper()
	all, err := w.e.Gates(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	var out []kernel.GateID
	for _, g := range all {
		out = append(out, g.Gate.Gate)
	}
	return out
}

func (w *world) decide(g kernel.GateID, option string) error {
	_, err := w.e.Decide(context.Background(), kernel.DecidedBody{By: "person", Gate: g, Option: option})
	return err
}

func TestGatesOfARunningTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		// The same request twice is one gate; an equal operation with an id of its own another.
		w.invoke = asks(question("rm x", "r1"), question("rm x", "r1"), question("rm x", "r2"), question("ls", "r3"))
		w.open()
		defer w.close()
		run := w.submit(submission("", "a"))
		synctest.Wait()
		g := w.gates()
		if len(g) != 3 {
			t.Fatalf("%d gates", len(g))
		}
		if err := w.decide(g[0], "perhaps"); !kernel.IsKind(err, kernel.Invalid) {
			t.Errorf("an option that is not offered: %v", err)
		}
		for _, id := range g {
			if err := w.decide(id, "allow-once"); err != nil {
				t.Fatal(err)
			}
			if err := w.decide(id, "allow-once"); err != nil {
				t.Errorf("the same answer again: %v", err)
			}
			if err := w.decide(id, "reject"); !kernel.IsKind(err, kernel.Conflict) {
				t.Errorf("another answer: %v", err)
			}
		}
		w.watch(run)
		w.want(run, kernel.RunCompleted, "")
		if got := w.messages()["msg_a"]; got != "r1=allow-once;r1=allow-once;r2=allow-once;r3=allow-once;" {
			t.Errorf("the agent was told %q", got)
		}
		if err := w.decide(g[0], "reject"); !kernel.IsKind(err, kernel.Conflict) {
			t.Errorf("after the run: %v", err)
		}
		for _, id := range []kernel.GateID{"", "gate_x", "gate_0000000000000000-00000000000000000000"} {
			if err := w.decide(id, "reject"); !kernel.IsKind(err, kernel.NotFound) {
				t.Errorf("gate %q: %v", id, err)
			}
		}
	})
}

// Allowed for the run is not asked about again.
func TestAllowedForTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.invoke = func(ctx context.Context, env kernel.Env, tn kernel.Turn) (string, error) {
			out := ""
			for _, r := range []string{"r1", "r2", "r3"} {
				a, err := env.Ask(ctx, question("go test", r))
				if err != nil {
					return "", err
				}
				out += a.Option + ";"
			}
			return out, nil
		}
		w.open()
		defer w.close()
		run := w.submit(submission("", "a"))
		synctest.Wait()
		if err := w.decide(w.gates()[0], "allow-run"); err != nil {
			t.Fatal(err)
		}
		w.watch(run)
		w.want(run, kernel.RunCompleted, "")
		if got := w.messages()["msg_a"]; got != "allow-run;allow-run;allow-run;" {
			t.Errorf("%q", got)
		}
	})
}

// What was allowed for the run can be taken back: then it is asked about again.
func TestRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		next := make(chan bool)
		w.invoke = func(ctx context.Context, env kernel.Env, tn kernel.Turn) (string, error) {
			if _, err := env.Ask(ctx, question("go test", "r1")); err != nil {
				return "", err
			}
			<-next
			a, err := env.Ask(ctx, question("go test", "r2"))
			return a.Option, err
		}
		w.open()
		defer w.close()
		run := w.submit(submission("", "a"))
		synctest.Wait()
		g := w.gates()[0]
		if err := w.decide(g, "revoke"); !kernel.IsKind(err, kernel.Invalid) {
			t.Errorf("revoked before it was allowed: %v", err)
		}
		if err := w.decide(g, "allow-run"); err != nil {
			t.Fatal(err)
		}
		grants, err := w.e.Grants(context.Background())
		if err != nil || len(grants) != 1 || grants[0].Gate.Gate != g {
			t.Fatalf("%v, %v", grants, err)
		}
		if err := w.decide(g, "revoke"); err != nil {
			t.Fatal(err)
		}
		close(next)
		synctest.Wait()
		if open := w.gates(); len(open) != 1 || open[0] == g {
			t.Fatalf("%v", open)
		}
		if err := w.decide(w.gates()[0], "reject"); err != nil {
			t.Fatal(err)
		}
		w.watch(run)
		if got := w.messages()["msg_a"]; got != "reject" {
			t.Errorf("%q", got)
		}
	})
}

// A stop withdraws what is open: nothing is allowed, and no gate waits.
func TestStopWithdrawsQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var told string
		w.invoke = func(ctx context.Context, env kernel.Env, tn kernel.Turn) (string, error) {
			a, err := env.Ask(ctx, question("rm x", "r1"))
			told = a.Option
			return "", err
		}
		w.open()
		defer w.close()
		run := w.submit(submission("", "a"))
		synctest.Wait()
		g := w.gates()
		if err := w.e.Stop(context.Background(), run, "", "person"); err != nil {
			t.Fatal(err)
		}
		w.watch(run)
		w.want(run, kernel.RunStopped, "stopped_by_person")
		if told == "allow-once" || len(w.gates()) != 0 {
			t.Errorf("told %q, %d gates wait", told, len(w.gates()))
		}
		if err := w.decide(g[0], "allow-once"); !kernel.IsKind(err, kernel.Conflict) {
			t.Errorf("a late answer: %v", err)
		}
	})
}

// What running turns have used counts: past a hard budget the run ends now.
func TestBudgetInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := int64(60)
		w.invoke = func(ctx context.Context, env kernel.Env, tn kernel.Turn) (string, error) {
			env.Emit(kernel.Event{Type: "text", Text: "begun"})
			env.Emit(kernel.Event{Type: "usage", Usage: &kernel.Usage{Input: &n}})
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		w.open()
		defer w.close()
		s := submission("", "a", "b")
		s.Body.Budget = map[string]kernel.Limit{"input_tokens": {Limit: 100}}
		run := w.submit(s)
		lines := w.watch(run)
		w.want(run, kernel.RunBudgetExhausted, "budget_input_tokens")
		for _, m := range lines {
			if m["type"] == "attempt.finished" && (m["status"] != "stopped" || m["class"] != "budget") {
				t.Errorf("%v", m)
			}
		}
	})
}
