package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"witan/kernel"
	"witan/kernel/secrets"
	"witan/kernel/tree"
)

const (
	defaultTimeout = 10 * time.Minute
	outputKept     = 64 << 10 // of each stream
)

// commandOptions of verify/command.
type commandOptions struct {
	Run     []string `json:"run"`
	Timeout string   `json:"timeout,omitempty"`
}

type command struct {
	run     kernel.Runner
	scratch string // folder below which clean copies are made
}

// Command returns "verify/command": the project's own checks, as the person
// named them, in a clean copy of the candidate. An agent's words never name a
// command that is run.
func Command(run kernel.Runner, scratch string) kernel.Verify { return command{run, scratch} }

func (command) Spec() kernel.Spec {
	return kernel.Spec{ID: "verify/command", Version: 1, Class: kernel.Keyed, Touches: []string{"process", "store"},
		Doc:     "Runs the named commands in a clean copy of the candidate; the exit code decides",
		Options: json.RawMessage(`{"type":"object","properties":{"run":{"type":"array","items":{"type":"string"}},"timeout":{"type":"string"}},"required":["run"],"additionalProperties":false}`),
		In:      kernel.Schema[kernel.Claim](), Out: kernel.Schema[kernel.Verdict]()}
}

// record is the content of the evidence of one command.
type record struct {
	Command   string        `json:"command"`
	Exit      int           `json:"exit"`
	TimedOut  bool          `json:"timed_out"`
	Stdout    string        `json:"stdout"`
	Stderr    string        `json:"stderr"`
	Cut       int64         `json:"cut"`
	Candidate kernel.Digest `json:"candidate"`
}

func (c command) Run(ctx context.Context, env kernel.Env, cl kernel.Claim) (kernel.Verdict, error) {
	v, err := base(cl)
	if err != nil {
		return v, err
	}
	var opt commandOptions
	if err := kernel.DecodeStrict(env.Options, &opt); err != nil {
		return v, err
	}
	timeout := defaultTimeout
	if opt.Timeout != "" {
		if timeout, err = time.ParseDuration(opt.Timeout); err != nil || timeout <= 0 {
			return v, kernel.E("verify.Command", kernel.Invalid, nil, "timeout %q is no duration", opt.Timeout)
		}
	}
	snap, err := snapshotOf(ctx, env.Packs, cl)
	if err != nil {
		return v, err
	}
	ws, err := kernel.Canonical(snap.Workspace)
	if err != nil {
		return v, err
	}
	candidate := kernel.SumDomain("candidate/1", ws)
	dir, done, err := c.checkout(ctx, env.Packs, snap.Workspace)
	if err != nil {
		return v, err
	}
	defer done()
	ran := map[string]record{}
	ids := map[string]kernel.OutcomeID{}
	for _, line := range opt.Run {
		rec, err := c.one(ctx, line, dir, timeout)
		if err != nil {
			return v, err
		}
		rec.Candidate = candidate
		ev, err := evidence(ctx, env.Packs, rec)
		if err != nil {
			return v, err
		}
		ran[line], ids[line] = rec, ev.ID
		v.Outcomes = append(v.Outcomes, ev)
	}
	judge(&v, cl, ran, ids)
	for _, line := range opt.Run {
		res := own(line, ran[line], ids[line])
		v.Results = append(v.Results, res)
		if res.Verdict != Verified {
			v.Status = "partial" // an answer whose checks fail is no completed one
		}
	}
	return v, nil
}

func snapshotOf(ctx context.Context, p kernel.Packs, cl kernel.Claim) (kernel.Snapshot, error) {
	t, err := kernel.GetObject[kernel.Turn](ctx, p, cl.Turn)
	if err != nil {
		return kernel.Snapshot{}, err
	}
	return kernel.GetObject[kernel.Snapshot](ctx, p, t.Snapshot)
}

// one runs a shell line. What it leaves behind is thrown away with the copy.
func (c command) one(ctx context.Context, line, dir string, timeout time.Duration) (record, error) {
	rec := record{Command: line}
	r, err := c.run.Run(ctx, kernel.Command{Argv: []string{"/bin/sh", "-c", line}, Dir: dir, Timeout: timeout, Limit: outputKept,
		Confine: true, Write: []string{filepath.Dir(c.scratch)}})
	if err != nil {
		return rec, err
	}
	if ctx.Err() != nil {
		return rec, context.Cause(ctx)
	}
	rec.Exit, rec.TimedOut, rec.Cut = r.Exit, r.TimedOut, r.Cut
	clean := func(b []byte) string { return secrets.Redact(strings.ToValidUTF8(string(b), "\uFFFD")) }
	rec.Stdout, rec.Stderr = clean(r.Stdout), clean(r.Stderr)
	return rec, nil
}

func evidence(ctx context.Context, p kernel.Packs, rec record) (kernel.Outcome, error) {
	d, err := kernel.PutObject(ctx, p, "evidence", rec)
	o := kernel.Outcome{Type: "evidence", ID: kernel.OutcomeID(kernel.DeriveID(kernel.EvidencePrefix, d.String())), Kind: "command", Level: "reproduced",
		Summary: fmt.Sprintf("%s: exit %d", rec.Command, rec.Exit), Hash: d}
	if rec.TimedOut {
		o.Summary = rec.Command + ": ended by the time limit"
	}
	return o, err
}

