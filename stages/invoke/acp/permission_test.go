package acp

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"witan/kernel"
	"witan/kernel/policy"
	"witan/stages/invoke/invoketest"
)

var (
	always = [2]string{"always", "allow_always"}
	once   = [2]string{"once", "allow_once"}
	swap   = [2]string{"once_and_switch", "allow_once"}
	reject = [2]string{"reject", "reject_once"}
)

func TestPermissionByPolicy(t *testing.T) {
	for _, tc := range []struct {
		name, kind string
		write      bool
		options    [][2]string
		want, word string
	}{
		{"reading", "read", false, [][2]string{always, once, swap, reject}, "once", "allow"},
		{"order", "search", false, [][2]string{swap, once, reject}, "once_and_switch", "allow"},
		{"editing", "edit", false, [][2]string{always, once, reject}, "reject", "reject"},
		{"running", "execute", false, [][2]string{once, reject}, "reject", "reject"},
		{"unknown kind", "", false, [][2]string{once, reject}, "reject", "reject"},
		{"no way to reject", "edit", false, [][2]string{always, once}, "cancelled", "reject"},
		{"no way to allow once", "read", false, [][2]string{always, reject}, "cancelled", "reject"},
		{"no option", "read", false, nil, "cancelled", "reject"},
		{"writer", "edit", true, [][2]string{always, once, reject}, "once", "allow"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := invoketest.NewWorld(t)
			a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
				p.say(s, p.ask(s, "1", tc.kind, tc.options...))
				return done, nil
			}}, invoketest.Options{})
			if got := w.Good(t, a, w.Request("x", func(tn *kernel.Turn) { tn.Write = tc.write })); got != tc.want {
				t.Errorf("the answer is %q, want %q", got, tc.want)
			}
			recs := w.Notes(kernel.PermissionRec)
			if len(recs) != 1 || recs[0].Body != (kernel.PermissionBody{Asked: "Do 1", Decision: tc.word, By: "policy", Kind: tc.kind}) {
				t.Errorf("%+v", recs)
			}
		})
	}
}

// However an agent shows a command, it is the same command.
func TestCommandsAsTheyAreShown(t *testing.T) {
	for name, tc := range map[string]struct {
		input map[string]any
		asked string
		want  string
	}{
		"a line":         {map[string]any{"command": "git commit -m 'a b'"}, "git commit -m 'a b'", "reject"},
		"words":          {map[string]any{"command": []string{"git", "commit", "-m", "a b"}}, "git commit -m 'a b'", "reject"},
		"a shell":        {map[string]any{"command": []string{"bash", "-lc", "ls && git commit"}}, "bash -lc 'ls && git commit'", "reject"},
		"one quoted":     {map[string]any{"command": []string{"echo", "git commit"}}, "echo 'git commit'", "once"},
		"no words":       {map[string]any{"command": []any{"git", 1, nil}}, "git 1 '<nil>'", "once"},
		"another folder": {map[string]any{"command": "ls", "cwd": "/", "workdir": 7}, "ls", "once"},
	} {
		t.Run(name, func(t *testing.T) {
			w := invoketest.NewWorld(t)
			a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
				p.say(s, p.askFor(s, map[string]any{"toolCallId": "1", "title": "Run", "kind": "execute", "rawInput": tc.input}, once, reject))
				return done, nil
			}}, invoketest.Options{})
			if got := w.Good(t, a, w.Request("x", func(tn *kernel.Turn) { tn.Write = true })); got != tc.want {
				t.Errorf("the answer is %q, want %q", got, tc.want)
			}
			if recs := w.Notes(kernel.PermissionRec); len(recs) != 1 || recs[0].Body.(kernel.PermissionBody).Asked != tc.asked {
				t.Errorf("%+v", recs)
			}
		})
	}
}

// The decider gets the operation with its paths and its folder resolved.
func TestDeciderGetsTheWholeOperation(t *testing.T) {
	w := invoketest.NewWorld(t)
	var got policy.Operation
	a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
		p.say(s, p.askFor(s, map[string]any{"toolCallId": "1", "title": "Run", "kind": "execute", "locations": []any{map[string]any{"path": "a/../b"}},
			"rawInput": map[string]any{"command": "ls", "cwd": "sub"}}, once, reject))
		return done, nil
	}}, invoketest.Options{}, func(c *Config) {
		c.Decide = func(_ context.Context, _ kernel.Env, _ kernel.Turn, op policy.Operation, _ []policy.Option) policy.Decision {
			got = op
			return policy.Decision{}
		}
	})
	w.Good(t, a, w.Request("x"))
	want := policy.Operation{Kind: "execute", Title: "Run", Paths: []string{filepath.Join(w.Workspace, "b")}, Asked: []string{"a/../b"}, Command: "ls", Dir: filepath.Join(w.Workspace, "sub")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A decision that is not on record is not given.
func TestPermissionIsOnRecordFirst(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
		w.RefuseNotes(kernel.E("test", kernel.NoSpace, nil, "full"))
		p.say(s, p.ask(s, "1", "read", once))
		return done, nil
	}}, invoketest.Options{})
	if got := w.Good(t, a, w.Request("x")); got != "cancelled" {
		t.Errorf("%q", got)
	}
}

