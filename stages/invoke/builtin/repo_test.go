package builtin_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/builtin"
	"witan/stages/invoke/builtin/work"
)

// repo is a generated repository in a temporary folder.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T, files map[string]string) *repo {
	t.Helper()
	t.Setenv(work.Inside, "") // these tests may themselves run below a runner
	r := &repo{t: t, dir: t.TempDir()}
	for name, text := range files {
		r.write(name, text)
	}
	return r
}

func (r *repo) write(name, text string) {
	r.t.Helper()
	p := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// insert puts a line before the n-th (from 1) of a file.
func (r *repo) insert(name string, n int, line string) {
	lines := strings.SplitAfter(r.read(name), "\n")
	r.write(name, strings.Join(slices.Insert(lines, n-1, line+"\n"), ""))
}

// commit makes the folder a git repository with everything committed.
func (r *repo) commit() {
	r.t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@host.invalid", "commit", "-q", "-m", "start"}} {
		git(r, args...)
	}
}

// turn is what an agent did.
type turn struct {
	report   work.Report
	outcomes []kernel.Outcome
	content  map[kernel.Digest]string
}

func (t *turn) Plan([]work.Step)               {}
func (t *turn) Tool(_, _ string) func(ok bool) { return func(bool) {} }
func (t *turn) Outcome(o kernel.Outcome, content []byte) {
	t.outcomes = append(t.outcomes, o)
	if content != nil {
		t.content[o.Hash] = string(content)
	}
}

func (t *turn) findings() []string {
	var out []string
	for _, o := range t.outcomes {
		if o.Type == "finding" {
			out = append(out, fmt.Sprintf("%s:%d", o.Path, o.Line))
		}
	}
	slices.Sort(out)
	return out
}

func agent(t *testing.T, id kernel.AgentID, opts ...builtin.Option) builtin.Agent {
	t.Helper()
	for _, a := range builtin.All(execRunner{}, opts...) {
		if a.Info().ID == id {
			return a
		}
	}
	t.Fatalf("no agent %s", id)
	return nil
}

// run lets one agent do a turn and checks what holds of every turn.
func (r *repo) run(id kernel.AgentID, opts ...builtin.Option) *turn {
	r.t.Helper()
	out, err := r.try(r.t.Context(), id, opts...)
	if err != nil {
		r.t.Fatalf("%s: %v", id, err)
	}
	known := map[kernel.OutcomeID]bool{}
	for _, o := range out.outcomes {
		known[o.ID] = true
		switch o.Type {
		case "evidence":
			if kernel.Sum([]byte(out.content[o.Hash])) != o.Hash {
				r.t.Errorf("evidence %q does not have its hash", o.Summary)
			}
		case "finding":
			if o.Title == "" || o.Path == "" || len(o.Evidence) == 0 || filepath.IsAbs(o.Path) || strings.Contains(o.Path, `\`) {
				r.t.Errorf("incomplete finding %+v", o)
			}
			for _, e := range o.Evidence {
				if !known[e] {
					r.t.Errorf("finding %q names evidence that was not sent before", o.Title)
				}
			}
		}
	}
	for _, c := range r.control(out.report.Text) {
		r.t.Errorf("%s wrote the control character %q", id, c)
	}
	return out
}

func (r *repo) try(ctx context.Context, id kernel.AgentID, opts ...builtin.Option) (*turn, error) {
	out := &turn{content: map[kernel.Digest]string{}}
	var err error
	out.report, err = agent(r.t, id, opts...).Run(ctx, work.Turn{Workspace: r.dir, State: r.t.TempDir()}, out)
	return out, err
}

func (r *repo) control(text string) []rune {
	return slices.DeleteFunc([]rune(text), func(c rune) bool { return c == '\n' || c >= ' ' && c != 0x7f && c != 0x202e })
}

// state lists every file below dir with its hash, to see that nothing changed.
func (r *repo) state() string {
	var b strings.Builder
	err := filepath.WalkDir(r.dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s", p, d.Type())
		if d.Type().IsRegular() {
			content, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %s", kernel.Sum(content))
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}
