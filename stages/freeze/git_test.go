package freeze_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
)

// git runs git in the workspace, with settings of nobody's.
func (w *world) git(args ...string) string {
	w.t.Helper()
	return w.gitIn(w.dir, args...)
}

func (w *world) gitIn(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newRepo is a repository with one commit of files.
func newRepo(t *testing.T, files map[string]string) *world {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "a")
		t.Setenv("GIT_"+who+"_EMAIL", "a@example.org")
	}
	w := newWorld(t)
	w.git("init", "-q", "-b", "trunk")
	w.write(files)
	if len(files) > 0 {
		w.git("add", "-A")
		w.git("commit", "-q", "-m", "first")
	}
	return w
}

// status lists what differs, as "path status".
func status(ws kernel.Workspace) []string {
	var out []string
	for _, d := range ws.Dirty {
		out = append(out, d.Path+" "+d.Status)
	}
	return out
}

// unignored is the workspace as a clean copy of it should be.
func (w *world) unignored(ignored ...string) map[string]string {
	c := content(w.t, w.dir)
	maps.DeleteFunc(c, func(name, _ string) bool {
		return name == ".git" || slices.ContainsFunc(ignored, func(p string) bool { return strings.HasPrefix(name, p) })
	})
	return c
}

func TestGitClean(t *testing.T) {
	w := newRepo(t, goProject)
	ws := w.freeze("")
	if ws.Kind != "git" || ws.Commit != w.git("rev-parse", "HEAD") || ws.Branch != "trunk" || ws.Sub != "" || len(ws.Dirty) > 0 || !ws.Tree.IsZero() {
		t.Errorf("%+v", ws)
	}
	w.equal(w.back(ws), w.unignored())
	w.same(w.freeze(""), ws)
	w.git("checkout", "-q", "--detach")
	if ws := w.freeze(""); ws.Branch != "" || ws.Commit == "" {
		t.Errorf("detached: %+v", ws)
	}
}

