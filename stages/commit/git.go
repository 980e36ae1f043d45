package commit

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"witan/kernel"
	"witan/kernel/tree"
)

// defaultBranch is where results go; {run} is the id of the run.
const defaultBranch = "witan/{run}"

// searched bounds the commits of a branch among which ours is looked for.
const searched = 100

type gitCommit struct {
	recorder
	runner kernel.Runner
}

// Git returns the stage "commit/git": the accepted files become a commit on a branch
// of their own, on top of the frozen one.
func Git(c kernel.Conversations, run kernel.Runner) kernel.Commit {
	return gitCommit{recorder{c}, run}
}

func (gitCommit) Spec() kernel.Spec {
	return kernel.Spec{ID: "commit/git", Version: 1, Class: kernel.Keyed, Touches: []string{"workspace-read", "process", "store"},
		Doc:     "Commits the accepted files on a branch of their own; index, branch and files of the person stay as they are",
		Options: json.RawMessage(`{"type":"object","properties":{"branch":{"type":"string","minLength":1}},"additionalProperties":false}`),
		In:      kernel.Schema[kernel.Verdict](), Out: kernel.Schema[kernel.Result]()}
}

func (g gitCommit) Run(ctx context.Context, env kernel.Env, v kernel.Verdict) (kernel.Result, error) {
	opt := struct {
		Branch string `json:"branch"`
	}{defaultBranch}
	if len(env.Options) > 0 {
		if err := kernel.DecodeStrict(env.Options, &opt); err != nil {
			return kernel.Result{}, kernel.E("commit.Git", kernel.Invalid, err, "the options of commit/git are not what it takes").WithNext("see witan stage list --json")
		}
	}
	return g.commit(ctx, env, v, func(c content) (string, error) {
		branch := strings.ReplaceAll(opt.Branch, "{run}", string(c.run))
		return branch, g.write(ctx, env, c, branch)
	})
}

