package isolation

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"witan/kernel"
	"witan/kernel/tree"
)

// Leftover is a place of a run that is over.
type Leftover struct {
	Name      string       `json:"name"`
	Run       kernel.RunID `json:"run"`
	How       string       `json:"how"`
	Dir       string       `json:"dir"`       // the content
	Workspace string       `json:"workspace"` // whose copy it is
	Files     int          `json:"files"`     // changed since the turn began; -1: nobody can tell
	Commits   int          `json:"commits"`   // on no branch; -1: nobody can tell
	Refused   string       `json:"refused,omitempty"`
}

// Leftovers lists the places of runs that live does not know. It changes nothing.
func (p *Places) Leftovers(ctx context.Context, live func(kernel.RunID) bool) ([]Leftover, error) {
	dir, err := p.resolved()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, disk("isolation.Leftovers", err, "the folder for places %s cannot be read", dir)
	}
	defer root.Close()
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, disk("isolation.Leftovers", err, "the folder for places %s cannot be read", dir)
	}
	out := []Leftover{}
	for _, n := range names {
		e, err := load(root, dir, n.Name())
		if err != nil || live != nil && live(e.Run) {
			continue
		}
		l := Leftover{Name: e.Name, Run: e.Run, How: e.How, Workspace: e.Workspace, Dir: e.dir()}
		pr, err := p.prove(ctx, root, e)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			l.Refused = sentence(err)
		}
		if l.Files, l.Commits = -1, -1; err == nil {
			l.Files, l.Commits = p.count(ctx, e, pr)
		}
		out = append(out, l)
	}
	return out, nil
}

// sentence is an error without the names of operations.
func sentence(err error) string {
	if e, ok := errors.AsType[*kernel.Error](err); ok && e.What != "" {
		return e.What
	}
	return err.Error()
}

// count says how much of a place is in no candidate and on no branch.
func (p *Places) count(ctx context.Context, e *entry, pr proof) (files, commits int) {
	if e.How == InPlace || !e.Ready || !pr.content {
		return 0, 0
	}
	files = -1
	if deltas, err := p.changed(ctx, e); err == nil {
		files = len(deltas)
	}
	if e.How != Worktree {
		return files, 0
	}
	return files, p.unmerged(ctx, e)
}

// changed compares a place of a run that is over with its beginning.
func (p *Places) changed(ctx context.Context, e *entry) ([]delta, error) {
	snap, err := kernel.GetObject[kernel.Snapshot](ctx, p.Packs, e.Snapshot)
	if err != nil {
		return nil, err
	}
	cand, err := p.candidate(ctx, kernel.Turn{Snapshot: e.Snapshot, Candidate: e.Candidate})
	if err != nil {
		return nil, err
	}
	if snap.Workspace.Kind == "git" {
		s, err := p.gitAt(ctx, e, snap.Workspace, e.dir())
		if err != nil {
			return nil, err
		}
		defer s.close()
		s.laid(cand)
		return s.compare(ctx, nil)
	}
	s, err := p.folderAt(e.dir(), snap.Workspace.Tree)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.laid(ctx, cand); err != nil {
		return nil, err
	}
	return s.compare(ctx, nil)
}

// Remove takes a place away, after proof. Content that differs from the beginning of
// its turn, and commits on no branch, are kept first: kept says where, as a ref or a
// folder, and is empty where there was nothing to keep. Conflict: the proof failed,
// and nothing was touched. A place that is gone already is no error.
func (p *Places) Remove(ctx context.Context, name string) (kept string, err error) {
	dir, err := p.resolved()
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(filepath.Join(dir, filepath.Base(name))); os.IsNotExist(err) {
		return "", nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", disk("isolation.Remove", err, "the folder for places %s cannot be opened", dir)
	}
	e, err := load(root, dir, name)
	root.Close()
	if err != nil {
		return "", err
	}
	keep := e.Ready && e.How != InPlace
	if keep {
		if deltas, err := p.changed(ctx, e); err == nil && len(deltas) == 0 {
			keep = false
		}
	}
	return p.remove(ctx, name, keep)
}

// remove proves, keeps what is to be kept, and removes. The marker goes last, so
// that it can be done again whatever happens in between.
func (p *Places) remove(ctx context.Context, name string, keep bool) (kept string, err error) {
	dir, err := p.resolved()
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", disk("isolation.Remove", err, "the folder for places %s cannot be opened", dir)
	}
	defer root.Close()
	e, err := load(root, dir, name)
	if err != nil {
		return "", err
	}
	pr, err := p.prove(ctx, root, e)
	if err != nil {
		return "", err
	}
	if pr.content && e.Ready {
		if kept, err = p.keep(ctx, root, e, pr, keep); err != nil {
			return "", err
		}
	}
	if err := removeAll(root, filepath.Join(name, name)); err != nil {
		return kept, disk("isolation.Remove", err, "place %s cannot be removed", name)
	}
	if pr.registered {
		if err := p.forget(ctx, e); err != nil {
			return kept, err
		}
	}
	left, err := tree.List(root, name)
	for _, f := range left {
		if f.Name() != markerFile && err == nil {
			err = removeAll(root, filepath.Join(name, f.Name()))
		}
	}
	if err == nil {
		err = root.Remove(filepath.Join(name, markerFile))
	}
	if err == nil {
		err = root.Remove(name)
	}
	if err != nil {
		return kept, disk("isolation.Remove", err, "place %s cannot be removed", name)
	}
	return kept, nil
}

// forget takes our worktree, of which the folder is gone, off git's list.
func (p *Places) forget(ctx context.Context, e *entry) error {
	g, err := tree.NewGit(ctx, p.Run, e.root, "GIT_DIR="+e.Repository)
	if err == nil {
		_, err = worktrees(ctx, g, e.Repository, "remove", "--force", e.dir())
	}
	return err
}

// removeAll removes a tree, links and not what they lead to, also where a turn left
// folders that may not be written.
func removeAll(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if err == nil {
		return nil
	}
	unlock(root, name)
	return root.RemoveAll(name)
}

// unlock makes folders ones that may be emptied.
func unlock(root *os.Root, dir string) {
	if fi, err := root.Lstat(dir); err != nil || !fi.IsDir() {
		return
	}
	_ = root.Chmod(dir, 0o700)
	entries, _ := tree.List(root, dir)
	for _, e := range entries {
		if e.IsDir() {
			unlock(root, filepath.Join(dir, e.Name()))
		}
	}
}