// own is the verdict on a command of the person: it passed or it did not.
func own(line string, rec record, id kernel.OutcomeID) kernel.ClaimVerdict {
	v := kernel.ClaimVerdict{Claim: line, Source: "command", Verdict: Verified, Evidence: []kernel.OutcomeID{id}}
	if rec.Exit != 0 || rec.TimedOut {
		v.Verdict, v.Reason = Contradicted, "exit"
		if rec.TimedOut {
			v.Reason = "time_limit"
		}
	}
	return v
}

// judge holds the agent's claims against what was run.
func judge(v *kernel.Verdict, cl kernel.Claim, ran map[string]record, ids map[string]kernel.OutcomeID) {
	for i, c := range cl.Claims {
		if c.Command == "" {
			continue
		}
		rec, ok := ran[c.Command]
		if !ok {
			continue // stays unverified: no_record
		}
		want := 0
		if c.Exit != nil {
			want = *c.Exit
		}
		res := &v.Results[i]
		res.Evidence = []kernel.OutcomeID{ids[c.Command]}
		if rec.Exit == want && !rec.TimedOut {
			res.Verdict, res.Reason = Verified, ""
			continue
		}
		res.Verdict, res.Reason = Contradicted, "exit"
		v.Outcomes = append(v.Outcomes, kernel.Outcome{Type: "finding", Severity: "high", Stance: "contradict",
			ID:       kernel.OutcomeID(kernel.DeriveID(kernel.FindingPrefix, v.Claim.String(), fmt.Sprint(i))),
			Title:    "A claim is contradicted by the command it names",
			Detail:   fmt.Sprintf("%q says exit %d of %q; it ended with %d", c.Text, want, c.Command, rec.Exit),
			Evidence: []kernel.OutcomeID{ids[c.Command]}})
	}
}

// checkout makes a clean copy of the frozen state and returns the folder in it
// that is the workspace.
func (c command) checkout(ctx context.Context, p kernel.Packs, ws kernel.Workspace) (dir string, done func(), err error) {
	if err := os.MkdirAll(c.scratch, 0o700); err != nil {
		return "", nil, kernel.E("verify.checkout", kernel.ReadOnly, err, "no folder for the clean copy")
	}
	top, err := os.MkdirTemp(c.scratch, "candidate-")
	if err != nil {
		return "", nil, kernel.E("verify.checkout", kernel.ReadOnly, err, "no folder for the clean copy")
	}
	done = func() { _ = os.RemoveAll(top) }
	switch ws.Kind {
	case "folder":
		err = tree.Checkout(ctx, p, ws.Tree, top)
	case "git":
		err = c.git(ctx, p, ws, top)
	default:
		err = &kernel.Failure{Class: kernel.ClassExecution, Reason: "no_candidate", Text: "the snapshot holds no folder to check; use freeze/workspace"}
	}
	if err != nil {
		done()
		return "", nil, err
	}
	return filepath.Join(top, filepath.FromSlash(ws.Sub)), done, nil
}

// git writes the commit and then the files that differed. The repository's own
// index is never touched: git gets another one.
func (c command) git(ctx context.Context, p kernel.Packs, ws kernel.Workspace, top string) error {
	if ws.Commit != "" {
		index := top + ".index"
		defer os.Remove(index)
		env := append(os.Environ(), "GIT_INDEX_FILE="+index)
		for _, args := range [][]string{{"read-tree", ws.Commit}, {"checkout-index", "--all", "--force", "--prefix=" + top + "/"}} {
			r, err := c.run.Run(ctx, kernel.Command{Argv: append([]string{"git", "-c", "core.hooksPath=/dev/null", "-C", ws.Path}, args...), Env: env, Dir: ws.Path})
			if err != nil {
				return err
			}
			if r.Exit != 0 {
				return &kernel.Failure{Class: kernel.ClassExecution, Reason: "no_candidate", Text: "git cannot write the clean copy: " + string(r.Stderr)}
			}
		}
	}
	for _, d := range ws.Dirty {
		path := filepath.Join(top, filepath.FromSlash(d.Path))
		if !filepath.IsLocal(filepath.FromSlash(d.Path)) {
			return kernel.E("verify.git", kernel.Invalid, nil, "path %q leaves the copy", d.Path)
		}
		if d.Hash.IsZero() {
			_ = os.Remove(path) // deleted in the workspace
			continue
		}
		content, err := p.Get(ctx, d.Hash)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return kernel.E("verify.git", kernel.Internal, err, "a folder of the copy cannot be made")
		}
		kind := byte(tree.File)
		switch d.Mode {
		case "link":
			kind = tree.Link
		case "0755":
			kind = tree.Exec
		}
		if err := tree.WriteFile(path, kind, content); err != nil {
			return err
		}
	}
	return nil
}
