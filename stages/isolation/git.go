package isolation

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"witan/kernel"
	"witan/kernel/tree"
)

// gitSource compares a work tree of git with an index as it was when the turn began.
type gitSource struct {
	git   *tree.Git // GIT_DIR, GIT_WORK_TREE and GIT_INDEX_FILE are set
	ws    kernel.Workspace
	sub   string // of the workspace below the top
	root  *os.Root
	start map[string]tree.Found // what differed from the index then; paths below the top
	temp  string                // folder for what git writes
	index string
}

// worktree adds one at the frozen commit. Submodules come along as plain files.
func (pl *Place) worktree(ctx context.Context) error {
	e, ws := pl.entry, pl.snap.Workspace
	g, err := tree.NewGit(ctx, pl.places.Run, ws.Path)
	if err != nil {
		return err
	}
	if bare, err := line(g.Output(ctx, "rev-parse", "--is-bare-repository")); err != nil || bare == "true" {
		if err != nil {
			return err
		}
		return kernel.E("isolation.Open", kernel.Unsupported, nil, "%s is a bare repository, which has no files to work on", ws.Path).WithNext("clone it and choose the clone")
	}
	if e.Repository, err = absolute(ws.Path)(line(g.Output(ctx, "rev-parse", "--git-common-dir"))); err != nil {
		return err
	}
	top, err := line(g.Output(ctx, "rev-parse", "--show-toplevel"))
	if err != nil {
		return err
	}
	if err := e.save(); err != nil { // before git knows of it
		return err
	}
	if _, err := worktrees(ctx, g, e.Repository, "add", "--quiet", "--detach", e.dir(), ws.Commit); err != nil {
		return err
	}
	in, err := tree.NewGit(ctx, pl.places.Run, e.dir())
	if err != nil {
		return err
	}
	if e.Admin, err = line(in.Output(ctx, "rev-parse", "--absolute-git-dir")); err != nil {
		return err
	}
	tree.Submodules(ctx, pl.places.Run, pl.places.Packs, top, e.dir(), ws.Commit)
	return ctx.Err()
}

