package isolation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/isolation"
)

// A turn that replaces folders with links to outside, and what git reads with its
// own, gains nothing: neither reading nor writing nor running.
func TestHostileTurn(t *testing.T) {
	t.Parallel()
	base := map[string]string{"dir/secret": "public", "sub/x": "1"}
	git, folder := newRepo(t, base), newWorld(t)
	folder.write(folder.dir, base)
	for name, w := range map[string]*world{"git": git, "folder": folder} {
		outside := filepath.Join(w.home, "outside")
		w.write(outside, map[string]string{"secret": "mine"})
		ran := filepath.Join(w.home, "ran")
		snap := w.freeze("")
		pl := w.open(snap)
		w.must(os.RemoveAll(filepath.Join(pl.Dir, "dir")))
		w.must(os.Symlink(outside, filepath.Join(pl.Dir, "dir")))
		w.must(os.RemoveAll(filepath.Join(pl.Dir, ".git")))
		w.write(pl.Dir, map[string]string{
			".git/config":    "[core]\n\tfsmonitor = touch '" + ran + "'\n\tworktree = /\n[filter \"x\"]\n\tclean = touch '" + ran + "'\n",
			".git/HEAD":      "ref: refs/heads/evil\n",
			".gitattributes": "* filter=x\n", "sub/x": "2", "deep/.GIT/hooks/x*": "evil"})
		w.must(os.MkdirAll(filepath.Join(pl.Dir, ".git", "objects"), 0o755))
		w.must(os.MkdirAll(filepath.Join(pl.Dir, ".git", "refs"), 0o755))
		w.write(pl.Dir, map[string]string{"locked/\xff/f": "1"})
		w.must(os.Chmod(filepath.Join(pl.Dir, "locked", "\xff"), 0o555))
		d, files, _ := w.capture(pl)
		w.list(files, ".gitattributes added", "dir added", "dir/secret deleted", "locked/\uf7ff/f added", "sub/x modified")
		for p := range w.packs.List(t.Context()) {
			if b, err := w.packs.Get(t.Context(), p.Hash); err != nil || string(b) == "mine" {
				t.Errorf("%s: a file outside was read, %v", name, err)
			}
		}
		w.must(pl.Close(t.Context()))
		w.nothingLeft()
		pl = w.open(snap, reader, from(d))
		w.close(pl)
		w.equal(w.content(outside), map[string]string{"secret": "mine"})
		if _, err := os.Lstat(ran); !os.IsNotExist(err) {
			t.Errorf("%s: something was run", name)
		}
	}
}

// Hooks of the repository never run.
func TestHooksDoNotRun(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	ran, snap := filepath.Join(w.home, "ran"), w.freeze("")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-commit"} {
		w.write(w.dir, map[string]string{".git/hooks/" + hook + "*": "#!/bin/sh\ntouch '" + ran + "'\n"})
	}
	pl := w.open(snap)
	w.write(pl.Dir, map[string]string{"a.txt": "agent"})
	w.close(pl) // keeps, with a commit and a ref
	if w.git("for-each-ref", "--format=%(refname)", "refs/witan") == "" {
		t.Error("nothing was kept")
	}
	if _, err := os.Lstat(ran); !os.IsNotExist(err) {
		t.Error("a hook ran")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	snap := w.freeze("")
	candidate := func(c kernel.Candidate) kernel.Digest {
		d, err := kernel.PutObject(t.Context(), w.packs, "candidate", c)
		w.must(err)
		return d
	}
	s, err := kernel.PutObject(t.Context(), w.packs, "snapshot", snap)
	w.must(err)
	lost := snap
	lost.Workspace.Commit = strings.Repeat("0", 39) + "1"
	for name, tc := range map[string]struct {
		snap kernel.Snapshot
		turn func(*kernel.Turn)
		kind kernel.Kind
	}{
		"candidate of another":  {snap, from(candidate(kernel.Candidate{Version: 1, Snapshot: kernel.Sum(nil)})), kernel.Invalid},
		"candidate that is not": {snap, from(kernel.Sum([]byte("gone"))), kernel.NotFound},
		"candidate leads out": {snap, from(candidate(kernel.Candidate{Version: 1, Snapshot: s, Files: []kernel.CandidateFile{{Path: "../x", Hash: w.put("x")}}})),
			kernel.Unsupported},
		"candidate without content": {snap, from(candidate(kernel.Candidate{Version: 1, Snapshot: s, Files: []kernel.CandidateFile{{Path: "x", Hash: kernel.Sum([]byte("gone"))}}})),
			kernel.NotFound},
		"commit that is gone": {lost, func(*kernel.Turn) {}, kernel.Unavailable},
		"no run":              {snap, func(t *kernel.Turn) { t.Run = "" }, kernel.Invalid},
		"run that leads out":  {snap, func(t *kernel.Turn) { t.Run = "../x" }, kernel.Invalid},
	} {
		if _, err := w.tryOpen(tc.snap, tc.turn); !kernel.IsKind(err, tc.kind) {
			t.Errorf("%s: %v", name, err)
		}
		w.nothingLeft()
	}
	file := filepath.Join(w.home, "file")
	w.must(os.WriteFile(file, nil, 0o600))
	w.places.Root = filepath.Join(file, "x")
	if _, err := w.tryOpen(snap); err == nil {
		t.Error("a root that cannot be made")
	}
	var none isolation.Leftover
	if _, err := w.places.Remove(t.Context(), none.Name); err == nil {
		t.Error("a root that cannot be made")
	}
}
