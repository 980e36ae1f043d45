package freeze

import (
	"cmp"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"witan/kernel"
	"witan/kernel/tree"
)

// maxDirty bounds the files that a snapshot lists one by one; a folder with more
// is frozen as a tree.
const maxDirty = 10_000

// git freezes a git folder. ok is false where dir is none or git is of no use;
// note then says why, if dir looks like one.
func (f stage) git(ctx context.Context, w kernel.PackWriter, o options, dir string) (ws kernel.Workspace, ok bool, note string, err error) {
	if !insideRepository(dir) {
		return ws, false, "", nil
	}
	g, err := tree.NewGit(ctx, f.run, dir)
	if err != nil {
		return ws, false, useless(err), ctx.Err()
	}
	top, sub, why := place(ctx, g, dir)
	if why != "" {
		return ws, false, why, ctx.Err()
	}
	ws = kernel.Workspace{Kind: "git", Path: dir, Sub: tree.EncodePath(sub)}
	files, why := status(ctx, g, &ws)
	if why != "" || len(files) > maxDirty {
		return ws, false, cmp.Or(why, "too_many_changes"), ctx.Err()
	}
	root, err := f.disk.Open(top)
	if err != nil {
		return ws, false, reason(err), nil
	}
	defer root.Close()
	for _, d := range files {
		if err := ctx.Err(); err != nil {
			return ws, true, "", err
		}
		if err := dirty(w, o, root, d, &ws); err != nil {
			return ws, true, "", err
		}
	}
	ws.Files = len(ws.Dirty)
	return ws, true, "", nil
}

// useless says why git does not help.
func useless(err error) string {
	if kernel.IsKind(err, kernel.NotFound) {
		return "git_missing"
	}
	return "git_refuses"
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

// place finds the top of the repository, and dir below it. why says that dir is
// not part of it after all: it is ignored, or the repository lies about where it is.
func place(ctx context.Context, g *tree.Git, dir string) (top, sub, why string) {
	out, err := g.Output(ctx, "rev-parse", "--is-inside-work-tree")
	if err != nil {
		return "", "", useless(err)
	}
	if strings.TrimSpace(string(out)) != "true" {
		return "", "", "not_a_work_tree"
	}
	if top, err = line(g.Output(ctx, "rev-parse", "--show-toplevel")); err != nil {
		return "", "", useless(err)
	}
	if sub, err = line(g.Output(ctx, "rev-parse", "--show-prefix")); err != nil {
		return "", "", useless(err)
	}
	sub = strings.TrimSuffix(sub, "/")
	is, err1 := os.Stat(filepath.Join(filepath.FromSlash(top), filepath.FromSlash(sub)))
	want, err2 := os.Stat(dir)
	if err1 != nil || err2 != nil || !os.SameFile(is, want) {
		return "", "", "git_refuses"
	}
	if sub == "" {
		return top, "", ""
	}
	if _, err := g.Output(ctx, "check-ignore", "-q", "."); err == nil {
		return "", "", "ignored"
	}
	return top, sub, ""
}

// line cuts the line end, and only that, off what a program printed.
func line(out []byte, err error) (string, error) {
	return strings.TrimSuffix(strings.TrimSuffix(string(out), "\n"), "\r"), err
}

// changed is a file that differs, as git names it.
type changed struct {
	path, status string
	submodule    bool
}

// status fills in commit and branch and returns what differs, sorted by path.
func status(ctx context.Context, g *tree.Git, ws *kernel.Workspace) (files []changed, why string) {
	out, err := g.Output(ctx, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames", "--no-ahead-behind")
	if err != nil {
		return nil, "git_refuses"
	}
	for rec := range strings.SplitSeq(string(out), "\x00") {
		head, rest, _ := strings.Cut(rec, " ")
		switch head {
		case "#":
			header(ws, rest)
		case "?":
			files = append(files, changed{path: rest, status: "untracked"})
		case "1": // XY sub mH mI mW hH hI path
			if p := strings.SplitN(rest, " ", 8); len(p) == 8 {
				files = append(files, changed{p[7], word(p[0]), p[1][0] == 'S'})
			}
		case "u": // XY sub m1 m2 m3 mW h1 h2 h3 path
			if p := strings.SplitN(rest, " ", 10); len(p) == 10 {
				files = append(files, changed{p[9], "modified", p[1][0] == 'S'})
			}
		}
	}
	// A file that is deleted in the index and there in the folder comes twice.
	slices.SortStableFunc(files, func(a, b changed) int { return cmp.Compare(a.path, b.path) })
	return slices.CompactFunc(files, func(a, b changed) bool { return a.path == b.path }), ""
}

func header(ws *kernel.Workspace, rest string) {
	if oid, ok := strings.CutPrefix(rest, "branch.oid "); ok && oid != "(initial)" {
		ws.Commit = oid
	}
	if name, ok := strings.CutPrefix(rest, "branch.head "); ok && name != "(detached)" {
		ws.Branch = tree.EncodePath(name)
	}
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

// dirty keeps the content of a file that differs, or notes why not.
func dirty(w kernel.PackWriter, o options, root Folder, c changed, ws *kernel.Workspace) error {
	d := kernel.DirtyFile{Path: tree.EncodePath(c.path), Status: c.status}
	skip := func(why string) error {
		ws.Skipped = append(ws.Skipped, kernel.Skipped{Path: d.Path, Reason: why})
		return nil
	}
	if c.submodule || strings.HasSuffix(c.path, "/") { // or a repository in this one
		return skip(submodule)
	}
	k, why, err := keepBelow(w, o, root, path.Clean(c.path))
	switch {
	case err != nil:
		return err
	case why == gone:
		d.Status = "deleted"
		ws.Dirty = append(ws.Dirty, d)
		return nil
	case why != "":
		return skip(why)
	}
	if d.Status == "deleted" {
		d.Status = "modified" // in the index only
	}
	d.Hash, d.Bytes = k.hash, k.size
	switch typeOf(&k.stat) {
	case tree.Link:
		d.Mode = "link"
	case tree.Exec:
		d.Mode = "0755"
	default:
		d.Mode = "0644"
	}
	ws.Bytes += d.Bytes
	ws.Dirty = append(ws.Dirty, d)
	return nil
}

// keepBelow keeps the file at a path, of which no element is followed: behind a
// link, or where a folder is now, there is no file of the repository.
func keepBelow(w kernel.PackWriter, o options, dir Folder, name string) (k kept, why string, err error) {
	first, rest, deeper := strings.Cut(name, "/")
	if deeper {
		sub, err := dir.Folder(first)
		switch {
		case err != nil && isNotFolder(err):
			return k, gone, nil
		case err != nil:
			return k, reason(err), nil
		}
		defer sub.Close()
		return keepBelow(w, o, sub, rest)
	}
	st, err := dir.Stat(name)
	switch {
	case err != nil:
		return k, reason(err), nil
	case st.Kind == Directory:
		return k, gone, nil
	case st.Kind == Special:
		return k, special, nil
	case st.Kind == Regular && st.Size > o.maxFile():
		return k, tooLarge, nil
	}
	return keep(w, dir, name, st)
}
