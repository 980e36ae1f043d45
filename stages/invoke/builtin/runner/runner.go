package runner

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

const id kernel.AgentID = "runner"

// DefaultLimit is how long all tests together may take.
const DefaultLimit = 2 * time.Minute

// Runner is the agent.
type Runner struct {
	run   kernel.Runner
	limit time.Duration
}

// New returns the agent; run starts the tests, limit bounds them (0 = DefaultLimit).
func New(run kernel.Runner, limit time.Duration) *Runner {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Runner{run, limit}
}

func (r *Runner) Info() work.Info {
	return work.Info{ID: id, Name: "Runner", Doc: "finds the project's own tests and runs them in a copy of the workspace"}
}

func (r *Runner) Run(ctx context.Context, turn work.Turn, emit work.Emit) (work.Report, error) {
	if os.Getenv(work.Inside) != "" {
		return nothing("This is already running below a runner (" + work.Inside + " is set), so there is nothing to run."), nil
	}
	f, err := work.Open(ctx, turn.Workspace, r.run)
	if err != nil {
		return work.Report{}, err
	}
	defer f.Close()
	c, err := open(f, turn.State)
	if err != nil {
		return work.Report{}, err
	}
	defer c.remove()
	suites, notes := find(f, func(argv ...string) bool {
		res, err := r.run.Run(ctx, kernel.Command{Argv: argv, Dir: c.base, Env: c.tools.Env, Timeout: 20 * time.Second, Write: c.tools.Write, Confine: true})
		return err == nil && res.Exit == 0
	})
	if len(suites) == 0 {
		if len(notes) == 0 {
			notes = []string{"No tests to run were found."}
		}
		return nothing(strings.Join(notes, "\n\n")), nil
	}
	if size := c.size(); size > maxCopy {
		return nothing(fmt.Sprintf("The workspace holds %s, more than is copied, so its tests were not run.", work.Bytes(size))), nil
	}
	end := emit.Tool("read", "Copy the workspace")
	err = c.fill(ctx, suites)
	end(err == nil)
	if err != nil {
		return work.Report{}, kernel.E("builtin.runner", kernel.Unavailable, err, "the workspace could not be copied")
	}
	rep := &report{emit: emit, notes: notes}
	deadline := time.Now().Add(r.limit)
	for _, s := range suites {
		left := time.Until(deadline)
		if left <= 0 {
			rep.notes = append(rep.notes, fmt.Sprintf("%s was not started: the limit of %s was used up.", s.where(), limitText(r.limit)))
			continue
		}
		if err := r.suite(ctx, c, s, left, rep); err != nil {
			return work.Report{}, err
		}
	}
	return rep.write(), nil
}

func nothing(text string) work.Report {
	return work.Report{Text: "**Tests.** " + text + "\n", Summary: "No tests were run."}
}

// suite runs one suite and adds how it ended to the report.
func (r *Runner) suite(ctx context.Context, c *copied, s suite, limit time.Duration, rep *report) error {
	end := rep.emit.Tool("execute", s.shown)
	dir := filepath.Join(c.root, filepath.FromSlash(s.dir))
	env := c.tools.Env
	for _, kv := range s.env(dir) {
		env = work.With(env, kv)
	}
	res, err := r.run.Run(ctx, kernel.Command{Argv: s.argv, Dir: dir, Env: env, Timeout: limit,
		Write: append([]string{c.root}, c.tools.Write...), Confine: true, Limit: 4 << 20})
	end(err == nil && res.Exit == 0 && !res.TimedOut)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		rep.notes = append(rep.notes, fmt.Sprintf("%s could not be started: %s.", s.where(), work.Show(err.Error())))
		return nil
	}
	out := string(res.Stdout) + "\n" + string(res.Stderr)
	ran := outcome{suite: s, exit: res.Exit}
	switch {
	case res.TimedOut:
		ran.end = "did not finish within " + limitText(r.limit) + " and was stopped; that says nothing about the tests"
	case res.Exit != 0 && s.lacks(c.f, out):
		ran.end = "could not run: it needs dependencies or tools that are not on this machine"
	case res.Exit == 0 && s.empty(out), s.empty(out) && res.Exit == 5:
		ran.end = "found no tests"
	case res.Exit == 0:
		ran.end, ran.passed = "passed", true
	default:
		p := places{f: c.f, root: c.root, dir: s.dir}
		ran.failures = s.parse(p, out)
		if len(ran.failures) == 0 {
			ran.failures = []failure{{name: s.shown, path: s.manifest, line: s.line, message: fmt.Sprintf("exit %d; the output names no place", res.Exit)}}
		}
		ran.end = fmt.Sprintf("failed with exit %d: %s", res.Exit, tally(ran.failures))
	}
	ran.evidence = r.evidence(s, res, ran.end, c, rep.emit)
	rep.add(ran)
	return nil
}

