package isolation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/isolation"
)

func (w *world) leftovers() []isolation.Leftover {
	w.t.Helper()
	ls, err := w.places.Leftovers(w.t.Context(), func(r kernel.RunID) bool { return r == "run_live" })
	w.must(err)
	return ls
}

func (w *world) one() isolation.Leftover {
	w.t.Helper()
	ls := w.leftovers()
	if len(ls) != 1 {
		w.t.Fatalf("%+v", ls)
	}
	return ls[0]
}

func (w *world) remove(l isolation.Leftover) string {
	w.t.Helper()
	kept, err := w.places.Remove(w.t.Context(), l.Name)
	w.must(err)
	return kept
}

// refused checks that neither Close nor Remove touches a place, and that the list
// says so.
func (w *world) refused(pl *isolation.Place, says string) {
	w.t.Helper()
	l := w.one()
	if !strings.Contains(l.Refused, says) {
		w.t.Errorf("refused: %q, want %q in it", l.Refused, says)
	}
	if _, err := w.places.Remove(w.t.Context(), l.Name); !kernel.IsKind(err, kernel.Conflict) || !strings.Contains(err.Error(), says) {
		w.t.Errorf("Remove: %v", err)
	}
	if err := pl.Close(w.t.Context()); !kernel.IsKind(err, kernel.Conflict) {
		w.t.Errorf("Close: %v", err)
	}
	w.one()
}

// The person's own folder: only our record goes.
func TestLeftoverInPlace(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	w.write(w.dir, map[string]string{"a.txt": "mine"})
	before := w.content(w.dir)
	w.open(w.freeze(""), inPlace)
	w.open(w.freeze(""), inPlace, func(t *kernel.Turn) { t.Run = "run_live" })
	if l := w.one(); l.How != isolation.InPlace || l.Refused != "" || l.Files != 0 || l.Workspace != w.dir {
		t.Errorf("%+v", l)
	}
	if kept := w.remove(w.one()); kept != "" || len(w.leftovers()) != 0 {
		t.Errorf("kept %q", kept)
	}
	w.equal(w.content(w.dir), before)
}

// Uncommitted and untracked work of a run that died is listed, and kept at a ref.
func TestLeftoverWork(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	w.write(w.dir, map[string]string{"dirty": "person"})
	snap := w.freeze("")
	pl := w.open(snap)
	w.write(pl.Dir, map[string]string{"a.txt": "agent", "new \xff": "agent", "ignored": "not kept"})
	l := w.one()
	if l.Files != 2 || l.Commits != 0 || l.Refused != "" || l.Run != "run_1" || l.Dir != pl.Dir {
		t.Errorf("%+v", l)
	}
	ref := w.remove(l)
	if !strings.HasPrefix(ref, "refs/witan/kept/run_1-") {
		t.Fatalf("kept at %q", ref)
	}
	if got := w.git("show", ref+":a.txt"); got != "agent" {
		t.Errorf("a.txt: %q", got)
	}
	if got := w.git("show", ref+":new \xff"); got != "agent" {
		t.Errorf("new: %q", got)
	}
	if got := w.git("log", "-1", "--format=%P %(trailers:key=Witan-Run,valueonly)", ref); got != snap.Workspace.Commit+" run_1\n" {
		t.Errorf("commit: %q", got)
	}
	w.nothingLeft()
	if kept := w.remove(l); kept != "" {
		t.Errorf("again: %q", kept)
	}
	// Nothing was done: nothing is kept.
	w.open(snap)
	if kept := w.remove(w.one()); kept != "" {
		t.Errorf("kept %q", kept)
	}
	w.nothingLeft()
}

