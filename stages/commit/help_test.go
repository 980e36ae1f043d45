package commit_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/tree"
	"witan/stages/commit"
)

// shell is a kernel.Runner without supervision.
type shell struct{}

func (shell) Run(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, bytes.NewReader(c.Stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return kernel.CommandResult{}, kernel.E("shell", kernel.NotFound, err, "cannot start")
	}
	return kernel.CommandResult{Exit: cmd.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: errs.Bytes()}, nil
}

// result is a world with a workspace, and a result to commit there.
type result struct {
	*world
	dir  string
	snap kernel.Snapshot
	cand kernel.Candidate
}

// newResult is a workspace with files as they were frozen.
func newResult(t *testing.T, files map[string]string) *result {
	t.Helper()
	r := &result{world: newWorld(t), dir: filepath.Join(t.TempDir(), "ws")}
	r.must(os.Mkdir(r.dir, 0o755))
	r.write(files)
	r.snap = kernel.Snapshot{Version: 1, Text: "Make it better", Workspace: kernel.Workspace{Kind: "folder", Path: r.dir}}
	return r
}

func (r *result) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// write makes files, or deletes those with the text "gone"; a text "-> x" is a link
// to x, a name that ends with * an executable.
func (r *result) write(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		name, exe := strings.CutSuffix(name, "*")
		p := filepath.Join(r.dir, filepath.FromSlash(name))
		r.must(os.RemoveAll(p))
		if text == "gone" {
			continue
		}
		r.must(os.MkdirAll(filepath.Dir(p), 0o755))
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			r.must(os.Symlink(target, p))
			continue
		}
		mode := fs.FileMode(0o644)
		if exe {
			mode = 0o755
		}
		r.must(os.WriteFile(p, []byte(text), mode))
	}
}

func (r *result) blob(text string) kernel.Digest {
	r.t.Helper()
	d, err := r.mem.Put(context.Background(), "blob", []byte(text))
	r.must(err)
	return d
}

// mode and content of a file in the form that write takes.
func (r *result) part(name, text string) (mode string, d kernel.Digest, size int64) {
	if text == "" {
		return "", kernel.Digest{}, 0
	}
	mode = "0644"
	if strings.HasSuffix(name, "*") {
		mode = "0755"
	}
	if target, ok := strings.CutPrefix(text, "-> "); ok {
		mode, text = "link", target
	}
	return mode, r.blob(text), int64(len(text))
}

// change adds a file to the candidate; "" is none. The name of the new one decides
// whether it is executable, that of the old one if it begins with "*".
func (r *result) change(name, was, is string) {
	r.t.Helper()
	old, wasExe := strings.CutPrefix(name, "*")
	f := kernel.CandidateFile{Path: tree.EncodePath(strings.TrimSuffix(old, "*")), What: "modified"}
	f.Mode, f.Hash, f.Bytes = r.part(old, is)
	if wasExe {
		old += "*"
	} else {
		old = strings.TrimSuffix(old, "*")
	}
	f.BaseMode, f.Base, _ = r.part(old, was)
	r.cand.Files = append(r.cand.Files, f)
	slices.SortFunc(r.cand.Files, func(a, b kernel.CandidateFile) int { return strings.Compare(a.Path, b.Path) })
}

func (r *result) verdict() kernel.Verdict {
	r.t.Helper()
	v := kernel.Verdict{Version: 1, Scope: "run", Run: "run_1", Status: "completed", Snapshot: r.object("snapshot", r.snap)}
	r.cand.Version, r.cand.Snapshot = 1, v.Snapshot
	v.Candidate = r.object("candidate", r.cand)
	return v
}

func (r *result) run(stage kernel.Commit, options string) (kernel.Result, error) {
	env := r.env(1)
	env.Options = []byte(options)
	return stage.Run(context.Background(), env, r.verdict())
}

func (r *result) apply() error {
	r.t.Helper()
	res, err := r.run(commit.Apply(r.mem, shell{}), "")
	if err == nil && (res.Target != "workspace" || res.Content != r.verdict().Candidate || res.Commit != kernel.DeriveID(kernel.CommitPrefix, "run_1")) {
		r.t.Errorf("%+v", res)
	}
	return err
}

// fails checks that err is a failure that says certain things.
func (r *result) fails(err error, reason string, says ...string) {
	r.t.Helper()
	f, ok := errors.AsType[*kernel.Failure](err)
	if !ok || f.Class != kernel.ClassExecution || f.Reason != reason || f.Effects {
		r.t.Errorf("%v, want %s", err, reason)
		return
	}
	for _, s := range says {
		if !strings.Contains(f.Text, s) {
			r.t.Errorf("%q does not say %q", f.Text, s)
		}
	}
}

// has compares the workspace with files in the form that write takes.
func (r *result) has(want map[string]string) {
	r.t.Helper()
	got := map[string]string{}
	r.must(filepath.WalkDir(r.dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(r.dir, p)
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case d.Type() == fs.ModeSymlink:
			l, err := os.Readlink(p)
			got[rel] = "-> " + l
			return err
		}
		b, err := os.ReadFile(p)
		if fi, ferr := d.Info(); ferr == nil && fi.Mode()&0o100 != 0 {
			rel += "*"
		}
		got[rel] = string(b)
		return err
	}))
	for name, text := range want {
		if g, ok := got[name]; !ok || g != text {
			r.t.Errorf("%q is %q (%v), want %q", name, g, ok, text)
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok {
			r.t.Errorf("%q is there: %q", name, g)
		}
	}
}