func TestGitDirty(t *testing.T) {
	files := map[string]string{".gitignore": "ignored/\n", "sp ace": "1", "becomes link": "1", "becomes folder": "1", "folder/was": "1", "staged": "1", "both": "1",
		"gone": "1", "index only": "1", "exec": "1", "-n": "1", "touched": "1"}
	maps.Copy(files, goProject)
	w := newRepo(t, files)
	w.write(map[string]string{"main.go": "package other\n", "new\nline": "1", "not\xffutf8": "bytes", "ignored/x": "1", "sub/dir/new": "1", "sp ace": "2", "staged": "2", "both": "2"})
	w.git("add", "staged", "both", "sp ace")
	w.write(map[string]string{"both": "3"})
	w.git("rm", "-q", "--cached", "index only")
	w.must(errors.Join(os.Remove(w.path("gone")), os.Chmod(w.path("exec"), 0o755),
		os.Remove(w.path("becomes link")), os.Symlink("main.go", w.path("becomes link")),
		os.Remove(w.path("becomes folder")), os.Mkdir(w.path("becomes folder"), 0o755), os.WriteFile(w.path("becomes folder", "x"), []byte("1"), 0o644),
		os.RemoveAll(w.path("folder")), os.WriteFile(w.path("folder"), []byte("1"), 0o644), os.Chtimes(w.path("touched"), epoch, epoch)))
	w.git("mv", "-f", "README.md", "moved.md")
	index := mustRead(t, w.path(".git", "index"))
	ws := w.freeze("")
	if string(mustRead(t, w.path(".git", "index"))) != string(index) {
		t.Error("the index was written to")
	}
	want := []string{"README.md deleted", "becomes folder deleted", "becomes folder/x untracked", "becomes link modified", "both modified", "exec modified",
		"folder untracked", "folder/was deleted", "gone deleted", "index only modified", "main.go modified", "moved.md added", "new\nline untracked",
		"not\uF7FFutf8 untracked", "sp ace modified", "staged modified", "sub/dir/new untracked"}
	if got := status(ws); !slices.Equal(got, want) {
		t.Errorf("dirty:\n%q\nwant\n%q", got, want)
	}
	w.equal(w.back(ws), w.unignored("ignored/"))
	w.same(w.freeze(""), ws)
	if string(mustRead(t, w.path(".git", "index"))) != string(index) {
		t.Error("the index was written to by the copy")
	}
	// As a tree, nothing depends on the repository, and what git ignores is in it.
	full := w.freeze(`{"tree":true}`)
	if full.Kind != "folder" || full.Tree.IsZero() {
		t.Errorf("%+v", full)
	}
	w.equal(w.back(full), w.unignored())
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A deleted file behind a link that took the place of its folder is deleted: the
// file of the same name where the link leads is somebody else's.
func TestGitBehindALink(t *testing.T) {
	w := newRepo(t, map[string]string{"dir/secret": "1", "a": "1"})
	outside := t.TempDir()
	w.must(errors.Join(os.WriteFile(filepath.Join(outside, "secret"), []byte("mine"), 0o600), os.RemoveAll(w.path("dir")), os.Symlink(outside, w.path("dir"))))
	ws := w.freeze("")
	if got := status(ws); !slices.Equal(got, []string{"dir untracked", "dir/secret deleted"}) {
		t.Errorf("%q", got)
	}
	w.equal(w.back(ws), map[string]string{"a": "1", "dir": "l:" + outside})
	if string(mustRead(t, filepath.Join(outside, "secret"))) != "mine" {
		t.Error("the copy reached through the link")
	}
}

func TestGitSubfolder(t *testing.T) {
	w := newRepo(t, map[string]string{"a/x": "1", "b/y": "1", "AGENTS.md": "top", "a/AGENTS.md": "sub"})
	w.write(map[string]string{"b/y": "2", "a/new": "1"})
	s, err := w.stage().Run(ctx, w.env(""), task(w.path("a")))
	w.must(err)
	if ws := s.Workspace; ws.Kind != "git" || ws.Sub != "a" || !slices.Equal(status(ws), []string{"a/new untracked", "b/y modified"}) {
		t.Errorf("%+v", ws)
	}
	if s.Instructions != kernel.Sum([]byte("sub")) {
		t.Error("the instructions are not those of the workspace")
	}
	w.equal(w.back(s.Workspace), w.unignored())
}

func TestGitThatIsNone(t *testing.T) {
	t.Run("no commits", func(t *testing.T) {
		w := newRepo(t, nil)
		w.write(map[string]string{"a": "1"})
		ws := w.freeze("")
		if ws.Kind != "git" || ws.Commit != "" || ws.Branch != "trunk" {
			t.Errorf("%+v", ws)
		}
		w.equal(w.back(ws), map[string]string{"a": "1"})
	})
	for name, c := range map[string]struct {
		spoil  func(w *world)
		sub    string
		reason string
	}{
		"git is missing":   {func(w *world) { w.run = without{} }, "", "git_missing"},
		"broken":           {func(w *world) { w.must(os.WriteFile(w.path(".git", "HEAD"), []byte("?"), 0o644)) }, "", "git_refuses"},
		"empty .git":       {func(w *world) { w.must(errors.Join(os.RemoveAll(w.path(".git")), os.Mkdir(w.path(".git"), 0o755))) }, "", "git_refuses"},
		"ignored":          {func(w *world) { w.write(map[string]string{".gitignore": "out/\n", "out/x": "1"}) }, "out", "ignored"},
		"inside .git":      {func(w *world) {}, ".git", "not_a_work_tree"},
		"elsewhere":        {func(w *world) { w.git("config", "core.worktree", t.TempDir()) }, "", "not_a_work_tree"},
		"too many changes": {func(w *world) { many(w, 10_001) }, "", "too_many_changes"},
		"filter":           {func(w *world) { w.git("config", "filter.a=b.clean", "cat") }, "", "git_refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRepo(t, map[string]string{"a": "1"})
			c.spoil(w)
			ws, err := w.try(w.path(c.sub), "")
			w.must(err)
			if ws.Kind != "folder" || !slices.Contains(skipped(ws), ".git "+c.reason) {
				t.Errorf("%s, %q", ws.Kind, skipped(ws))
			}
			want := content(t, w.path(c.sub))
			delete(want, ".git")
			if c.sub != ".git" {
				w.equal(w.back(ws), want)
			}
		})
	}
	t.Run("bare", func(t *testing.T) {
		w := newRepo(t, nil)
		w.must(os.RemoveAll(w.path(".git")))
		w.git("init", "-q", "--bare", ".")
		if ws := w.freeze(""); ws.Kind != "folder" || ws.Files == 0 {
			t.Errorf("%+v", ws)
		}
	})
}

func many(w *world, n int) {
	w.must(os.Mkdir(w.path("many"), 0o755))
	for i := range n {
		w.must(os.WriteFile(w.path("many", fmt.Sprint(i)), nil, 0o644))
	}
}