func (g gitCommit) write(ctx context.Context, env kernel.Env, c content, branch string) error {
	r, err := openRepo(ctx, g.runner, c, branch)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "witan-commit-")
	if err != nil {
		return kernel.E("commit.Git", kernel.ReadOnly, err, "there is no room for a temporary index")
	}
	defer os.RemoveAll(dir)
	written, err := r.tree(ctx, g.runner, env.Packs, c, dir)
	if err != nil {
		return err
	}
	if done, err := r.done(ctx, written); done || err != nil {
		return err
	}
	date := "@" + strconv.FormatInt(env.Now().Truncate(time.Second).Unix(), 10) + " +0000"
	args := []string{"commit-tree", written, "-F", "-"}
	if r.parent != "" {
		args = append(args, "-p", r.parent)
	}
	id, err := line(r.git.OutputIn(ctx, slices.Concat(ident, []string{"GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date}), []byte(message(c.snap.Text, c.run)), durable(args...)...))
	if err != nil {
		return err
	}
	// An empty old value: only if there is no such branch.
	if _, err := r.git.OutputEnv(ctx, ident, durable("update-ref", "-m", "witan: "+string(c.run), "--", r.ref, id, "")...); err != nil {
		if done, again := r.done(ctx, written); done || again != nil {
			return again
		}
		return err
	}
	return nil
}

// Nobody is to be mistaken for the person.
var ident = []string{"GIT_AUTHOR_NAME=Witan", "GIT_AUTHOR_EMAIL=witan@localhost", "GIT_COMMITTER_NAME=Witan", "GIT_COMMITTER_EMAIL=witan@localhost"}

func durable(args ...string) []string {
	return append([]string{"-c", "core.fsync=all", "-c", "i18n.commitEncoding=UTF-8"}, args...)
}

// repo is the person's repository, of which we write objects and one ref.
type repo struct {
	git    *tree.Git
	dir    string // git's folder
	branch string
	ref    string
	parent string
	run    kernel.RunID
}

func openRepo(ctx context.Context, run kernel.Runner, c content, branch string) (*repo, error) {
	ws := c.snap.Workspace
	if ws.Kind != "git" {
		return nil, &kernel.Failure{Class: kernel.ClassExecution, Reason: "no_repository",
			Text: "the workspace " + ws.Path + ` was not frozen as a git repository; use commit = "apply" or "record"`}
	}
	r := &repo{branch: branch, ref: "refs/heads/" + branch, parent: ws.Commit, run: c.run}
	g, err := tree.NewGit(ctx, run, ws.Path)
	if err == nil {
		r.git = g
		r.dir, err = line(g.Output(ctx, "rev-parse", "--absolute-git-dir"))
	}
	if kernel.IsKind(err, kernel.Unavailable) {
		return nil, &kernel.Failure{Class: kernel.ClassExecution, Reason: "no_repository", Err: err,
			Text: "the workspace " + ws.Path + ` is no git repository that can be used now; put it back, or use commit = "record"`}
	}
	if err != nil {
		return nil, err
	}
	if _, err := g.Output(ctx, "check-ref-format", r.ref); err != nil {
		if !kernel.IsKind(err, kernel.Unavailable) {
			return nil, err
		}
		return nil, kernel.E("commit.Git", kernel.Invalid, nil, "%q is no name of a branch", branch).WithNext(`use branch = "` + defaultBranch + `"`)
	}
	return r, nil
}

// tree writes the frozen commit's tree with the candidate's files, by an index of our
// own. What git converts it converts as in git add; nothing of the person's folder is
// looked at, so what the candidate did not change stays out.
func (r *repo) tree(ctx context.Context, run kernel.Runner, p kernel.Packs, c content, dir string) (string, error) {
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return "", kernel.E("commit.Git", kernel.ReadOnly, err, "there is no room for the files to commit")
	}
	sub := tree.DecodePath(c.snap.Workspace.Sub)
	files := make([]kernel.CandidateFile, len(c.files))
	var gone, there strings.Builder
	for i, f := range c.files {
		if err := tree.CheckPath(f.Path); err != nil {
			return "", err
		}
		name := path.Join(sub, tree.DecodePath(f.Path))
		list := &there
		if f.Hash.IsZero() {
			list = &gone
		}
		list.WriteString(name + "\x00")
		files[i], files[i].Path = f, tree.EncodePath(name)
	}
	if err := tree.Overlay(ctx, p, files, work); err != nil {
		return "", err
	}
	g, err := tree.NewGit(ctx, run, work, "GIT_DIR="+r.dir, "GIT_WORK_TREE="+work, "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
	if err != nil {
		return "", err
	}
	if r.parent != "" {
		if _, err := g.Output(ctx, "read-tree", r.parent); err != nil {
			return "", err
		}
	}
	if _, err := g.OutputIn(ctx, nil, []byte(gone.String()), durable("update-index", "--force-remove", "-z", "--stdin")...); err != nil {
		return "", err
	}
	exact := durable("-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.safecrlf=false", "update-index", "--add", "--replace", "-z", "--stdin")
	if _, err := g.OutputIn(ctx, nil, []byte(there.String()), exact...); err != nil {
		return "", err
	}
	return line(g.Output(ctx, durable("write-tree")...))
}

// done reports whether the branch has our commit. Another branch of the name, or one
// that stands in its way, is a failure.
func (r *repo) done(ctx context.Context, written string) (bool, error) {
	taken := func(text string) error {
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "branch_exists", Text: text + "; rename or delete it, or set another branch"}
	}
	out, err := r.git.Output(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/")
	if err != nil {
		return false, err
	}
	var head string
	for l := range strings.SplitSeq(string(out), "\n") {
		id, ref, _ := strings.Cut(l, " ")
		switch {
		case ref == r.ref:
			head = id
		case strings.HasPrefix(ref, r.ref+"/") || ref != "" && strings.HasPrefix(r.ref, ref+"/"):
			return false, taken("branch " + strings.TrimPrefix(ref, "refs/heads/") + " is in the way of branch " + r.branch)
		}
	}
	if head == "" {
		if at, err := r.git.Output(ctx, "symbolic-ref", "--quiet", "HEAD"); err == nil && strings.TrimSuffix(string(at), "\n") == r.ref {
			return false, taken("branch " + r.branch + " is the one that the workspace is on")
		}
		return false, nil
	}
	ours, err := r.search(ctx, head, written)
	if err == nil && !ours {
		err = taken("branch " + r.branch + " exists and has another commit")
	}
	return ours, err
}

// search looks for our commit: the person may have gone on from it.
func (r *repo) search(ctx context.Context, head, written string) (bool, error) {
	args := []string{"rev-list", "--max-count=" + strconv.Itoa(searched), head}
	if r.parent != "" {
		args = append(args, "^"+r.parent)
	}
	out, err := r.git.Output(ctx, args...)
	if err != nil {
		return false, err
	}
	for id := range strings.FieldsSeq(string(out)) {
		b, err := r.git.Output(ctx, "cat-file", "commit", id)
		if err != nil {
			return false, err
		}
		head, text, _ := strings.Cut(string(b), "\n\n")
		if strings.HasPrefix(head, "tree "+written+"\n") && strings.HasSuffix(strings.TrimRight(text, "\n"), "\n"+trailer(r.run)) {
			return true, nil
		}
	}
	return false, nil
}

// line cuts the line end, and only that, off what git printed.
func line(out []byte, err error) (string, error) {
	return strings.TrimSuffix(strings.TrimSuffix(string(out), "\n"), "\r"), err
}
