package isolation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/tree"
	"witan/stages/isolation"
)

var project = map[string]string{".gitignore": "ignored\n*.log\n", "a.txt": "one\ntwo\n", "dir/b.txt": "b", "run.sh*": "#!/bin/sh\n", "link": "-> a.txt", "gone.txt": "1", "sub/in.txt": "in"}

func TestWorktree(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	w.write(w.dir, map[string]string{"a.txt": "one\nmine\n", "new file\n": "untracked", "ignored": "secret"})
	w.must(os.Remove(filepath.Join(w.dir, "gone.txt")))
	head, status := w.git("rev-parse", "HEAD"), w.git("status", "--porcelain")
	pl := w.open(w.freeze(""))
	if pl.How != isolation.Worktree || pl.Top != pl.Dir || pl.Dir == w.dir {
		t.Errorf("%+v", pl)
	}
	w.equal(w.content(pl.Dir), map[string]string{".gitignore": "ignored\n*.log\n", "a.txt": "one\nmine\n", "dir/b.txt": "b", "run.sh*": "#!/bin/sh\n", "link": "-> a.txt",
		"sub/in.txt": "in", "new file\n": "untracked"})
	_, files, changes := w.capture(pl)
	w.list(files)
	w.list(changes)
	// What a turn does, of all kinds.
	w.must(os.Remove(filepath.Join(pl.Dir, "link")))
	w.must(os.Remove(filepath.Join(pl.Dir, "dir", "b.txt")))
	w.must(os.Chmod(filepath.Join(pl.Dir, "run.sh"), 0o644))
	w.write(pl.Dir, map[string]string{"a.txt": "one\nmine\nagents\n", "link": "-> dir", "dir/\xff": "bytes", "gone.txt": "back", "x.log": "ignored", "new file\n": "more", "sub/in.txt": "in"})
	d, files, changes := w.capture(pl)
	w.list(files, "a.txt modified", "dir/b.txt deleted", "dir/\uf7ff added", "gone.txt added", "link modified", "new file\n modified", "run.sh modified")
	w.list(changes, "a.txt modified", "dir/b.txt deleted", "dir/\uf7ff added", "gone.txt added", "link modified", "new file\n modified", "run.sh modified")
	w.close(pl)
	w.nothingLeft()
	if w.git("rev-parse", "HEAD") != head || w.git("status", "--porcelain") != status || w.git("for-each-ref", "--format=%(refname)") != "refs/heads/trunk" {
		t.Error("the person's repository is not as it was")
	}
	// A reader, and the next writer, go on from there.
	for _, who := range []func(*kernel.Turn){reader, func(*kernel.Turn) {}} {
		pl := w.open(w.freeze(""), who, from(d))
		w.equal(w.content(pl.Dir), map[string]string{".gitignore": "ignored\n*.log\n", "a.txt": "one\nmine\nagents\n", "run.sh": "#!/bin/sh\n", "link": "-> dir", "dir/\xff": "bytes",
			"gone.txt": "back", "new file\n": "more", "sub/in.txt": "in"})
		same, _, changes := w.capture(pl)
		if w.list(changes); same != d {
			t.Error("a turn that changes nothing leaves another candidate")
		}
		w.close(pl)
	}
	w.nothingLeft()
}

func TestWriterUndoes(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	snap := w.freeze("")
	pl := w.open(snap)
	w.write(pl.Dir, map[string]string{"a.txt": "changed", "new": "1", "dir/b.txt": "b2"})
	first, _, _ := w.capture(pl)
	w.close(pl)
	pl = w.open(snap, from(first))
	w.write(pl.Dir, map[string]string{"a.txt": "one\ntwo\n", "dir/b.txt": "b3"})
	w.must(os.Remove(filepath.Join(pl.Dir, "new")))
	_, files, changes := w.capture(pl)
	w.list(files, "dir/b.txt modified")
	w.list(changes, "a.txt modified", "dir/b.txt modified", "new deleted")
	w.close(pl)
	w.nothingLeft()
}

func TestReadersUseTheWorkspace(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	pl := w.open(w.freeze(""), reader)
	if pl.How != isolation.Workspace || pl.Dir != w.dir || pl.Top != "" {
		t.Errorf("%+v", pl)
	}
	if d, c, ch, err := pl.Capture(t.Context()); err != nil || !d.IsZero() || len(c.Files)+len(ch) > 0 {
		t.Errorf("%v %v %v %v", d, c, ch, err)
	}
	w.close(pl)
	if _, err := os.Stat(w.places.Root); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
	d, _, _ := func() (kernel.Digest, []string, []string) {
		p := w.open(w.freeze(""))
		defer w.close(p)
		return w.capture(p)
	}()
	if pl = w.open(w.freeze(""), reader, from(d)); pl.How != isolation.Worktree || pl.Top != "" {
		t.Errorf("%+v", pl)
	}
	w.close(pl)
}