// evidence keeps the command, how it ended and what it wrote. A run that was
// stopped half-way is observed, not reproduced.
func (r *Runner) evidence(s suite, res kernel.CommandResult, end string, c *copied, emit work.Emit) kernel.OutcomeID {
	level := "reproduced"
	exit := fmt.Sprint(res.Exit)
	if res.TimedOut {
		level, exit = "observed", "stopped at the time limit"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "command: %s\nfolder: %s\nexit: %s\n", s.shown, work.Show(s.dir), exit)
	if res.Cut > 0 {
		fmt.Fprintf(&b, "left out: %d bytes\n", res.Cut)
	}
	for _, stream := range []struct {
		name string
		text []byte
	}{{"stdout", res.Stdout}, {"stderr", res.Stderr}} {
		if text := c.scrub(string(stream.text)); strings.TrimSpace(text) != "" {
			fmt.Fprintf(&b, "\n--- %s ---\n%s", stream.name, work.HeadTail([]byte(text), work.MaxEvidence/2-1024))
		}
	}
	o, content := work.Evidence(id, "command", level, fmt.Sprintf("%s %s", s.shown, end), b.Bytes())
	emit.Outcome(o, content)
	return o.ID
}

func limitText(d time.Duration) string {
	if m := int(d / time.Minute); d%time.Minute == 0 {
		return work.Count(m, "minute", "minutes")
	}
	return fmt.Sprintf("%g seconds", d.Seconds())
}

// failure is a failing test; path and line are where its output says it failed.
// One with build set is no test: it kept tests from being run. The report says
// so; the finding is the inspector's.
type failure struct {
	name    string
	path    string
	line    int
	message string
	build   bool
}

func tally(all []failure) string {
	build := 0
	for _, f := range all {
		if f.build {
			build++
		}
	}
	var parts []string
	if n := len(all) - build; n > 0 {
		parts = append(parts, work.Count(n, "failing test", "failing tests"))
	}
	if build > 0 {
		parts = append(parts, work.Count(build, "place that does not build", "places that do not build"))
	}
	return strings.Join(parts, ", ")
}

// outcome is how a suite ended.
type outcome struct {
	suite    suite
	exit     int
	passed   bool
	end      string
	failures []failure
	evidence kernel.OutcomeID
}

type report struct {
	emit  work.Emit
	ran   []outcome
	notes []string
}

// maxFailures bounds the findings of one suite.
const maxFailures = 100

func (r *report) add(o outcome) {
	slices.SortStableFunc(o.failures, func(a, b failure) int {
		if c := strings.Compare(a.path, b.path); c != 0 {
			return c
		}
		if a.line != b.line {
			return a.line - b.line
		}
		return strings.Compare(a.name, b.name)
	})
	for _, f := range o.failures[:min(len(o.failures), maxFailures)] {
		if f.build {
			continue
		}
		r.emit.Outcome(work.Finding(id, "high", "failing test: "+f.name, f.message, f.path, f.line, o.evidence), nil)
	}
	r.ran = append(r.ran, o)
}

func (r *report) write() work.Report {
	var t strings.Builder
	var ends []string
	var claims []kernel.ClaimText
	t.WriteString("**Tests.**")
	for _, o := range r.ran {
		end := fmt.Sprintf("%s %s.", o.suite.where(), o.end)
		ends = append(ends, end)
		fmt.Fprintf(&t, " %s\n", end)
		for _, f := range o.failures[:min(len(o.failures), maxFailures)] {
			place := f.path
			if f.line > 0 {
				place = fmt.Sprintf("%s:%d", f.path, f.line)
			}
			if f.build {
				f.name = "does not build"
			}
			fmt.Fprintf(&t, "\n- HIGH %s: %s", work.Code(place), work.Show(f.name))
			if f.message != "" {
				fmt.Fprintf(&t, ": %s", work.Clip(work.Show(strings.ReplaceAll(f.message, "\n", " ")), 300))
			}
		}
		if more := len(o.failures) - maxFailures; more > 0 {
			fmt.Fprintf(&t, "\n- and %d more", more)
		}
		if len(o.failures) > 0 {
			t.WriteString("\n\n")
		}
		switch {
		case o.passed:
			claims = append(claims, kernel.ClaimText{Text: "The project's own tests pass.", Command: o.suite.shown, Exit: &o.exit})
		case len(o.failures) > 0:
			claims = append(claims, kernel.ClaimText{Text: "The project's own tests fail.", Command: o.suite.shown, Exit: &o.exit})
		}
	}
	for _, n := range r.notes {
		fmt.Fprintf(&t, "\n%s\n", n)
		ends = append(ends, n)
	}
	text := strings.TrimRight(t.String(), "\n") + "\n"
	return work.Report{Text: text, Summary: work.Clip(strings.Join(ends, " "), 800), Claims: claims}
}
