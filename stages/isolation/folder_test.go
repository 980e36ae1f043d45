package isolation_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"witan/stages/isolation"
)

func TestCopyOfAFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{"a.txt": "one\r\ntwo", "dir/b": "b", "dir/deep/c*": "c", "l": "-> dir", "gone": "1", "became folder": "1", "became file/x": "1"}
	w.write(w.dir, files)
	snap := w.freeze("")
	pl := w.open(snap)
	if pl.How != isolation.Copy || pl.Top != pl.Dir || pl.Dir == w.dir {
		t.Errorf("%+v", pl)
	}
	w.equal(w.content(pl.Dir), files)
	d, got, changes := w.capture(pl)
	w.list(got)
	w.list(changes)
	if d.IsZero() {
		t.Error("a writer that changed nothing has no candidate")
	}
	for _, name := range []string{"gone", "became folder", "became file"} {
		w.must(os.RemoveAll(filepath.Join(pl.Dir, name)))
	}
	w.must(os.Chmod(filepath.Join(pl.Dir, "dir", "deep", "c"), 0o600))
	w.write(pl.Dir, map[string]string{"a.txt": "one\r\n2wo", "became folder/x": "1", "became file": "1", ".git/hooks/pre-commit*": "evil", "n\xff\n": "1"})
	d, got, changes = w.capture(pl)
	want := []string{"a.txt modified", "became file added", "became file/x deleted", "became folder deleted", "became folder/x added", "dir/deep/c modified", "gone deleted", "n\uf7ff\n added"}
	w.list(got, want...)
	w.list(changes, want...)
	w.close(pl)
	w.nothingLeft()
	w.equal(w.content(w.dir), files)
	pl = w.open(snap, reader, from(d))
	w.equal(w.content(pl.Dir), map[string]string{"a.txt": "one\r\n2wo", "dir/b": "b", "dir/deep/c": "c", "l": "-> dir", "became folder/x": "1", "became file": "1", "n\xff\n": "1"})
	w.close(pl)
	w.nothingLeft()
}

// A write that leaves size and modification time as they were is seen.
func TestForgedTimes(t *testing.T) {
	t.Parallel()
	for _, w := range []*world{newWorld(t), newRepo(t, map[string]string{"x": "1"})} {
		w.write(w.dir, map[string]string{"a": "old"})
		if w.places.Run != nil && len(w.freeze("").Workspace.Dirty) > 0 {
			w.git("add", "a")
			w.git("commit", "-q", "-m", "a")
		}
		pl := w.open(w.freeze(""))
		p := filepath.Join(pl.Dir, "a")
		fi, err := os.Stat(p)
		w.must(err)
		w.must(os.WriteFile(p, []byte("new"), 0o644))
		w.must(os.Chtimes(p, time.Now(), fi.ModTime()))
		_, files, _ := w.capture(pl)
		w.list(files, "a modified")
		w.close(pl)
	}
}

// In place, only what changed since the turn began counts: not what the person did
// before, be it before or after the freeze.
func TestInPlace(t *testing.T) {
	t.Parallel()
	base := map[string]string{"a": "1", "b": "1", "c": "1", "d": "1", "x/y": "1", "assumed": "1"}
	git, folder := newRepo(t, base), newWorld(t)
	git.git("update-index", "--assume-unchanged", "assumed")
	folder.write(folder.dir, base)
	for name, w := range map[string]*world{"git": git, "folder": folder} {
		w.write(w.dir, map[string]string{"a": "person", "new": "person"}) // before the freeze
		snap := w.freeze("")
		w.write(w.dir, map[string]string{"b": "person", "new2": "person"}) // after it
		w.must(os.Remove(filepath.Join(w.dir, "c")))
		pl := w.open(snap, inPlace)
		if pl.How != isolation.InPlace || pl.Dir != w.dir || pl.Top != w.dir {
			t.Errorf("%s: %+v", name, pl)
		}
		_, files, changes := w.capture(pl)
		w.list(files)
		w.list(changes)
		w.write(w.dir, map[string]string{"a": "agent", "d": "agent", "assumed": "agent", "n": "agent", "new": "person"})
		w.must(os.Remove(filepath.Join(w.dir, "new2")))
		w.must(os.RemoveAll(filepath.Join(w.dir, "x")))
		d, files, changes := w.capture(pl)
		w.list(files, "a modified", "assumed modified", "d modified", "n added", "x/y deleted")
		w.list(changes, "a modified", "assumed modified", "d modified", "n added", "new2 deleted", "x/y deleted")
		w.close(pl)
		w.nothingLeft()
		// The next writer: what the first did is still of the candidate.
		w.write(w.dir, map[string]string{"b": "person again"})
		pl = w.open(snap, inPlace, from(d))
		w.write(w.dir, map[string]string{"n": "agent 2", "d": "1"})
		_, files, changes = w.capture(pl)
		w.list(files, "a modified", "assumed modified", "n added", "x/y deleted")
		w.list(changes, "d modified", "n modified")
		w.close(pl)
		w.nothingLeft()
		if b, err := os.ReadFile(filepath.Join(w.dir, "a")); err != nil || string(b) != "agent" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
