package verify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/verify"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestNoneVerifiesNothing(t *testing.T) {
	w := newWorld(t, map[string]string{"a": ""})
	cl := w.claim(kernel.ClaimText{Text: "c", Command: "true"}, kernel.ClaimText{Text: "d"})
	cl.Outcomes = []kernel.Outcome{{Type: "finding", ID: "fnd_1"}}
	v, err := verify.None().Run(context.Background(), w.env(""), cl)
	if err != nil || v.Status != "completed" || v.Scope != "attempt" || v.Turn != cl.Turn || len(v.Outcomes) != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	if v.Claim != w.object("claim", cl) {
		t.Error("does not name its claim")
	}
	for i, reason := range []string{"no_record", "no_command"} {
		if r := v.Results[i]; r.Verdict != "unverified" || r.Reason != reason || r.Source != "agent" {
			t.Errorf("%+v", r)
		}
	}
}

func TestFilesThatClaimsName(t *testing.T) {
	files := map[string]string{"a.txt": "content", "d/b.txt": "b", "out": "-> /etc/hostname"}
	hash, other := kernel.Sum([]byte("content")).String(), kernel.Sum([]byte("other")).String()
	for _, tc := range []struct {
		name            string
		claim           kernel.ClaimText
		verdict, reason string
		findings        int
	}{
		{"the content", kernel.ClaimText{Text: "c", Path: "a.txt", Hash: hash}, "verified", "", 0},
		{"in a folder", kernel.ClaimText{Text: "c", Path: "d/b.txt", Hash: kernel.Sum([]byte("b")).String()}, "verified", "", 0},
		{"other content", kernel.ClaimText{Text: "c", Path: "a.txt", Hash: other}, "contradicted", "other_content", 1},
		{"no such file", kernel.ClaimText{Text: "c", Path: "b.txt"}, "contradicted", "other_content", 1},
		{"a folder is no content", kernel.ClaimText{Text: "c", Path: "d", Hash: hash}, "contradicted", "other_content", 1},
		{"existence shows nothing", kernel.ClaimText{Text: "c", Path: "a.txt"}, "unverified", "no_command", 0},
		{"a file shows nothing of a command", kernel.ClaimText{Text: "c", Path: "a.txt", Hash: hash, Command: "true"}, "unverified", "no_record", 0},
		{"out of the workspace", kernel.ClaimText{Text: "c", Path: "../a.txt"}, "invalid", "", 1},
		{"absolute", kernel.ClaimText{Text: "c", Path: "/etc/passwd"}, "invalid", "", 1},
		{"out by a link", kernel.ClaimText{Text: "c", Path: "out"}, "invalid", "", 1},
		{"no hash", kernel.ClaimText{Text: "c", Path: "a.txt", Hash: "abc"}, "invalid", "", 1},
		{"a hash of nothing", kernel.ClaimText{Text: "c", Hash: hash}, "invalid", "", 1},
		{"no file", kernel.ClaimText{Text: "c"}, "unverified", "no_command", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, files)
			v, err := verify.Schema(w.shell, w.scratch).Run(context.Background(), w.env(""), w.claim(tc.claim))
			if err != nil {
				t.Fatal(err)
			}
			w.clean()
			r, findings := v.Results[0], 0
			for _, o := range v.Outcomes {
				if o.Type == "finding" {
					findings++
				}
			}
			if r.Verdict != tc.verdict || r.Reason != tc.reason || findings != tc.findings || (r.Verdict == "verified") != (len(r.Evidence) == 1) {
				t.Errorf("%+v, %d findings", r, findings)
			}
			if len(w.shell.ran()) != 0 {
				t.Errorf("ran %q", w.shell.ran())
			}
		})
	}
}

func TestFilesAfterAChange(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "1"})
	w.changed = []kernel.Change{{Path: "a", What: "modified"}}
	v, err := verify.Schema(w.shell, w.scratch).Run(context.Background(), w.env(""), w.claim(kernel.ClaimText{Text: "c", Path: "a", Hash: kernel.Sum([]byte("1")).String()}))
	if err != nil || v.Results[0].Verdict != "unverified" || v.Results[0].Reason != "before_last_change" {
		t.Errorf("%+v, %v", v.Results, err)
	}
}

// fixed is a verify stage that gives every claim one verdict.
type fixed struct{ id, verdict, reason string }

func (f fixed) Spec() kernel.Spec { return kernel.Spec{ID: f.id} }

func (f fixed) Run(ctx context.Context, env kernel.Env, c kernel.Claim) (kernel.Verdict, error) {
	v, err := verify.None().Run(ctx, env, c)
	for i := range v.Results {
		id := kernel.OutcomeID("evd_" + f.id + f.verdict)
		v.Results[i].Verdict, v.Results[i].Reason, v.Results[i].Evidence = f.verdict, f.reason, []kernel.OutcomeID{id}
		v.Outcomes = append(v.Outcomes, kernel.Outcome{Type: "evidence", ID: id})
	}
	return v, err
}

// foreign speaks of another answer.
type foreign struct{}