func TestGitSubmodules(t *testing.T) {
	lib := newRepo(t, map[string]string{"lib.go": "package lib\n"})
	w := newRepo(t, map[string]string{"a": "1"})
	w.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "vendor/lib")
	w.git("commit", "-q", "-m", "lib")
	if ws := w.freeze(""); ws.Kind != "git" || len(ws.Dirty) > 0 {
		t.Errorf("%+v", ws)
	}
	w.gitIn(w.path("vendor", "lib"), "commit", "-q", "--allow-empty", "-m", "ahead")
	w.must(os.Mkdir(w.path("nested"), 0o755))
	w.gitIn(w.path("nested"), "init", "-q")
	w.gitIn(w.path("nested"), "commit", "-q", "--allow-empty", "-m", "own")
	ws := w.freeze("")
	if got := skipped(ws); !slices.Equal(got, []string{"nested/ submodule", "vendor/lib submodule"}) || len(ws.Dirty) > 0 {
		t.Errorf("skipped %q, dirty %q", got, status(ws))
	}
	full := w.freeze(`{"tree":true}`)
	if c := w.back(full); c["vendor/lib/lib.go"] != "package lib\n" {
		t.Errorf("as a tree: %q", c)
	}
}

// Nothing that a repository brings is run: not when freezing, not when copying.
func TestGitRunsNothingOfTheRepository(t *testing.T) {
	w := newRepo(t, map[string]string{"a": "1", "b.txt": "1", ".gitattributes": "*.txt filter=evil diff=evil\n"})
	mark := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(t.TempDir(), "script")
	w.must(os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >>'"+mark+"'\ncat\n"), 0o755))
	for _, key := range []string{"filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand",
		"diff.evil.textconv", "diff.evil.command", "diff.external", "pager.status", "alias.status", "alias.config", "uploadpack.packObjectsHook", "core.gitProxy"} {
		w.git("config", key, script)
	}
	w.git("config", "filter.evil.required", "true")
	w.git("config", "core.hooksPath", w.path(".git", "hooks"))
	for _, hook := range []string{"post-checkout", "post-index-change", "fsmonitor-watchman", "pre-commit", "reference-transaction", "query-watchman"} {
		w.must(errors.Join(os.MkdirAll(w.path(".git", "hooks"), 0o755), os.Symlink(script, w.path(".git", "hooks", hook))))
	}
	w.must(errors.Join(os.WriteFile(w.path("b.txt"), []byte("2"), 0o644), os.Chtimes(w.path("a"), epoch, epoch)))
	ws := w.freeze("")
	if got := status(ws); ws.Kind != "git" || !slices.Equal(got, []string{"b.txt modified"}) {
		t.Errorf("%s %q %q", ws.Kind, got, skipped(ws))
	}
	w.equal(w.back(ws), w.unignored())
	if b, err := os.ReadFile(mark); err == nil {
		t.Errorf("the repository had its programs run:\n%s", b)
	}
}

// The person's own settings stay in force, and variables that point git elsewhere do not.
func TestGitEnvironment(t *testing.T) {
	w := newRepo(t, map[string]string{"a": "1"})
	w.must(os.WriteFile(filepath.Join(os.Getenv("HOME"), ".gitconfig"), []byte("[core]\nexcludesFile = "+filepath.Join(os.Getenv("HOME"), "ignore")+"\n"), 0o644))
	w.must(os.WriteFile(filepath.Join(os.Getenv("HOME"), "ignore"), []byte("*.mine\n"), 0o644))
	w.write(map[string]string{"x.mine": "1", "x.ours": "1"})
	other := t.TempDir()
	t.Setenv("GIT_DIR", other)
	t.Setenv("GIT_WORK_TREE", other)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, "index"))
	ws := w.freeze("")
	if got := status(ws); ws.Kind != "git" || !slices.Equal(got, []string{"x.ours untracked"}) {
		t.Errorf("%s %q", ws.Kind, got)
	}
}

func TestGitSkipped(t *testing.T) {
	w := newRepo(t, map[string]string{"a": "1"})
	w.write(map[string]string{"big": strings.Repeat("x", 2<<20), "denied": "1", "fine": "1"})
	w.disk.broken["denied"] = true
	ws := w.freeze(`{"max_file_mib":1}`)
	if got := skipped(ws); !slices.Equal(got, []string{"big too_large", "denied unreadable"}) {
		t.Errorf("skipped: %q", got)
	}
	w.equal(w.back(ws), map[string]string{"a": "1", "fine": "1"})
}

func TestGitWorktree(t *testing.T) {
	w := newRepo(t, map[string]string{"a": "1"})
	at := filepath.Join(t.TempDir(), "tree")
	w.git("worktree", "add", "-q", "-b", "other", at)
	w.must(os.WriteFile(filepath.Join(at, "b"), []byte("1"), 0o644))
	ws, err := w.try(at, "")
	w.must(err)
	if ws.Kind != "git" || ws.Branch != "other" || !slices.Equal(status(ws), []string{"b untracked"}) {
		t.Errorf("%+v", ws)
	}
	w.equal(w.back(ws), map[string]string{"a": "1", "b": "1"})
}
