package verify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/verify"
)

// command runs verify/command and checks what holds of every verdict.
func command(t *testing.T, w *world, options string, cs ...kernel.ClaimText) kernel.Verdict {
	t.Helper()
	v, err := verify.Command(w.shell, w.scratch).Run(context.Background(), w.env(options), w.claim(cs...))
	if err != nil {
		t.Fatal(err)
	}
	w.clean()
	known := map[kernel.OutcomeID]bool{}
	for _, o := range v.Outcomes {
		known[o.ID] = true
	}
	for _, r := range v.Results {
		for _, id := range r.Evidence {
			if !known[id] {
				t.Errorf("%+v names evidence that is not there", r)
			}
		}
		if r.Verdict == verify.Verified && (len(r.Evidence) == 0 || r.Reason != "") {
			t.Errorf("verified without evidence: %+v", r)
		}
	}
	return v
}

func options(run ...string) string {
	b, err := json.Marshal(map[string]any{"run": run})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestClaims(t *testing.T) {
	timeout := func(line string) *kernel.CommandResult {
		switch line {
		case "slow":
			return &kernel.CommandResult{Exit: -1, TimedOut: true}
		case "killed":
			return &kernel.CommandResult{Exit: -1}
		}
		return nil
	}
	run := []string{"true", "exit 3", "slow", "killed", "grep -q ok a.txt"}
	for _, tc := range []struct {
		name            string
		claim           kernel.ClaimText
		verdict, reason string
	}{
		{"a run that passed", kernel.ClaimText{Text: "c", Command: "true"}, "verified", ""},
		{"on the content", kernel.ClaimText{Text: "c", Command: "grep -q ok a.txt"}, "verified", ""},
		{"with the exit it says", kernel.ClaimText{Text: "c", Command: "true", Exit: exit(0)}, "verified", ""},
		{"a failure that is claimed", kernel.ClaimText{Text: "c", Command: "exit 3", Exit: exit(3)}, "verified", ""},
		{"a success that was none", kernel.ClaimText{Text: "c", Command: "exit 3"}, "contradicted", "exit"},
		{"another exit", kernel.ClaimText{Text: "c", Command: "exit 3", Exit: exit(4)}, "contradicted", "exit"},
		{"a failure that was none", kernel.ClaimText{Text: "c", Command: "true", Exit: exit(1)}, "contradicted", "exit"},
		{"over its time", kernel.ClaimText{Text: "c", Command: "slow"}, "contradicted", "time_limit"},
		{"killed", kernel.ClaimText{Text: "c", Command: "killed"}, "unverified", "no_exit"},
		{"killed, and says so", kernel.ClaimText{Text: "c", Command: "killed", Exit: exit(-1)}, "unverified", "no_exit"},
		{"another command", kernel.ClaimText{Text: "c", Command: "touch /tmp/x"}, "unverified", "no_record"},
		{"nearly the command", kernel.ClaimText{Text: "c", Command: "true "}, "unverified", "no_record"},
		{"only words", kernel.ClaimText{Text: "true"}, "unverified", "no_command"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"a.txt": "ok\n"})
			w.shell.fake = timeout
			v := command(t, w, options(run...), tc.claim)
			got := v.Results[0]
			if got.Claim != tc.claim.Text || got.Source != "agent" || got.Verdict != tc.verdict || got.Reason != tc.reason {
				t.Errorf("%+v", got)
			}
			if !slices.Equal(w.shell.ran(), run) {
				t.Errorf("ran %q: only the person names commands", w.shell.ran())
			}
			finding := slices.ContainsFunc(v.Outcomes, func(o kernel.Outcome) bool {
				return o.Type == "finding" && o.Stance == "contradict" && slices.Equal(o.Evidence, got.Evidence)
			})
			if finding != (tc.verdict == "contradicted") {
				t.Errorf("finding %v: %+v", finding, v.Outcomes)
			}
		})
	}
}

func TestRowsOfThePerson(t *testing.T) {
	w := newWorld(t, map[string]string{"a": ""})
	w.shell.fake = func(line string) *kernel.CommandResult {
		switch line {
		case "slow":
			return &kernel.CommandResult{Exit: -1, TimedOut: true}
		case "killed":
			return &kernel.CommandResult{Exit: -1}
		}
		return nil
	}
	v := command(t, w, options("true", "false", "slow", "killed"))
	want := []string{"true verified ", "false contradicted exit", "slow contradicted time_limit", "killed unverified no_exit"}
	var got []string
	for _, r := range v.Results {
		got = append(got, r.Claim+" "+r.Verdict+" "+r.Reason)
		if r.Source != "command" || len(r.Evidence) != 1 {
			t.Errorf("%+v", r)
		}
	}
	if !slices.Equal(got, want) || v.Status != "partial" {
		t.Errorf("%q, status %s", got, v.Status)
	}
	if v := command(t, newWorld(t, map[string]string{"a": ""}), options("true")); v.Status != "completed" {
		t.Errorf("status %s although all passed", v.Status)
	}
}