// So is what a place holds that is closed without being captured.
func TestCloseKeepsWhatWasNotCaptured(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	pl := w.open(w.freeze(""))
	w.write(pl.Dir, map[string]string{"a.txt": "agent"})
	w.close(pl)
	w.nothingLeft()
	if got := w.git("for-each-ref", "--format=%(refname)", "refs/witan"); strings.Count(got, "kept/run_1-") != 1 || w.git("show", got+":a.txt") != "agent" {
		t.Errorf("kept: %q", got)
	}
	folder := newWorld(t)
	folder.write(folder.dir, map[string]string{"a": "1"})
	pl = folder.open(folder.freeze(""))
	folder.write(pl.Dir, map[string]string{"a": "agent"})
	folder.close(pl)
	kept, err := filepath.Glob(filepath.Join(folder.places.Root, "kept", "run_1-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	folder.equal(folder.content(kept[0]), map[string]string{"a": "agent"})
	if ls := folder.leftovers(); len(ls) > 0 {
		t.Errorf("what was kept is listed as left over: %+v", ls)
	}
}

// Commits on no branch are counted, and kept even if the content was captured.
func TestLeftoverCommits(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	pl := w.open(w.freeze(""))
	w.write(pl.Dir, map[string]string{"a.txt": "agent"})
	w.gitIn(pl.Dir, "commit", "-q", "-a", "-m", "one")
	w.gitIn(pl.Dir, "commit", "-q", "--allow-empty", "-m", "two")
	head := w.gitIn(pl.Dir, "rev-parse", "HEAD")
	_, files, _ := w.capture(pl)
	w.list(files, "a.txt modified")
	if l := w.one(); l.Commits != 2 || l.Files != 1 {
		t.Errorf("%+v", l)
	}
	w.close(pl)
	w.nothingLeft()
	if got := w.git("for-each-ref", "--format=%(objectname)", "refs/witan/kept/"); got != head {
		t.Errorf("kept %q, want %s", got, head)
	}
}

// A folder that was removed by hand converges, and git forgets ours only.
func TestLeftoverRemovedOutside(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	mine := filepath.Join(w.home, "mine")
	w.git("worktree", "add", "-q", "--detach", mine)
	w.must(os.RemoveAll(mine)) // the person's own, perhaps on a disk that is not there now
	pl := w.open(w.freeze(""))
	w.must(os.RemoveAll(pl.Dir))
	if l := w.one(); l.Refused != "" || l.Files != 0 {
		t.Errorf("%+v", l)
	}
	if kept := w.remove(w.one()); kept != "" || len(w.leftovers()) > 0 {
		t.Errorf("kept %q", kept)
	}
	if got := w.git("worktree", "list", "--porcelain"); !strings.Contains(got, mine) || strings.Contains(got, pl.Dir) {
		t.Errorf("git has\n%s", got)
	}
	// With git's own command, and with all of the folder.
	pl = w.open(w.freeze(""))
	w.git("worktree", "remove", "--force", pl.Dir)
	w.must(pl.Close(t.Context()))
	pl = w.open(w.freeze(""))
	w.must(os.RemoveAll(filepath.Dir(pl.Dir)))
	if kept, err := w.places.Remove(t.Context(), filepath.Base(pl.Dir)); kept != "" || err != nil || len(w.leftovers()) > 0 {
		t.Errorf("%q, %v", kept, err)
	}
}

func TestLeftoverIsALink(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	home := filepath.Join(w.home, "home")
	w.write(home, map[string]string{"precious": "1", ".git": "gitdir: elsewhere"})
	pl := w.open(w.freeze(""))
	w.must(os.Rename(pl.Dir, pl.Dir+"-away"))
	w.must(os.Symlink(home, pl.Dir))
	w.refused(pl, "is now a link")
	w.equal(w.content(home), map[string]string{"precious": "1"})

	// The whole entry, with a marker that looks right.
	w = newRepo(t, project)
	pl = w.open(w.freeze(""))
	entry := filepath.Dir(pl.Dir)
	w.must(os.Rename(entry, filepath.Join(w.home, "away")))
	w.must(os.Symlink(filepath.Join(w.home, "away"), entry))
	if ls := w.leftovers(); len(ls) != 0 {
		t.Errorf("%+v", ls)
	}
	if _, err := w.places.Remove(t.Context(), filepath.Base(entry)); !kernel.IsKind(err, kernel.NotFound) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(w.home, "away", filepath.Base(entry), "a.txt")); err != nil {
		t.Error(err)
	}
}

// A branch that the person checked out in the place is never touched, nor is the place.
func TestLeftoverHasABranch(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	pl := w.open(w.freeze(""))
	w.gitIn(pl.Dir, "switch", "-q", "-c", "persons")
	w.write(pl.Dir, map[string]string{"a.txt": "agent"})
	w.refused(pl, "branch persons is checked out")
	if got := w.content(pl.Dir)["a.txt"]; got != "agent" {
		t.Errorf("%q", got)
	}
	w.gitIn(pl.Dir, "switch", "-q", "--detach")
	w.remove(w.one())
	w.nothingLeft()
	if got := w.git("branch", "--list", "persons"); !strings.Contains(got, "persons") {
		t.Error("the branch is gone")
	}
}

func TestLeftoverUnproven(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	pl := w.open(w.freeze(""))
	w.git("worktree", "lock", pl.Dir)
	w.refused(pl, "locked")
	w.git("worktree", "unlock", pl.Dir)
	w.must(os.Rename(filepath.Join(pl.Dir, ".git"), filepath.Join(w.home, "aside")))
	w.git("worktree", "prune", "--expire=now")
	w.refused(pl, "git does not know")

	for name, spoil := range map[string]func(marker string){
		"no marker":    func(m string) { w.must(os.Remove(m)) },
		"other marker": func(m string) { w.must(os.WriteFile(m, []byte(`{"version":1}`), 0o600)) },
		"marker of other": func(m string) {
			b, _ := os.ReadFile(m)
			w.must(os.WriteFile(m, []byte(strings.ReplaceAll(string(b), "run_1-", "run_1-0")), 0o600))
		},
		"unknown field":    func(m string) { w.must(os.WriteFile(m, []byte(`{"version":1,"x":1}`), 0o600)) },
		"marker is a link": func(m string) { w.must(os.Rename(m, m+"2")); w.must(os.Symlink(m+"2", m)) },
	} {
		w = newRepo(t, project)
		pl := w.open(w.freeze(""))
		spoil(filepath.Join(filepath.Dir(pl.Dir), "marker.json"))
		if ls := w.leftovers(); len(ls) > 0 {
			t.Errorf("%s: %+v", name, ls)
		}
		if _, err := w.places.Remove(t.Context(), filepath.Base(pl.Dir)); !kernel.IsKind(err, kernel.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
		if w.content(pl.Dir)["a.txt"] == "" {
			t.Errorf("%s: the place was touched", name)
		}
	}
	for _, name := range []string{"", ".", "..", "kept", "../ws", "a/b", w.dir} {
		if kept, err := w.places.Remove(t.Context(), name); err == nil && kept != "" || err != nil && !kernel.IsKind(err, kernel.NotFound) {
			t.Errorf("%q: %q, %v", name, kept, err)
		}
	}
	if w.content(w.dir)["a.txt"] == "" {
		t.Error("the workspace was touched")
	}
}

// The repository is gone: nothing can be proved, so nothing is deleted.
func TestLeftoverWithoutRepository(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	pl := w.open(w.freeze(""))
	w.write(pl.Dir, map[string]string{"a.txt": "agent"})
	w.must(os.RemoveAll(w.dir))
	kept := w.remove(w.one())
	if len(w.leftovers()) > 0 || w.content(kept)["a.txt"] != "agent" {
		t.Errorf("kept at %q", kept)
	}
}

// What git cannot take is kept as a folder: a repository inside the place.
func TestLeftoverWithARepositoryInside(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	pl := w.open(w.freeze(""))
	w.git("init", "-q", filepath.Join(pl.Dir, "inner"))
	w.write(pl.Dir, map[string]string{"inner/x": "agent"})
	w.gitIn(pl.Dir, "commit", "-q", "--allow-empty", "-m", "one")
	_, files, changes := w.capture(pl)
	w.list(files)
	w.list(changes, "inner/ added")
	kept := w.remove(w.one())
	if !filepath.IsAbs(kept) || w.content(kept)["inner/x"] != "agent" {
		t.Errorf("kept at %q", kept)
	}
	if got := w.git("for-each-ref", "--format=%(subject)", "refs/witan/kept/"); got != "one" {
		t.Errorf("the commit: %q", got)
	}
	if ls := w.leftovers(); len(ls) > 0 || strings.Count(w.git("worktree", "list", "--porcelain"), "worktree ") != 1 {
		t.Errorf("%+v", ls)
	}
}

// An Open that a crash cut off leaves a place that goes away without a trace.
func TestLeftoverOfOpen(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	pl := w.open(w.freeze(""))
	m := filepath.Join(filepath.Dir(pl.Dir), "marker.json")
	b, err := os.ReadFile(m)
	w.must(err)
	w.must(os.WriteFile(m, []byte(strings.Replace(string(b), `"ready":true`, `"ready":false`, 1)), 0o600))
	w.must(os.Remove(filepath.Join(pl.Dir, "a.txt")))
	if kept := w.remove(w.one()); kept != "" {
		t.Errorf("kept %q", kept)
	}
	w.nothingLeft()
}
