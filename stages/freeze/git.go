package freeze

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"witan/kernel"
)

// gitEnv keeps git from asking, paging, locking and running anything of the repository's.
var gitArgs = []string{"git", "--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"}

const (
	maxDirty     = 100_000
	maxDirtyFile = 64 << 20 // larger untracked or changed files are named, not stored
)

// git freezes a git folder; ok is false where dir is none or git is missing.
func (f stage) git(ctx context.Context, w kernel.PackWriter, dir string) (ws kernel.Workspace, ok bool, err error) {
	if !insideRepository(dir) {
		return ws, false, nil
	}
	out, err := f.output(ctx, dir, "rev-parse", "--is-inside-work-tree", "--show-toplevel", "--show-prefix")
	lines := strings.Split(string(out), "\n")
	if err != nil || len(lines) < 3 || lines[0] != "true" {
		return ws, false, ctx.Err()
	}
	top := lines[1]
	ws = kernel.Workspace{Kind: "git", Path: dir, Sub: strings.TrimSuffix(lines[2], "/")}
	out, err = f.output(ctx, dir, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames", "--", top)
	if err != nil {
		return ws, false, ctx.Err()
	}
	for _, rec := range strings.Split(string(out), "\x00") {
		d, ok := f.status(&ws, rec)
		if !ok {
			continue
		}
		if len(ws.Dirty) >= maxDirty {
			return ws, true, fail("workspace_too_dirty", fmt.Sprintf("more than %d files differ from the commit; add the rest to .gitignore", maxDirty))
		}
		store(w, top, &ws, d)
	}
	slices.SortFunc(ws.Dirty, func(a, b kernel.DirtyFile) int { return strings.Compare(a.Path, b.Path) })
	ws.Files = len(ws.Dirty)
	return ws, true, ctx.Err()
}

// insideRepository looks for .git upwards, so that plain folders cost no process.
func insideRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

func (f stage) output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	r, err := f.run.Run(ctx, kernel.Command{Argv: append(slices.Clone(gitArgs), args...), Dir: dir, Limit: 64 << 20})
	switch {
	case err != nil:
		return nil, err
	case r.Cut > 0:
		return nil, errors.New("git said too much")
	case r.Exit != 0:
		return nil, fmt.Errorf("git exited with %d: %s", r.Exit, r.Stderr)
	}
	return r.Stdout, nil
}

// status reads one record of git's porcelain v2.
func (f stage) status(ws *kernel.Workspace, rec string) (d kernel.DirtyFile, ok bool) {
	switch {
	case strings.HasPrefix(rec, "# branch.oid "):
		if oid := strings.TrimPrefix(rec, "# branch.oid "); oid != "(initial)" {
			ws.Commit = oid
		}
	case strings.HasPrefix(rec, "# branch.head "):
		if head := strings.TrimPrefix(rec, "# branch.head "); head != "(detached)" {
			ws.Branch = head
		}
	case strings.HasPrefix(rec, "? "):
		return kernel.DirtyFile{Path: rec[2:], Status: "untracked"}, true
	case strings.HasPrefix(rec, "1 "): // XY sub mH mI mW hH hI path
		if p := strings.SplitN(rec, " ", 9); len(p) == 9 {
			return kernel.DirtyFile{Path: p[8], Status: word(p[1])}, true
		}
	case strings.HasPrefix(rec, "u "): // XY sub m1 m2 m3 mW h1 h2 h3 path
		if p := strings.SplitN(rec, " ", 11); len(p) == 11 {
			return kernel.DirtyFile{Path: p[10], Status: "modified"}, true
		}
	}
	return d, false
}

func word(xy string) string {
	switch {
	case strings.Contains(xy, "D"):
		return "deleted"
	case strings.Contains(xy, "A"):
		return "added"
	}
	return "modified"
}

// store keeps the content of a file that differs, or says why not.
func store(w kernel.PackWriter, top string, ws *kernel.Workspace, d kernel.DirtyFile) {
	skip := func(reason string) { ws.Skipped = append(ws.Skipped, kernel.Skipped{Path: d.Path, Reason: reason}) }
	path := filepath.Join(top, filepath.FromSlash(d.Path))
	fi, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		d.Status = "deleted"
		ws.Dirty = append(ws.Dirty, d)
		return
	}
	if err != nil {
		skip("unreadable")
		return
	}
	switch {
	case fi.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			skip("unreadable")
			return
		}
		d.Mode, d.Bytes = "link", int64(len(target))
		if d.Hash, err = w.Add("blob", []byte(target)); err != nil {
			skip("unreadable")
			return
		}
	case !fi.Mode().IsRegular():
		skip("special")
		return
	case fi.Size() > maxDirtyFile:
		skip("too_large")
		return
	default:
		f, err := os.Open(path)
		if err != nil {
			skip("unreadable")
			return
		}
		d.Hash, d.Bytes, err = w.AddReader("blob", f, -1)
		f.Close()
		if err != nil {
			skip("unreadable")
			return
		}
		d.Mode = "0644"
		if fi.Mode()&0o111 != 0 {
			d.Mode = "0755"
		}
	}
	ws.Bytes += d.Bytes
	ws.Dirty = append(ws.Dirty, d)
}