func TestSubfolder(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	w.git("checkout", "-q", "--detach")
	w.write(w.dir, map[string]string{"sub/dirty": "1", "outside": "1"})
	pl := w.open(w.freeze("sub"))
	if filepath.Base(pl.Dir) != "sub" || pl.Top != pl.Dir {
		t.Errorf("%+v", pl)
	}
	w.equal(w.content(pl.Dir), map[string]string{"in.txt": "in", "dirty": "1"})
	w.write(pl.Dir, map[string]string{"in.txt": "more", "deep/new": "1", "../a.txt": "hostile", "../outside": "hostile"})
	d, files, changes := w.capture(pl)
	w.list(files, "deep/new added", "in.txt modified")
	w.list(changes, "../a.txt modified", "../outside modified", "deep/new added", "in.txt modified")
	w.close(pl)
	pl = w.open(w.freeze("sub"), reader, from(d))
	w.equal(w.content(pl.Dir), map[string]string{"in.txt": "more", "dirty": "1", "deep/new": "1"})
	w.close(pl)
	w.nothingLeft()
}

func TestNoCommits(t *testing.T) {
	t.Parallel()
	w := newRepo(t, nil)
	w.write(w.dir, map[string]string{".gitignore": "*.log\n", "a": "1", "b": "1"})
	w.git("add", "b")
	pl := w.open(w.freeze(""))
	if pl.How != isolation.Copy {
		t.Errorf("%+v", pl)
	}
	w.write(pl.Dir, map[string]string{"a": "2", "c": "1", "x.log": "1"})
	_, files, changes := w.capture(pl)
	w.list(files, "a modified", "c added")
	w.list(changes, "a modified", "c added")
	w.close(pl)
	w.nothingLeft()
	if got := w.git("status", "--porcelain"); got != "A  b\n?? .gitignore\n?? a" {
		t.Errorf("the person's index: %q", got)
	}
}

func TestSubmodules(t *testing.T) {
	t.Parallel()
	lib := newRepo(t, map[string]string{"lib.txt": "lib", ".gitmodules": "[submodule \"x\"]\n"})
	w := newRepo(t, project)
	w.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", lib.dir, "third party")
	w.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", lib.dir, "empty")
	w.git("commit", "-q", "-m", "with submodules")
	w.git("submodule", "deinit", "-q", "-f", "empty")
	pl := w.open(w.freeze(""))
	if b, err := os.ReadFile(filepath.Join(pl.Dir, "third party", "lib.txt")); err != nil || string(b) != "lib" {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := os.ReadDir(filepath.Join(pl.Dir, "empty")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	w.write(pl.Dir, map[string]string{"third party/lib.txt": "changed", "a.txt": "changed"})
	_, files, _ := w.capture(pl)
	w.list(files, "a.txt modified")
	w.close(pl)
	w.nothingLeft()
}

func TestBareIsRefused(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	snap := w.freeze("")
	bare := newWorld(t)
	bare.gitIn(bare.home, "clone", "-q", "--bare", w.dir, bare.dir)
	for name, ws := range map[string]kernel.Workspace{"as a folder": {Kind: "folder", Path: bare.dir, Tree: bare.tree(bare.dir)},
		"as git": {Kind: "git", Path: bare.dir, Commit: snap.Workspace.Commit}} {
		_, err := bare.tryOpen(kernel.Snapshot{Version: 1, Workspace: ws})
		if !kernel.IsKind(err, kernel.Unsupported) || !strings.Contains(err.Error(), "bare repository") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := bare.tryOpen(kernel.Snapshot{Version: 1, Workspace: kernel.Workspace{Kind: "none"}}); !kernel.IsKind(err, kernel.Invalid) {
		t.Errorf("no folder: %v", err)
	}
	if left, err := os.ReadDir(bare.places.Root); err == nil && len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Bytes stay what they are, whatever git converts, and what only looks changed to
// git is not.
func TestLineEndings(t *testing.T) {
	t.Parallel()
	w := newRepo(t, map[string]string{"odd.txt": "one\r\ntwo\r\n", "raw.bin": "\x00\r\n\xff"})
	w.write(w.dir, map[string]string{".gitattributes": "*.txt text=auto eol=crlf\n", "plain.txt": "one\ntwo\n", "utf16": "\xff\xfea\x00\r\x00\n\x00", "no end": "x\r"})
	w.git("add", ".gitattributes", "plain.txt", "utf16", "no end")
	w.git("commit", "-q", "-m", "attributes") // odd.txt is in the repository as nobody would add it now
	w.must(os.Remove(filepath.Join(w.dir, "plain.txt")))
	w.git("checkout", "-q", "--", "plain.txt")
	before := w.content(w.dir)
	pl := w.open(w.freeze(""))
	w.equal(w.content(pl.Dir), before)
	_, files, changes := w.capture(pl)
	w.list(files)
	w.list(changes)
	w.write(pl.Dir, map[string]string{"odd.txt": "one\r\n2\r\n", "plain.txt": "one\n2\n", "utf16": "\xff\xfeb\x00\r\x00\n\x00", ".gitattributes": "*.txt -text\n"})
	d, files, _ := w.capture(pl)
	w.list(files, ".gitattributes modified", "odd.txt modified", "plain.txt modified", "utf16 modified")
	c, err := kernel.GetObject[kernel.Candidate](t.Context(), w.packs, d)
	w.must(err)
	for _, f := range c.Files {
		b, err := w.packs.Get(t.Context(), f.Base)
		if name := tree.DecodePath(f.Path); err != nil || string(b) != before[name] {
			t.Errorf("%s: base %q, %v, is %q in the workspace", name, b, err, before[name])
		}
	}
	w.close(pl)
	w.nothingLeft()
}
