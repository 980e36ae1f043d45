package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"witan/kernel"
	"witan/kernel/secrets"
)

const (
	defaultTimeout = 10 * time.Minute
	outputKept     = 64 << 10 // bytes of each stream, head and tail
)

// commandOptions of verify/command. Timeout is for each command.
type commandOptions struct {
	Run     []string `json:"run"`
	Timeout string   `json:"timeout,omitempty"`
}

func (o commandOptions) check() (timeout time.Duration, err error) {
	if len(o.Run) == 0 {
		return 0, kernel.E("verify.Command", kernel.Invalid, nil, "verify/command has no command").WithNext(`add run = ["…"]`)
	}
	for _, line := range o.Run {
		if strings.TrimSpace(line) == "" {
			return 0, kernel.E("verify.Command", kernel.Invalid, nil, "a command of verify/command is empty").WithNext("name one, or leave it out")
		}
	}
	if o.Timeout == "" {
		return defaultTimeout, nil
	}
	if timeout, err = time.ParseDuration(o.Timeout); err != nil || timeout <= 0 {
		return 0, kernel.E("verify.Command", kernel.Invalid, nil, "timeout %q is no duration", o.Timeout).WithNext(`write it as "10m"`)
	}
	return timeout, nil
}

type command struct {
	copies
	memo memo
}

// Command returns "verify/command": the project's own checks, as the person
// named them, in a clean copy of the candidate made below scratch. Attempts of
// one run that have the same candidate share one execution.
func Command(run kernel.Runner, scratch string) kernel.Verify {
	return &command{copies: copies{run, scratch}}
}

func (*command) Spec() kernel.Spec {
	return kernel.Spec{ID: "verify/command", Version: 1, Class: kernel.Keyed, Touches: []string{"process", "store"},
		Doc: "Runs the named commands in a clean copy of the candidate; the exit code decides",
		Options: json.RawMessage(`{"type":"object","properties":{"run":{"type":"array","minItems":1,"items":{"type":"string","minLength":1}},` +
			`"timeout":{"type":"string","pattern":"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"}},"required":["run"],"additionalProperties":false}`),
		In: kernel.Schema[kernel.Claim](), Out: kernel.Schema[kernel.Verdict]()}
}

// record is the content of the evidence of one command.
type record struct {
	Command   string        `json:"command"`
	Exit      int           `json:"exit"` // -1: it was ended and has none
	TimedOut  bool          `json:"timed_out"`
	Stdout    string        `json:"stdout"`
	Stderr    string        `json:"stderr"`
	Cut       int64         `json:"cut"` // bytes left out in the middle of both
	Candidate kernel.Digest `json:"candidate"`
}

// ran is one command of the person with its record.
type ran struct {
	line     string
	rec      record
	evidence kernel.Outcome
}

func (c *command) Run(ctx context.Context, env kernel.Env, cl kernel.Claim) (kernel.Verdict, error) {
	v, err := base(cl)
	if err != nil {
		return v, err
	}
	var opt commandOptions
	if err := options(env, "verify/command", &opt); err != nil {
		return v, err
	}
	timeout, err := opt.check()
	if err != nil {
		return v, err
	}
	s, err := subjectOf(ctx, env.Packs, cl)
	if err != nil {
		return v, err
	}
	all, err := c.all(ctx, env, s, opt.Run, timeout)
	if err != nil {
		return v, err
	}
	for _, r := range all {
		v.Outcomes = append(v.Outcomes, r.evidence)
	}
	judge(&v, cl, all, s.stale)
	for _, r := range all {
		res := own(r, s.stale)
		v.Results = append(v.Results, res)
		if res.Verdict != Verified {
			v.Status = "partial" // an answer whose checks fail is no completed one
		}
	}
	return v, nil
}

