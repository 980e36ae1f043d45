// Package freeze takes the snapshot that all members of a run start from.
//
// A git folder is frozen as its commit and the files that differ from it; any
// other folder as a tree of content-addressed nodes. Links are stored as links
// and never followed; what cannot be read is named with the reason. The stage is
// keyed: freezing again an unchanged folder gives the same snapshot.
package freeze

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"witan/kernel"
)

const maxInstructions = 256 << 10

type stage struct {
	run   kernel.Runner
	cache kernel.StatCache
}

// Workspace returns "freeze/workspace".
func Workspace(run kernel.Runner, cache kernel.StatCache) kernel.Freeze { return stage{run, cache} }

func (stage) Spec() kernel.Spec {
	return kernel.Spec{ID: "freeze/workspace", Version: 1, Class: kernel.Keyed, Touches: []string{"workspace-read", "process", "store"},
		Doc: "Freezes task, history and the state of the folder", Options: kernel.NoOptions,
		In: kernel.Schema[kernel.Task](), Out: kernel.Schema[kernel.Snapshot]()}
}

func snapshot(t kernel.Task) (kernel.Snapshot, error) {
	raw, err := kernel.Canonical(t)
	s := kernel.Snapshot{Version: kernel.ObjectVersion, Task: kernel.Sum(raw), Text: t.Text, History: t.History, Attachments: t.Attachments}
	if s.History == nil {
		s.History = []kernel.HistoryEntry{}
	}
	if s.Attachments == nil {
		s.Attachments = []kernel.Attachment{}
	}
	return s, err
}

func (f stage) Run(ctx context.Context, env kernel.Env, t kernel.Task) (kernel.Snapshot, error) {
	s, err := snapshot(t)
	if err != nil {
		return s, err
	}
	for _, h := range t.History { // what is frozen must be there and whole
		if _, err := env.Packs.Get(ctx, h.Text); err != nil {
			return s, err
		}
	}
	if err := folder(t.Workspace); err != nil {
		return s, err
	}
	w, err := env.Packs.Begin(ctx)
	if err != nil {
		return s, err
	}
	defer w.Abort()
	if s.Workspace, err = f.state(ctx, env, w, t.Workspace); err != nil {
		return s, err
	}
	if s.Instructions, err = instructions(w, t.Workspace); err != nil {
		return s, err
	}
	return s, w.Seal()
}

func fail(reason, text string) error {
	return &kernel.Failure{Class: kernel.ClassExecution, Reason: reason, Text: text}
}

func folder(dir string) error {
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("workspace_missing", "the workspace "+dir+" is gone")
	case err != nil:
		return fail("workspace_unreadable", "the workspace "+dir+" cannot be read")
	case !fi.IsDir():
		return fail("workspace_not_folder", "the workspace "+dir+" is not a folder")
	}
	return nil
}

// state freezes as git where that works, else as a folder.
func (f stage) state(ctx context.Context, env kernel.Env, w kernel.PackWriter, dir string) (kernel.Workspace, error) {
	ws, ok, err := f.git(ctx, w, dir)
	if ok || err != nil {
		return ws, err
	}
	return f.walk(ctx, env, w, dir)
}

// instructions stores the workspace's AGENTS.md, if there is a plain one of a sane size.
func instructions(w kernel.PackWriter, dir string) (kernel.Digest, error) {
	path := filepath.Join(dir, "AGENTS.md")
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxInstructions {
		return kernel.Digest{}, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return kernel.Digest{}, nil
	}
	return w.Add("instructions", b)
}

type nothing struct{}

// None returns "freeze/none": task and history only.
func None() kernel.Freeze { return nothing{} }

func (nothing) Spec() kernel.Spec {
	return kernel.Spec{ID: "freeze/none", Version: 1, Class: kernel.Pure, Parallel: true, Touches: []string{}, Doc: "Freezes task and history, not the folder",
		Options: kernel.NoOptions, In: kernel.Schema[kernel.Task](), Out: kernel.Schema[kernel.Snapshot]()}
}

func (nothing) Run(ctx context.Context, env kernel.Env, t kernel.Task) (kernel.Snapshot, error) {
	s, err := snapshot(t)
	s.Workspace = kernel.Workspace{Kind: "none", Path: t.Workspace}
	return s, err
}
