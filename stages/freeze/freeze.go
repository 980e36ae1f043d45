package freeze

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"witan/kernel"
)

const (
	maxText         = 32_000 // characters
	maxInstructions = 256 << 10
	defaultMaxFile  = 1 << 30
)

// options of freeze/workspace. Tree freezes a git folder like any other, with
// what git ignores, so that nothing depends on its repository.
type options struct {
	Tree       bool  `json:"tree"`
	MaxFileMiB int64 `json:"max_file_mib"` // larger files are named, not stored; 0 = 1024
}

func (o options) maxFile() int64 {
	if o.MaxFileMiB == 0 {
		return defaultMaxFile
	}
	return o.MaxFileMiB << 20
}

type stage struct {
	run   kernel.Runner
	cache kernel.StatCache
	disk  Disk
}

// Option changes how Workspace works.
type Option func(*stage)

// WithDisk makes the stage see files through d.
func WithDisk(d Disk) Option { return func(s *stage) { s.disk = d } }

// Workspace returns "freeze/workspace". Run starts git; without one, or without a
// git that works, every folder is frozen as a plain one.
func Workspace(run kernel.Runner, cache kernel.StatCache, opts ...Option) kernel.Freeze {
	s := stage{run: run, cache: cache, disk: OS()}
	for _, o := range opts {
		o(&s)
	}
	return s
}

func (stage) Spec() kernel.Spec {
	return kernel.Spec{ID: "freeze/workspace", Version: 1, Class: kernel.Keyed, Touches: []string{"workspace-read", "process", "store"},
		Doc: "Freezes task, history and the state of the folder",
		Options: json.RawMessage(`{"type":"object","properties":{"tree":{"type":"boolean"},` +
			`"max_file_mib":{"type":"integer","minimum":0,"maximum":1048576}},"additionalProperties":false}`),
		In: kernel.Schema[kernel.Task](), Out: kernel.Schema[kernel.Snapshot]()}
}

func (f stage) Run(ctx context.Context, env kernel.Env, t kernel.Task) (kernel.Snapshot, error) {
	s, err := snapshot(ctx, env, t)
	if err != nil {
		return s, err
	}
	var o options
	if len(env.Options) > 0 {
		if err := kernel.DecodeStrict(env.Options, &o); err != nil {
			return s, err
		}
	}
	if o.MaxFileMiB < 0 || o.MaxFileMiB > 1<<20 {
		return s, kernel.E("freeze.Run", kernel.Invalid, nil, "max_file_mib is %d", o.MaxFileMiB).WithNext("use 0 to 1048576")
	}
	top, err := f.disk.Open(t.Workspace)
	if err != nil {
		return s, unusable(t.Workspace, err)
	}
	defer top.Close()
	defer bound()()
	w, err := env.Packs.Begin(ctx)
	if err != nil {
		return s, err
	}
	defer w.Abort()
	var note string // why it is not frozen as git, which it looks like
	git := false
	if !o.Tree {
		s.Workspace, git, note, err = f.git(ctx, w, o, t.Workspace)
	}
	done := func() {}
	if err == nil && !git {
		s.Workspace, done, err = f.folder(ctx, env, w, o, t.Workspace, note)
	}
	if err != nil {
		return s, err
	}
	if err := instructions(top, w, &s); err != nil {
		return s, err
	}
	if err := w.Seal(); err != nil {
		return s, err
	}
	done() // the cache may say only what is stored
	return s, nil
}

// snapshot is the part that is not about the folder.
func snapshot(ctx context.Context, env kernel.Env, t kernel.Task) (kernel.Snapshot, error) {
	s := kernel.Snapshot{Version: kernel.ObjectVersion, Text: t.Text, History: t.History, Attachments: t.Attachments}
	if strings.TrimSpace(t.Text) == "" {
		return s, fail("task_empty", "the task is empty; say what is to be done")
	}
	if n := utf8.RuneCountInString(t.Text); n > maxText {
		return s, fail("task_too_long", fmt.Sprintf("the task has %d characters and may have %d; attach the long part as a file", n, maxText))
	}
	if s.History == nil {
		s.History = []kernel.HistoryEntry{}
	}
	if s.Attachments == nil {
		s.Attachments = []kernel.Attachment{}
	}
	raw, err := kernel.Canonical(t)
	if err != nil {
		return s, err
	}
	s.Task = kernel.Sum(raw)
	for _, h := range s.History { // what is frozen must be there
		if _, err := env.Packs.Stat(ctx, h.Text); err != nil {
			return s, err
		}
	}
	for _, a := range s.Attachments {
		if _, err := env.Packs.Stat(ctx, a.Hash); err != nil {
			return s, err
		}
	}
	return s, nil
}

func fail(reason, text string) error {
	return &kernel.Failure{Class: kernel.ClassExecution, Reason: reason, Text: text}
}

// unusable says in one sentence what is wrong with the workspace.
func unusable(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("workspace_missing", "the workspace "+dir+" is gone; choose another folder")
	case isNotFolder(err):
		return fail("workspace_not_folder", "the workspace "+dir+" is not a folder; choose the folder that holds it")
	}
	return fail("workspace_unreadable", "the workspace "+dir+" cannot be read; check its permissions")
}

// instructions stores the workspace's AGENTS.md, if there is a plain one of a sane size.
func instructions(top Folder, w kernel.PackWriter, s *kernel.Snapshot) error {
	const name = "AGENTS.md"
	st, err := top.Stat(name)
	if err != nil || st.Kind != Regular {
		return nil
	}
	skip := func(reason string) {
		s.Workspace.Skipped = append(s.Workspace.Skipped, kernel.Skipped{Path: name, Reason: "instructions_" + reason})
	}
	if st.Size > maxInstructions {
		skip(tooLarge)
		return nil
	}
	c, why, err := keep(w, top, name, st)
	if why != "" {
		skip(why)
	}
	if err == nil && why == "" {
		s.Instructions = c.hash
	}
	return err
}

type nothing struct{}

// None returns "freeze/none": task and history only.
func None() kernel.Freeze { return nothing{} }

func (nothing) Spec() kernel.Spec {
	return kernel.Spec{ID: "freeze/none", Version: 1, Class: kernel.Pure, Parallel: true, Touches: []string{}, Doc: "Freezes task and history, not the folder",
		Options: kernel.NoOptions, In: kernel.Schema[kernel.Task](), Out: kernel.Schema[kernel.Snapshot]()}
}

func (nothing) Run(ctx context.Context, env kernel.Env, t kernel.Task) (kernel.Snapshot, error) {
	s, err := snapshot(ctx, env, t)
	s.Workspace = kernel.Workspace{Kind: "none", Path: t.Workspace}
	return s, err
}