func (foreign) Spec() kernel.Spec { return kernel.Spec{ID: "verify/foreign"} }

func (foreign) Run(ctx context.Context, env kernel.Env, c kernel.Claim) (kernel.Verdict, error) {
	return kernel.Verdict{Version: 1, Scope: "attempt", Status: "completed", Claim: kernel.Sum(nil)}, nil
}

func registry(w *world) verify.Lookup {
	nodes := []kernel.Node{kernel.Erase(verify.None()), kernel.Erase(verify.Command(w.shell, w.scratch)), kernel.Erase(verify.Schema(w.shell, w.scratch)), kernel.Erase[kernel.Claim, kernel.Verdict](foreign{})}
	for id, f := range map[string]fixed{"good": {verdict: "verified"}, "bad": {verdict: "contradicted", reason: "exit"}, "unsure": {verdict: "unverified", reason: "no_exit"}, "broken": {verdict: "invalid"}} {
		f.id = "verify/" + id
		nodes = append(nodes, kernel.Erase[kernel.Claim, kernel.Verdict](f))
	}
	return kernel.Registry{}.With(nodes...).Lookup
}

func TestTheWorstCounts(t *testing.T) {
	for _, tc := range []struct {
		of      []string
		verdict string
	}{
		{[]string{"good"}, "verified"},
		{[]string{"good", "none"}, "verified"},
		{[]string{"none", "good"}, "verified"},
		{[]string{"none"}, "unverified"},
		{[]string{"good", "unsure"}, "unverified"},
		{[]string{"unsure", "good"}, "unverified"},
		{[]string{"good", "broken", "unsure"}, "invalid"},
		{[]string{"broken", "bad", "good"}, "contradicted"},
		{[]string{"bad", "none"}, "contradicted"},
	} {
		w := newWorld(t, map[string]string{"a": ""})
		var of []any
		evidence := 0
		for _, id := range tc.of {
			of = append(of, map[string]any{"use": "verify/" + id})
			if id != "none" {
				evidence++
			}
		}
		opt, err := json.Marshal(map[string]any{"of": of})
		if err != nil {
			t.Fatal(err)
		}
		v, err := verify.AllOf(registry(w)).Run(context.Background(), w.env(string(opt)), w.claim(kernel.ClaimText{Text: "c", Command: "x"}))
		if err != nil || v.Results[0].Verdict != tc.verdict || len(v.Results[0].Evidence) != evidence || len(v.Outcomes) != evidence {
			t.Errorf("%v: %+v, %d outcomes, %v", tc.of, v.Results, len(v.Outcomes), err)
		}
	}
}

func TestAllOfKeepsTheRowsOfEach(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "1"})
	opt := `{"of":[{"use":"verify/command","run":["false"]},{"use":"verify/schema"},{"use":"verify/all-of","of":[{"use":"verify/command","run":["true"]}]}]}`
	var look verify.Lookup
	look = func(id string) (kernel.Node, bool) {
		if id == "verify/all-of" {
			return kernel.Erase(verify.AllOf(look)), true
		}
		return registry(w)(id)
	}
	v, err := verify.AllOf(look).Run(context.Background(), w.env(opt), w.claim(kernel.ClaimText{Text: "c", Command: "true"}, kernel.ClaimText{Text: "d", Path: "a", Hash: kernel.Sum([]byte("1")).String()}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range v.Results {
		got = append(got, r.Claim+" "+r.Source+" "+r.Verdict)
	}
	if want := "c agent verified, d agent verified, false command contradicted, true command verified"; strings.Join(got, ", ") != want || v.Status != "partial" {
		t.Errorf("%q, %s", got, v.Status)
	}
}

func TestAllOfErrors(t *testing.T) {
	w := newWorld(t, map[string]string{"a": ""})
	for name, opt := range map[string]string{"none": "", "nothing": `{"of":[]}`, "no use": `{"of":[{}]}`, "unknown": `{"of":[{"use":"verify/x"}]}`,
		"an option too many": `{"of":[{"use":"verify/command","run":["true"],"x":1}]}`} {
		if _, err := verify.AllOf(registry(w)).Run(context.Background(), w.env(opt), w.claim()); !kernel.IsKind(err, kernel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var f *kernel.Failure
	if _, err := verify.AllOf(registry(w)).Run(context.Background(), w.env(`{"of":[{"use":"verify/foreign"}]}`), w.claim()); !errors.As(err, &f) || f.Reason != "exec_failed" {
		t.Errorf("a verdict on something else: %v", err)
	}
}

func TestSpecs(t *testing.T) {
	for _, s := range []kernel.Verify{verify.None(), verify.Command(nil, ""), verify.Schema(nil, ""), verify.AllOf(nil)} {
		b, err := json.MarshalIndent(s.Spec(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		p := filepath.Join("testdata", strings.ReplaceAll(s.Spec().ID, "/", "-")+".json")
		if *update {
			if err := os.WriteFile(p, append(b, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(p)
		if err != nil || !bytes.Equal(append(b, '\n'), want) {
			t.Errorf("%s differs (-update writes it anew), %v", p, err)
		}
	}
}