// openGit notes the index, and what differs from it.
func (pl *Place) openGit(ctx context.Context) (source, error) {
	e, ws := pl.entry, pl.snap.Workspace
	top := e.dir()
	if pl.How != Worktree { // a copy has git's folder of the person's repository, for what it ignores
		g, err := tree.NewGit(ctx, pl.places.Run, ws.Path)
		if err != nil {
			return nil, err
		}
		if e.Admin, err = line(g.Output(ctx, "rev-parse", "--absolute-git-dir")); err != nil {
			return nil, err
		}
		if pl.How == InPlace {
			if top, err = line(g.Output(ctx, "rev-parse", "--show-toplevel")); err != nil {
				return nil, err
			}
		}
	}
	if pl.How != Copy {
		if err := copyFile(filepath.Join(e.Admin, "index"), e.at(indexFile)); err != nil {
			return nil, disk("isolation.Open", err, "git's index cannot be read")
		}
	}
	s, err := pl.places.gitAt(ctx, e, ws, top)
	if err != nil {
		return nil, err
	}
	if pl.How == InPlace {
		err = s.note(ctx)
	} else {
		s.laid(pl.cand)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// gitAt opens the work tree at top with the index of e.
func (p *Places) gitAt(ctx context.Context, e *entry, ws kernel.Workspace, top string) (*gitSource, error) {
	s := &gitSource{ws: ws, sub: tree.DecodePath(ws.Sub), temp: e.at(""), index: e.at(indexFile), start: map[string]tree.Found{}}
	env := []string{"GIT_DIR=" + e.Admin, "GIT_WORK_TREE=" + top, "GIT_INDEX_FILE=" + s.index}
	var err error
	if s.git, err = tree.NewGit(ctx, p.Run, top, env...); err != nil {
		return nil, err
	}
	if s.root, err = os.OpenRoot(top); err != nil {
		return nil, disk("isolation.Open", err, "the folder %s cannot be opened", top)
	}
	return s, nil
}

func (s *gitSource) close() { _ = s.root.Close() }

// laid notes what was laid over the commit: the snapshot's files and a candidate's.
func (s *gitSource) laid(c kernel.Candidate) {
	for _, d := range s.ws.Dirty {
		s.start[tree.DecodePath(d.Path)] = normal(d.Hash, d.Mode, d.Bytes)
	}
	for _, f := range c.Files {
		s.start[path.Join(s.sub, tree.DecodePath(f.Path))] = normal(f.Hash, f.Mode, f.Bytes)
	}
}

// note reads what differs from the index now. Files that the person asked git to
// take for unchanged are looked at too.
func (s *gitSource) note(ctx context.Context) error {
	if err := s.assumeNothing(ctx); err != nil {
		return err
	}
	paths, err := s.differing(ctx)
	for _, p := range paths {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			s.start[p], err = tree.Look(nil, s.root, p)
		}
	}
	return err
}

// assumeNothing has our index look at files that the person's takes for unchanged.
func (s *gitSource) assumeNothing(ctx context.Context) error {
	out, err := s.git.Output(ctx, "ls-files", "-v", "-z")
	if err != nil {
		return err
	}
	var assumed []byte
	for _, rec := range split(out) { // letter space path; a small letter: assumed
		if rec[0] >= 'a' && rec[0] <= 'z' {
			assumed = append(append(assumed, rec[2:]...), 0)
		}
	}
	if len(assumed) > 0 {
		_, err = s.git.OutputIn(ctx, nil, assumed, "update-index", "--no-assume-unchanged", "-z", "--stdin")
	}
	return err
}

// differing lists what may differ from the index, and what is not in it and not
// ignored. A repository inside has a slash at its end.
func (s *gitSource) differing(ctx context.Context) ([]string, error) {
	changed, err := s.git.Output(ctx, "diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=all")
	if err != nil {
		return nil, err
	}
	others, err := s.git.Output(ctx, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return split(slices.Concat(changed, others)), nil
}

func split(b []byte) []string {
	out := strings.Split(string(b), "\x00")
	return out[:len(out)-1]
}

func (s *gitSource) compare(ctx context.Context, w kernel.PackWriter) ([]delta, error) {
	now, err := s.differing(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.AppendSeq(now, maps.Keys(s.start))
	slices.Sort(all)
	all = slices.Compact(all)
	var clean []string
	for _, p := range all {
		if _, ok := s.start[p]; !ok {
			clean = append(clean, p)
		}
	}
	was, err := s.contents(ctx, nil, s.index, clean)
	if err != nil {
		return nil, err
	}
	maps.Copy(was, s.start)
	var out []delta
	for _, p := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		is, err := tree.Look(w, s.root, p)
		if err != nil {
			return nil, err
		}
		if is != was[p] {
			out = append(out, delta{s.below(p), was[p], is})
		}
	}
	slices.SortFunc(out, func(a, b delta) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// below is a path of the top as one of the workspace.
func (s *gitSource) below(p string) string {
	if s.sub == "" {
		return p
	}
	if rest, ok := strings.CutPrefix(p, s.sub+"/"); ok {
		return rest
	}
	return strings.Repeat("../", strings.Count(s.sub, "/")+1) + p
}

func (s *gitSource) base(ctx context.Context, w kernel.PackWriter, paths []string) (map[string]tree.Found, error) {
	frozen := map[string]tree.Found{}
	for _, d := range s.ws.Dirty {
		frozen[s.below(tree.DecodePath(d.Path))] = normal(d.Hash, d.Mode, d.Bytes)
	}
	out, clean := map[string]tree.Found{}, []string{}
	for _, p := range paths {
		if f, ok := frozen[p]; ok {
			out[p] = f
		} else {
			clean = append(clean, path.Join(s.sub, p))
		}
	}
	if s.ws.Commit == "" || len(clean) == 0 {
		return out, nil
	}
	index := filepath.Join(s.temp, "index.base")
	defer os.Remove(index)
	if _, err := s.git.OutputEnv(ctx, []string{"GIT_INDEX_FILE=" + index}, "read-tree", s.ws.Commit); err != nil {
		return nil, err
	}
	of, err := s.contents(ctx, w, index, clean)
	for p, f := range of {
		out[s.below(p)] = f
	}
	return out, err
}

// contents tells what an index has at paths, as git checks it out.
func (s *gitSource) contents(ctx context.Context, w kernel.PackWriter, index string, paths []string) (map[string]tree.Found, error) {
	out := map[string]tree.Found{}
	if len(paths) == 0 {
		return out, nil
	}
	env := []string{"GIT_INDEX_FILE=" + index}
	listed, err := s.git.OutputEnv(ctx, env, "ls-files", "-z", "--stage")
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for _, p := range paths {
		want[p] = true
	}
	var have []string
	for _, rec := range split(listed) { // mode object stage TAB path
		head, p, _ := strings.Cut(rec, "\t")
		if want[p] && strings.HasSuffix(head, " 0") && !strings.HasPrefix(head, "160000 ") {
			have = append(have, p)
		}
	}
	if len(have) == 0 {
		return out, nil
	}
	dir, err := os.MkdirTemp(s.temp, "base-")
	if err != nil {
		return nil, disk("isolation", err, "no room to look at the files as they were")
	}
	defer os.RemoveAll(dir)
	// An empty work tree: what the turn did to .gitattributes must not count.
	g := *s.git
	g.Dir, env = dir, append(env, "GIT_WORK_TREE="+dir)
	if _, err := g.OutputIn(ctx, env, []byte(strings.Join(have, "\x00")+"\x00"), "checkout-index", "-z", "--stdin", "--prefix="+dir+"/"); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, disk("isolation", err, "the files as they were cannot be read")
	}
	defer root.Close()
	for _, p := range have {
		if out[p], err = tree.Look(w, root, p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// line cuts the line end, and only that, off what git printed.
func line(out []byte, err error) (string, error) {
	return strings.TrimSuffix(strings.TrimSuffix(string(out), "\n"), "\r"), err
}

// absolute makes a path that git printed in dir one that holds anywhere.
func absolute(dir string) func(string, error) (string, error) {
	return func(p string, err error) (string, error) {
		if err != nil || filepath.IsAbs(p) {
			return p, err
		}
		return filepath.Join(dir, p), nil
	}
}

// copyFile copies a file with its time, by which git tells what it must look at
// again; one that is not there gives none.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	fi, serr := in.Stat()
	if err == nil && serr == nil {
		err = os.Chtimes(to, fi.ModTime(), fi.ModTime())
	}
	return errors.Join(err, serr)
}