func TestEvidence(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "x"})
	token := "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	line := "pwd; echo " + token + "; printf '\\377' >&2; exit 5"
	v := command(t, w, options(line))
	ev := v.Outcomes[0]
	if ev.Type != "evidence" || ev.Kind != "command" || ev.Level != "reproduced" || ev.Hash.IsZero() || !strings.HasSuffix(ev.Summary, "exit 5") {
		t.Fatalf("%+v", ev)
	}
	b, err := w.packs.Get(context.Background(), ev.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var rec struct {
		Command, Stdout, Stderr string
		Exit                    int
		Candidate               kernel.Digest
	}
	if err := json.Unmarshal(b, &rec); err != nil || rec.Exit != 5 || rec.Candidate.IsZero() || rec.Stderr != "\uFFFD" {
		t.Errorf("%+v, %v", rec, err)
	}
	all, err := kernel.Canonical(v)
	if err != nil || bytes.Contains(append(all, b...), []byte(token)) || !strings.Contains(rec.Stdout, "[github token]") {
		t.Errorf("a secret is kept: %s %s", all, b)
	}
	if strings.Contains(rec.Stdout, w.scratch) {
		t.Errorf("the place of the copy is kept: %s", rec.Stdout)
	}
	again := command(t, newWorldAs(t, w), options(line))
	if again.Outcomes[0].ID != ev.ID {
		t.Error("the same run is another evidence")
	}
}

// newWorldAs is a world with the same files in another place.
func newWorldAs(t *testing.T, w *world) *world {
	n := newWorld(t, map[string]string{"a.txt": "x"})
	n.ws = w.ws
	return n
}

func TestCopyIsCleanAndThrownAway(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "x", "d/b.txt": "y"})
	w.shell.check = func(c kernel.Command) {
		if !c.Confine || !strings.HasPrefix(c.Dir, w.scratch) {
			t.Errorf("not confined to its copy: %+v", c)
		}
		for _, p := range c.Write {
			if rel, err := filepath.Rel(p, w.scratch); err == nil && !strings.HasPrefix(rel, "..") {
				t.Errorf("may write %s, which holds more than the copy", p)
			}
		}
		if c.Timeout != 3*time.Second || c.Limit <= 0 {
			t.Errorf("unbounded: %+v", c)
		}
	}
	command(t, w, `{"run":["cat a.txt d/b.txt && touch new && ls $TMPDIR && touch $TMPDIR/t","ls new"],"timeout":"3s"}`)
}

func TestOneExecutionForOneCandidate(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "1"})
	stage, ctx := verify.Command(w.shell, w.scratch), context.Background()
	run := func(env kernel.Env, cl kernel.Claim) kernel.Verdict {
		t.Helper()
		v, err := stage.Run(ctx, env, cl)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := run(w.env(options("true")), w.claim())
	second := run(w.env(options("true")), w.claim(kernel.ClaimText{Text: "c", Command: "true"}))
	if n := len(w.shell.ran()); n != 1 {
		t.Errorf("%d executions in one run", n)
	}
	if second.Results[0].Verdict != verify.Verified || second.Outcomes[0].ID != first.Outcomes[0].ID {
		t.Errorf("%+v", second)
	}
	run(w.env(options("true", "true")), w.claim())
	w.ws.Tree = w.tree(map[string]string{"a": "2"})
	run(w.env(options("true")), w.claim())
	other := w.env(options("true"))
	other.Run = "run_2"
	run(other, w.claim())
	alone := w.env(options("true"))
	alone.Run = ""
	run(alone, w.claim())
	run(alone, w.claim())
	if n := len(w.shell.ran()); n != 1+2+1+1+2 {
		t.Errorf("%d executions", n)
	}
}

func TestAfterAChangeNothingIsVerified(t *testing.T) {
	w := newWorld(t, map[string]string{"a": ""})
	w.changed = []kernel.Change{{Path: "a", What: "modified"}}
	v := command(t, w, options("true", "false"), kernel.ClaimText{Text: "c", Command: "true"}, kernel.ClaimText{Text: "d", Command: "false"})
	for _, r := range v.Results {
		if r.Verdict != verify.Unverified || r.Reason != "before_last_change" {
			t.Errorf("%+v", r)
		}
	}
	if v.Status != "partial" {
		t.Errorf("status %s", v.Status)
	}
}

func TestCommandErrors(t *testing.T) {
	for name, options := range map[string]string{
		"none": "", "no commands": `{"run":[]}`, "an empty one": `{"run":[" "]}`, "no duration": `{"run":["true"],"timeout":"soon"}`,
		"no time": `{"run":["true"],"timeout":"-1s"}`, "unknown": `{"run":["true"],"x":1}`,
	} {
		w := newWorld(t, map[string]string{"a": ""})
		_, err := verify.Command(w.shell, w.scratch).Run(context.Background(), w.env(options), w.claim())
		var e *kernel.Error
		if !errors.As(err, &e) || e.Kind != kernel.Invalid || e.Next == "" || len(w.shell.ran()) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := newWorld(t, map[string]string{"a": ""})
	w.ws = kernel.Workspace{Kind: "none"}
	var f *kernel.Failure
	if _, err := verify.Command(w.shell, w.scratch).Run(context.Background(), w.env(options("true")), w.claim()); !errors.As(err, &f) || f.Reason != "no_candidate" {
		t.Errorf("no folder: %v", err)
	}
	w.ws = kernel.Workspace{Kind: "folder", Tree: kernel.Sum([]byte("gone"))}
	if _, err := verify.Command(w.shell, w.scratch).Run(context.Background(), w.env(options("true")), w.claim()); !kernel.IsKind(err, kernel.NotFound) {
		t.Errorf("a pack is gone: %v", err)
	}
	w.clean()
	if n := len(w.shell.ran()); n != 0 {
		t.Errorf("%d commands ran without a candidate", n)
	}
}

func TestStopEndsTheCommand(t *testing.T) {
	w := newWorld(t, map[string]string{"a": ""})
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stopped by the person")
	w.shell.check = func(kernel.Command) { cancel(stop) }
	if _, err := verify.Command(w.shell, w.scratch).Run(ctx, w.env(options("true", "true")), w.claim()); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if n := len(w.shell.ran()); n != 1 {
		t.Errorf("%d commands ran", n)
	}
	w.clean()
}
