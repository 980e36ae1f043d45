package commit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"witan/kernel"
	"witan/kernel/tree"
)

type apply struct {
	recorder
	runner kernel.Runner
}

// Apply returns the stage "commit/apply": the accepted files are written to the
// workspace. Git, started by run, merges what the person changed meanwhile.
func Apply(c kernel.Conversations, run kernel.Runner) kernel.Commit { return apply{recorder{c}, run} }

func (apply) Spec() kernel.Spec {
	return kernel.Spec{ID: "commit/apply", Version: 1, Class: kernel.Keyed, Touches: []string{"workspace-write", "process", "store"},
		Doc: "Writes the accepted files to the workspace, and merges where it moved", Options: kernel.NoOptions,
		In: kernel.Schema[kernel.Verdict](), Out: kernel.Schema[kernel.Result]()}
}

func (a apply) Run(ctx context.Context, env kernel.Env, v kernel.Verdict) (kernel.Result, error) {
	return a.commit(ctx, env, v, func(c content) (string, error) {
		return "workspace", a.write(ctx, env.Packs, c)
	})
}

// shown is how many files an error names.
const shown = 10

func (a apply) write(ctx context.Context, p kernel.Packs, c content) error {
	if c.snap.Workspace.Kind != "git" && c.snap.Workspace.Kind != "folder" {
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "workspace_missing", Text: "the run was not given a folder that the result could be written to"}
	}
	root, err := os.OpenRoot(c.snap.Workspace.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "workspace_missing", Err: err,
			Text: "the workspace " + c.snap.Workspace.Path + " is gone; put it back and try again"}
	case err != nil:
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "workspace_unreadable", Err: err,
			Text: "the workspace " + c.snap.Workspace.Path + " cannot be opened; check its permissions"}
	}
	defer root.Close()
	w := &workspace{root: root, packs: p, run: c.run, merge: merger{a.runner}, goes: map[string]bool{}}
	steps, conflicts, err := w.plan(ctx, c.files)
	if err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return conflict(conflicts, false)
	}
	for i, s := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		is, why, err := w.ours(s.name)
		if err != nil {
			return err
		}
		if is != s.was || why != "" {
			return conflict([]string{quote(s.name) + " changes right now"}, i > 0)
		}
		if err := w.do(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func quote(name string) string { return fmt.Sprintf("%q", tree.EncodePath(name)) }

func conflict(what []string, effects bool) error {
	text := strings.Join(what[:min(shown, len(what))], "; ")
	if n := len(what) - shown; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return &kernel.Failure{Class: kernel.ClassExecution, Reason: "apply_conflict", Text: "the workspace changed where the result does: " + text, Effects: effects}
}
