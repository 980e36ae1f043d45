package commit_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/kernel/tree"
	"witan/stages/commit"
)

// git runs git in the workspace, with settings of nobody's.
func (r *result) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// newRepo is a workspace in a repository with one commit of files.
func newRepo(t *testing.T, files map[string]string) *result {
	t.Helper()
	r := newResult(t, nil)
	r.git("init", "-q", "-b", "trunk")
	r.snap.Workspace.Kind = "git"
	if len(files) > 0 {
		r.write(files)
		r.git("add", "-A")
		r.git("commit", "-q", "-m", "first")
		r.snap.Workspace.Commit = r.git("rev-parse", "HEAD")
	}
	return r
}

func (r *result) commit(options string) (kernel.Result, error) {
	r.t.Helper()
	return r.run(commit.Git(r.mem, shell{}), options)
}

// person is all of the repository that is not ours.
func (r *result) person() string {
	r.t.Helper()
	index, err := os.ReadFile(filepath.Join(r.dir, ".git", "index"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	head, err := os.ReadFile(filepath.Join(r.dir, ".git", "HEAD"))
	r.must(err)
	return string(index) + string(head) + r.git("for-each-ref", "refs/heads/trunk", "refs/tags")
}

func TestGit(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1", "b": "1", "gone/x": "1", "run": "x", "was file": "1", "was folder/x": "1", "l": "-> a", "sub/keep": "1", "ignored.log": "1"})
	r.write(map[string]string{"b": "person", "untracked": "person", "staged": "person", ".gitignore": "*.log\n"})
	r.git("add", "staged")
	r.change("a", "1", "2\r\n")
	r.change("gone/x", "1", "")
	r.change("run*", "x", "x")
	r.change("was file", "1", "")
	r.change("was file/x", "", "new")
	r.change("was folder/x", "1", "")
	r.change("was folder", "", "new")
	r.change("l", "-> a", "-> b")
	r.change("n\n\xff*", "", utf16)
	r.change("was untracked", "person", "")
	r.change("x.log", "", "ignored, but of the candidate")
	before, files := r.person(), r.git("status", "--porcelain", "-z")
	res, err := r.commit("")
	r.must(err)
	if res.Target != "witan/run_1" || res.Content != r.verdict().Candidate || res.Commit != kernel.DeriveID(kernel.CommitPrefix, "run_1") {
		t.Errorf("%+v", res)
	}
	if r.person() != before || r.git("status", "--porcelain", "-z") != files {
		t.Error("index, branch or files of the person changed")
	}
	tip := "refs/heads/witan/run_1"
	var got []string
	for rec := range strings.SplitSeq(strings.TrimSuffix(r.git("ls-tree", "-r", "-z", tip), "\x00"), "\x00") { // mode type object TAB path
		head, name, _ := strings.Cut(rec, "\t")
		got = append(got, head[:6]+" "+name)
	}
	want := []string{"100644 a", "100644 b", "100644 ignored.log", "120000 l", "100755 n\n\xff", "100755 run", "100644 sub/keep", "100644 was file/x", "100644 was folder", "100644 x.log"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for name, text := range map[string]string{"a": "2\r", "b": "1", "l": "b", "n\n\xff": strings.TrimSuffix(utf16, "\n"), "x.log": "ignored, but of the candidate"} {
		if got := r.git("show", tip+":"+name); got != text {
			t.Errorf("%q is %q, want %q", name, got, text)
		}
	}
	log := r.git("log", "-1", "--format=%P|%an <%ae> %at|%cn <%ce> %ct|%B", tip)
	at := "1893459600"
	if want := r.snap.Workspace.Commit + "|Witan <witan@localhost> " + at + "|Witan <witan@localhost> " + at + "|Make it better\n\nWitan-Run: run_1\n"; log != want {
		t.Errorf("got  %q\nwant %q", log, want)
	}
	if got := r.git("log", "-1", "--format=%(trailers:key=Witan-Run,valueonly)", tip); got != "run_1\n" {
		t.Errorf("trailer %q", got)
	}
	// Again, at another time: the first commit is found, also when the person went on from it.
	first := r.git("rev-parse", tip)
	again := func() {
		t.Helper()
		env := r.env(5)
		same, err := commit.Git(r.mem, shell{}).Run(t.Context(), env, r.verdict())
		a, _ := kernel.Canonical(res)
		b, _ := kernel.Canonical(same)
		if err != nil || string(a) != string(b) {
			t.Errorf("%s\n%s\n%v", a, b, err)
		}
	}
	again()
	if got := r.git("rev-parse", tip); got != first {
		t.Errorf("another commit: %s", got)
	}
	next := r.git("commit-tree", r.git("rev-parse", "HEAD^{tree}"), "-p", first, "-m", "next")
	r.git("update-ref", tip, next)
	again()
	if got := r.git("rev-parse", tip); got != next {
		t.Errorf("another commit: %s", got)
	}
}

func TestGitBranches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make    func(r *result)
		options string
		says    string
	}{
		"of the person":   {func(r *result) { r.git("branch", "witan/run_1") }, "", "exists and has another commit"},
		"in the way":      {func(r *result) { r.git("branch", "witan") }, "", "branch witan is in the way"},
		"behind":          {func(r *result) { r.git("branch", "witan/run_1/x") }, "", "branch witan/run_1/x is in the way"},
		"the current one": {func(*result) {}, `{"branch":"trunk"}`, "exists and has another commit"},
		"other content of the same run": {func(r *result) {
			was := r.cand
			r.change("b", "", "other")
			_, err := r.commit("")
			r.must(err)
			r.cand = was
		}, "", "exists and has another commit"},
		"same content of another run": {func(r *result) {
			v, env := r.verdict(), r.env(1)
			v.Run = "run_2"
			env.Options = []byte(`{"branch":"witan/run_1"}`)
			_, err := commit.Git(r.mem, shell{}).Run(t.Context(), env, v)
			r.must(err)
		}, "", "exists and has another commit"},
	} {
		r := newRepo(t, map[string]string{"a": "1"})
		r.change("a", "1", "2")
		tc.make(r)
		before := r.git("for-each-ref")
		_, err := r.commit(tc.options)
		r.fails(err, "branch_exists", tc.says, "rename or delete it")
		if r.git("for-each-ref") != before {
			t.Errorf("%s: refs changed", name)
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
	r := newRepo(t, map[string]string{"a": "1"})
	r.change("a", "1", "2")
	if res, err := r.commit(`{"branch":"results/{run}-x"}`); err != nil || res.Target != "results/run_1-x" || r.git("show", "results/run_1-x:a") != "2" {
		t.Errorf("%+v, %v", res, err)
	}
	for _, bad := range []string{`{"branch":"a..b"}`, `{"branch":""}`, `{"branch":"-x y"}`, `{"other":1}`} {
		if _, err := r.commit(bad); !kernel.IsKind(err, kernel.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestGitWithoutCommits(t *testing.T) {
	t.Parallel()
	r := newRepo(t, nil)
	r.write(map[string]string{"mine": "1"})
	r.git("add", "mine")
	r.change("a", "", "1")
	before := r.person()
	_, err := r.commit(`{"branch":"trunk"}`)
	r.fails(err, "branch_exists", "is the one that the workspace is on")
	_, err = r.commit("")
	r.must(err)
	if got := r.git("log", "--format=%P|%s", "witan/run_1"); got != "|Make it better" || r.git("ls-tree", "-r", "--name-only", "witan/run_1") != "a" {
		t.Errorf("%q", got)
	}
	if _, err := r.commit(""); err != nil || r.person() != before {
		t.Errorf("again: %v", err)
	}
}

func TestGitSubfolder(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1", "s ü b/a": "1"})
	r.git("checkout", "-q", "--detach")
	r.snap.Workspace.Path, r.snap.Workspace.Sub = filepath.Join(r.dir, "s ü b"), tree.EncodePath("s ü b")
	r.change("a", "1", "2")
	r.change("new/x", "", "1")
	_, err := r.commit("")
	r.must(err)
	if got := r.git("show", "witan/run_1:a") + r.git("show", "witan/run_1:s ü b/a") + r.git("show", "witan/run_1:s ü b/new/x"); got != "121" {
		t.Errorf("%q", got)
	}
}

// Git converts as in git add, once, by the attributes of the commit and the candidate,
// and not by what lies in the person's folder.
func TestGitConverts(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{".gitattributes": "*.txt text eol=crlf\n*.bin -text\n*.u16 text working-tree-encoding=UTF-16LE eol=crlf\n", "a.txt": crlf(text), "b.bin": crlf(text)})
	r.write(map[string]string{".gitattributes": "* -text\n"})
	r.change("a.txt", crlf(text), crlf(top))
	r.change("b.bin", crlf(text), crlf(top))
	r.change("c.u16", "", "a\x00\r\x00\n\x00")
	r.change("d.raw", "", crlf(text))
	_, err := r.commit("")
	r.must(err)
	for name, want := range map[string]string{"a.txt": top, "b.bin": crlf(top), "c.u16": "a\n", "d.raw": crlf(text)} {
		if got := r.git("cat-file", "blob", "witan/run_1:"+name); got != strings.TrimSuffix(want, "\n") {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// Settings of the person that are about their folder do not change what is committed.
func TestGitWithSettings(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1\n", "crlf": crlf("1\n"), "was link": "-> a"})
	for name, value := range map[string]string{"core.fileMode": "false", "core.symlinks": "false", "core.autocrlf": "true", "core.safecrlf": "true", "commit.gpgSign": "true",
		"i18n.commitEncoding": "ISO-8859-1", "core.ignoreCase": "true", "core.sparseCheckout": "true"} {
		r.git("config", name, value)
	}
	r.snap.Text = "Größe"
	r.change("run*", "", "1\n2\r\n")
	r.change("l", "", "-> a")
	r.change("was link", "-> a", "x")
	r.change("crlf", crlf("1\n"), crlf("1\n2\n"))
	r.change("a", "1\n", "1\r\n2\r\n")
	_, err := r.commit("")
	r.must(err)
	for name, want := range map[string]string{"run": "1\n2", "l": "a", "crlf": "1\r\n2\r", "a": "1\n2"} {
		if got := r.git("cat-file", "blob", "witan/run_1:"+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := r.git("ls-tree", "--format=%(objectmode)", "witan/run_1"); got != "100644\n100644\n120000\n100755\n100644" {
		t.Errorf("modes %q", got)
	}
	if got := r.git("cat-file", "commit", "witan/run_1"); strings.Contains(got, "encoding") || !strings.Contains(got, "Größe") {
		t.Errorf("%q", got)
	}
}

func TestGitRunsNothingOfTheRepository(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1", ".gitattributes": "* filter=evil\n"})
	ran := filepath.Join(t.TempDir(), "ran")
	r.git("config", "filter.evil.clean", "touch '"+ran+"'; cat")
	r.git("config", "core.fsmonitor", "touch '"+ran+"'")
	for _, hook := range []string{"reference-transaction", "pre-commit", "post-commit", "post-index-change"} {
		r.write(map[string]string{".git/hooks/" + hook + "*": "#!/bin/sh\ntouch '" + ran + "'\n"})
	}
	r.change("a", "1", "2")
	_, err := r.commit("")
	r.must(err)
	if _, err := os.Lstat(ran); !os.IsNotExist(err) {
		t.Error("something was run")
	}
	if got := r.git("cat-file", "blob", "witan/run_1:a"); got != "2" {
		t.Errorf("%q", got)
	}
}

func TestGitRefuses(t *testing.T) {
	t.Parallel()
	r := newResult(t, nil)
	r.change("a", "", "1")
	_, err := r.commit("")
	r.fails(err, "no_repository", `"apply"`)
	r = newRepo(t, map[string]string{"a": "1"})
	r.change("a", "1", "2")
	r.must(os.RemoveAll(filepath.Join(r.dir, ".git")))
	_, err = r.commit("")
	r.fails(err, "no_repository")

	r = newRepo(t, map[string]string{"a": "1"})
	r.change(".git/config", "", "evil")
	if _, err := r.commit(""); !kernel.IsKind(err, kernel.Unsupported) {
		t.Errorf("git's own files: %v", err)
	}
	r.cand.Files = nil
	r.change("a", "1", "2")
	r.snap.Workspace.Commit = strings.Repeat("0", 39) + "1"
	if _, err := r.commit(""); !kernel.IsKind(err, kernel.Unavailable) {
		t.Errorf("a commit that is gone: %v", err)
	}
	missing := runner(func(context.Context, kernel.Command) (kernel.CommandResult, error) {
		return kernel.CommandResult{}, kernel.E("shell", kernel.NotFound, nil, "there is no git")
	})
	if _, err := r.run(commit.Git(r.mem, missing), ""); !kernel.IsKind(err, kernel.NotFound) {
		t.Errorf("without git: %v", err)
	}
	if got := r.git("for-each-ref", "--format=%(refname)"); got != "refs/heads/trunk" {
		t.Errorf("refs: %q", got)
	}
}

type runner func(context.Context, kernel.Command) (kernel.CommandResult, error)

func (f runner) Run(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
	return f(ctx, c)
}

// A fault at every call of git: no branch or the whole commit, and the next try makes
// it one.
func TestGitAfterFaults(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		r := newRepo(t, map[string]string{"a": "1"})
		r.change("a", "1", "2")
		for _, after := range []bool{false, true} { // it did not run; it ran, and nobody heard of it
			calls := 0
			faulty := runner(func(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
				if calls++; calls == n {
					if after {
						_, _ = shell{}.Run(ctx, c)
					}
					return kernel.CommandResult{}, kernel.E("shell", kernel.Interrupted, nil, "cut off")
				}
				return shell{}.Run(ctx, c)
			})
			_, err := r.run(commit.Git(r.mem, faulty), "")
			if calls < n {
				if err != nil || n < 10 {
					t.Fatalf("%d calls, %v", calls, err)
				}
				return
			}
			if err != nil && !kernel.IsKind(err, kernel.Interrupted) {
				t.Errorf("fault %d: %v", n, err)
			}
		}
		env := r.env(3)
		env.Now = func() time.Time { return time.Unix(2_000_000_000, 5) }
		if _, err := commit.Git(r.mem, shell{}).Run(t.Context(), env, r.verdict()); err != nil {
			t.Errorf("after fault %d: %v", n, err)
		}
		if got := r.git("log", "--format=%s", "witan/run_1"); got != "Make it better\nfirst" {
			t.Errorf("after fault %d: %q", n, got)
		}
	}
}

func TestGitMessage(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	long := strings.Repeat("word ", 30)
	for task, want := range map[string]string{
		"Fix it":                               "Fix it",
		"  Fix\tit  \n\n# not a comment\nmore": "Fix it\n\n# not a comment\nmore",
		long:                                   long[:71] + "…\n\n" + strings.TrimSpace(long),
		"a\x00b\x1b[31m\r\nWitan-Run: run_9":   "ab[31m\n\nWitan-Run: run_9",
		"中文 \xff":                              "中文 \uFFFD",
	} {
		r := newRepo(t, map[string]string{"a": "1"})
		r.snap.Text = task
		r.change("a", "1", "2")
		_, err := r.commit("")
		r.must(err)
		if got := r.git("log", "-1", "--format=%B", "witan/run_1"); got != want+"\n\nWitan-Run: run_1\n" {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if _, err := r.commit(""); err != nil {
			t.Errorf("%q, again: %v", task, err)
		}
	}
	r := newRepo(t, map[string]string{"a": "1"})
	r.snap.Text = "Use " + token
	r.change("a", "1", "2")
	_, err := r.commit("")
	r.must(err)
	if got := r.git("log", "-1", "--format=%B", "witan/run_1"); strings.Contains(got, token) {
		t.Errorf("the message has a secret: %q", got)
	}
}