func TestSameRequestIsOneDecision(t *testing.T) {
	w := invoketest.NewWorld(t)
	decided := 0
	a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
		p.say(s, p.ask(s, "1", "edit", once, reject)+" "+p.ask(s, "1", "edit", once, reject)+" "+p.ask(s, "2", "edit", once, reject))
		return done, nil
	}}, invoketest.Options{}, func(c *Config) {
		c.Decide = func(context.Context, kernel.Env, kernel.Turn, policy.Operation, []policy.Option) policy.Decision {
			decided++
			return policy.Decision{Allow: true, Option: "once", By: "person"}
		}
	})
	if got := w.Good(t, a, w.Request("x")); got != "once once once" {
		t.Errorf("%q", got)
	}
	if recs := w.Notes(kernel.PermissionRec); decided != 2 || len(recs) != 2 || recs[0].Body.(kernel.PermissionBody).By != "person" {
		t.Errorf("%d decisions, %+v", decided, recs)
	}
}

func TestOptionThatWasNotOffered(t *testing.T) {
	w := invoketest.NewWorld(t)
	a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
		p.say(s, p.ask(s, "1", "edit", once, reject))
		return done, nil
	}}, invoketest.Options{}, func(c *Config) {
		c.Decide = func(context.Context, kernel.Env, kernel.Turn, policy.Operation, []policy.Option) policy.Decision {
			return policy.Decision{Allow: true, Option: "forged"}
		}
	})
	if got := w.Good(t, a, w.Request("x")); got != "cancelled" {
		t.Errorf("%q", got)
	}
	if b := w.Notes(kernel.PermissionRec)[0].Body.(kernel.PermissionBody); b.Decision != "reject" {
		t.Errorf("%+v", b)
	}
}

func TestWaitingForAPersonIsNotSilence(t *testing.T) {
	p := peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
		p.say(s, p.ask(s, "1", "edit", once))
		return done, nil
	}}
	timed(t, p, func(w *invoketest.World, took time.Duration, r kernel.Reply, err error) {
		if err != nil || took != 5*time.Hour || w.Text(t, r) != "once" {
			t.Errorf("%s, %v", took, err)
		}
		if n := w.Notices("silent"); n != 0 {
			t.Errorf("%d notices", n)
		}
	}, func(c *Config) {
		c.Decide = func(context.Context, kernel.Env, kernel.Turn, policy.Operation, []policy.Option) policy.Decision {
			time.Sleep(5 * time.Hour)
			return policy.Decision{Allow: true, Option: "once"}
		}
	})
}

// A stop closes an open question, and one that comes later is never put.
func TestStopCancelsQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := invoketest.NewWorld(t)
		asked, answers := make(chan struct{}, 2), make(chan string, 2)
		a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
			answers <- p.ask(s, "1", "edit", once, reject)
			p.cancelled(ctx)
			answers <- p.ask(s, "2", "read", once, reject)
			return done, nil
		}}, invoketest.Options{}, func(c *Config) {
			c.Decide = func(ctx context.Context, _ kernel.Env, _ kernel.Turn, _ policy.Operation, _ []policy.Option) policy.Decision {
				asked <- struct{}{}
				<-ctx.Done()
				return policy.Decision{Allow: true, Option: "once"}
			}
		})
		c := w.Start(t, a, w.Request("x"))
		<-asked
		c.Stop()
		_, err := c.Wait(t)
		invoketest.Failed(t, err, kernel.ClassCancelled, "stopped")
		if one, two := <-answers, <-answers; one != "cancelled" || two != "cancelled" {
			t.Errorf("%q, %q", one, two)
		}
		if len(asked) != 0 {
			t.Error("a question was put after the stop")
		}
		if kept(a) == nil {
			t.Error("an agent that obeyed is not kept")
		}
	})
}

func TestPermissionSaysWhatIsMeant(t *testing.T) {
	w := invoketest.NewWorld(t)
	outside := t.TempDir()
	for link, to := range map[string]string{"out": outside, "dangling": filepath.Join(outside, "not-there")} {
		if err := os.Symlink(to, filepath.Join(w.Workspace, link)); err != nil {
			t.Fatal(err)
		}
	}
	outside, err := filepath.EvalSymlinks(outside)
	if err != nil {
		t.Fatal(err)
	}
	step := func(p map[string]any) invoketest.Step { return invoketest.Step{"permission": p} }
	a := open(t, w, invoketest.Steps(
		step(map[string]any{"title": "a", "kind": "edit", "path": "out/deep/file"}),
		step(map[string]any{"title": "b", "kind": "edit", "path": "dangling"}),
		step(map[string]any{"title": "c", "kind": "edit", "path": "new/file"}),
		step(map[string]any{"title": "d", "kind": "execute", "command": "rm -rf x", "path": "x"}),
	), invoketest.Options{})
	t.Cleanup(func() { _ = a.Close() })
	got := w.Good(t, a, w.Request("x"))
	if strings.Count(got, `"optionId":"no"`) != 4 {
		t.Error(got)
	}
	want := [][2]string{{"out/deep/file", filepath.Join(outside, "deep/file")}, {"dangling", filepath.Join(outside, "not-there")},
		{"new/file", filepath.Join(w.Workspace, "new/file")}, {"rm -rf x", filepath.Join(w.Workspace, "x")}}
	for i, n := range w.Notes(kernel.PermissionRec) {
		if b := n.Body.(kernel.PermissionBody); b.Asked != want[i][0] || b.Resolved != want[i][1] {
			t.Errorf("%+v, want %q", b, want[i])
		}
	}
}