// all runs the commands in one copy, in order, or takes what another attempt of
// the run found on the same content.
func (c *command) all(ctx context.Context, env kernel.Env, s subject, lines []string, timeout time.Duration) ([]ran, error) {
	key := fmt.Sprintf("%s %q %s", s.content, lines, timeout)
	if out, ok := c.memo.load(env.Run, key); ok {
		return out, nil
	}
	cand, err := c.make(ctx, env.Packs, s)
	if err != nil {
		return nil, err
	}
	defer cand.remove()
	var out []ran
	for _, line := range lines {
		rec, err := c.one(ctx, line, cand, timeout)
		if err != nil {
			return nil, err
		}
		rec.Candidate = s.content
		ev, err := evidence(ctx, env.Packs, rec)
		if err != nil {
			return nil, err
		}
		out = append(out, ran{line, rec, ev})
	}
	c.memo.save(env.Run, key, out)
	return out, nil
}

// one runs a shell line. What it leaves behind is thrown away with the copy.
func (c *command) one(ctx context.Context, line string, cand candidate, timeout time.Duration) (record, error) {
	r, err := c.run.Run(ctx, kernel.Command{Argv: []string{"env", "TMPDIR=" + cand.tmp, "/bin/sh", "-c", line}, Dir: cand.dir, Timeout: timeout,
		Limit: outputKept, Confine: true, Write: append([]string{cand.top}, caches()...)})
	if ctx.Err() != nil {
		return record{}, context.Cause(ctx)
	}
	if err != nil {
		return record{}, err
	}
	// The folder has another name each time; the evidence does not tell it.
	clean := func(b []byte) string {
		return secrets.Redact(strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), cand.top, "…"))
	}
	return record{Command: secrets.Redact(line), Exit: r.Exit, TimedOut: r.TimedOut, Cut: r.Cut, Stdout: clean(r.Stdout), Stderr: clean(r.Stderr)}, nil
}

func evidence(ctx context.Context, p kernel.Packs, rec record) (kernel.Outcome, error) {
	d, err := kernel.PutObject(ctx, p, "evidence", rec)
	o := kernel.Outcome{Type: "evidence", ID: kernel.OutcomeID(kernel.DeriveID(kernel.EvidencePrefix, d.String())), Kind: "command", Level: "reproduced",
		Summary: fmt.Sprintf("%s: exit %d", rec.Command, rec.Exit), Hash: d}
	switch {
	case rec.TimedOut:
		o.Summary = rec.Command + ": ended by the time limit"
	case rec.Exit < 0:
		o.Summary = rec.Command + ": killed"
	}
	return o, err
}

// own is the verdict on a command of the person: it passed or it did not.
func own(r ran, old bool) kernel.ClaimVerdict {
	v := kernel.ClaimVerdict{Claim: r.rec.Command, Source: "command", Verdict: Verified, Evidence: []kernel.OutcomeID{r.evidence.ID}}
	switch {
	case old:
		v.Verdict, v.Reason = Unverified, ReasonOldContent
	case r.rec.TimedOut:
		v.Verdict, v.Reason = Contradicted, ReasonTime
	case r.rec.Exit < 0:
		v.Verdict, v.Reason = Unverified, ReasonNoExit
	case r.rec.Exit != 0:
		v.Verdict, v.Reason = Contradicted, ReasonExit
	}
	return v
}

// judge holds the agent's claims against what was run.
func judge(v *kernel.Verdict, cl kernel.Claim, all []ran, old bool) {
	byLine := map[string]ran{}
	for _, r := range all {
		byLine[r.line] = r
	}
	for i, c := range cl.Claims {
		r, ok := byLine[c.Command]
		if !ok {
			continue // stays as it is: no_record, or no_command
		}
		want := 0
		if c.Exit != nil {
			want = *c.Exit
		}
		res := &v.Results[i]
		res.Evidence = []kernel.OutcomeID{r.evidence.ID}
		switch {
		case old:
			res.Reason = ReasonOldContent
		case r.rec.TimedOut:
			refuse(v, i, Contradicted, ReasonTime, fmt.Sprintf("%q says exit %d of %q; it was ended by its time limit", c.Text, want, r.rec.Command), r.evidence.ID)
		case r.rec.Exit < 0:
			res.Reason = ReasonNoExit
		case r.rec.Exit == want:
			res.Verdict, res.Reason = Verified, ""
		default:
			refuse(v, i, Contradicted, ReasonExit, fmt.Sprintf("%q says exit %d of %q; it ended with %d", c.Text, want, r.rec.Command, r.rec.Exit), r.evidence.ID)
		}
	}
}
