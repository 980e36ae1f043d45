package tree

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"witan/kernel"
)

// maxGitOutput bounds what git may say: some 400,000 paths.
const maxGitOutput = 64 << 20

// gitArgs keep git from locking, paging and running what the repository names:
// it may come from anywhere. What the person set up in their own configuration
// (filters such as LFS, excludes) stays in force.
var gitArgs = []string{"git", "--no-optional-locks", "--no-pager",
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.quotePath=false",
	"-c", "core.sshCommand=false", "-c", "protocol.allow=never", "-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false"}

// gitEnv are the variables that git may see: none of its own, so that neither a
// hook that started us nor a shell points it somewhere else.
var gitEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME",
	"SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PATHEXT", "COMSPEC"}

// Git runs git in a repository that need not be trusted.
type Git struct {
	Run kernel.Runner
	Dir string
	Env []string // variables of every command, such as GIT_DIR
	off []string // settings against the repository's own filters
}

// NewGit looks up which filters the repository itself brings, to switch them off:
// a filter is a command. The error says why git is of no use here: NotFound when
// it is missing, Unavailable when it refuses the folder.
func NewGit(ctx context.Context, run kernel.Runner, dir string, env ...string) (*Git, error) {
	g := &Git{Run: run, Dir: dir, Env: env}
	r, err := g.run(ctx, nil, "config", "--show-scope", "--name-only", "-z", "--get-regexp", `^filter\.`)
	if err != nil {
		return nil, err
	}
	if r.Exit > 1 || r.Exit < 0 { // 1: there is none
		return nil, gitFailed(r)
	}
	fields := strings.Split(string(r.Stdout), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		scope, key := fields[i], fields[i+1]
		if scope != "local" && scope != "worktree" {
			continue // the person's own
		}
		name := key[:strings.LastIndex(key, ".")]
		if strings.Contains(name, "=") {
			return nil, kernel.E("tree.NewGit", kernel.Unavailable, nil, "the repository brings a filter that cannot be switched off")
		}
		for _, set := range []string{".clean=", ".smudge=", ".process=", ".required=false"} {
			if set = name + set; !slices.Contains(g.off, set) {
				g.off = append(g.off, "-c", set)
			}
		}
	}
	return g, nil
}

// Output runs one git command and returns what it printed. An exit other than 0
// is an Unavailable error.
func (g *Git) Output(ctx context.Context, args ...string) ([]byte, error) {
	return g.OutputEnv(ctx, nil, args...)
}

// OutputEnv is Output with more variables.
func (g *Git) OutputEnv(ctx context.Context, env []string, args ...string) ([]byte, error) {
	return output(g.run(ctx, env, args...))
}

// OutputIn is OutputEnv with something on its standard input.
func (g *Git) OutputIn(ctx context.Context, env []string, stdin []byte, args ...string) ([]byte, error) {
	return output(g.start(ctx, env, stdin, args...))
}

func output(r kernel.CommandResult, err error) ([]byte, error) {
	switch {
	case err != nil:
		return nil, err
	case r.Exit != 0:
		return nil, gitFailed(r)
	case r.Cut > 0:
		return nil, kernel.E("tree.Git", kernel.Unavailable, nil, "git says more than %d MiB", maxGitOutput>>20)
	}
	return r.Stdout, nil
}

func (g *Git) run(ctx context.Context, env []string, args ...string) (kernel.CommandResult, error) {
	return g.start(ctx, env, nil, args...)
}

func (g *Git) start(ctx context.Context, env []string, stdin []byte, args ...string) (kernel.CommandResult, error) {
	env = slices.Concat(g.Env, env)
	for _, name := range gitEnv {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1")
	r, err := g.Run.Run(ctx, kernel.Command{Argv: slices.Concat(gitArgs, g.off, args), Dir: g.Dir, Env: env, Stdin: stdin, Limit: maxGitOutput})
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	return r, err
}

func gitFailed(r kernel.CommandResult) error {
	line, _, _ := strings.Cut(strings.TrimSpace(string(r.Stderr)), "\n")
	return kernel.E("tree.Git", kernel.Unavailable, nil, "git ended with %d: %s", r.Exit, strings.ToValidUTF8(line, "\uFFFD"))
}

// Materialise writes the frozen state of a workspace below dir, which must exist
// and be empty, and returns the folder in it that is the workspace. Of a git
// folder it writes the commit and its submodules, best effort, and over them the
// files that differed; the repository at ws.Path gives the commit, and its index is not touched: git gets
// another, beside dir, for as long as it takes.
func Materialise(ctx context.Context, run kernel.Runner, p kernel.Packs, ws kernel.Workspace, dir string) (string, error) {
	dir = filepath.Clean(dir)
	switch ws.Kind {
	case "folder":
		return dir, Checkout(ctx, p, ws.Tree, dir)
	case "git":
		if err := commit(ctx, run, p, ws, dir); err != nil {
			return "", err
		}
		if err := Overlay(ctx, p, Dirty(ws.Dirty), dir); err != nil {
			return "", err
		}
		if ws.Sub == "" {
			return dir, nil
		}
		at, err := local(dir, DecodePath(ws.Sub))
		if err != nil {
			return "", err
		}
		return at, failed(os.MkdirAll(at, 0o755), ws.Sub)
	}
	return "", kernel.E("tree.Materialise", kernel.Invalid, nil, "the snapshot holds no folder").WithNext("use freeze/workspace")
}

func commit(ctx context.Context, run kernel.Runner, p kernel.Packs, ws kernel.Workspace, dir string) error {
	if ws.Commit == "" {
		return nil
	}
	g, err := NewGit(ctx, run, ws.Path)
	if err != nil {
		return err
	}
	index, err := os.MkdirTemp(filepath.Dir(dir), ".tmp-index-")
	if err != nil {
		return failed(err, "index")
	}
	defer os.RemoveAll(index)
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(index, "index")}
	// checkout-index works from the top of the repository only.
	top, err := g.Output(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	g.Dir = strings.TrimSuffix(string(top), "\n")
	for _, args := range [][]string{{"read-tree", ws.Commit}, {"checkout-index", "--all", "--force", "--prefix=" + dir + "/"}} {
		if _, err := g.OutputEnv(ctx, env, args...); err != nil {
			return err
		}
	}
	Submodules(ctx, run, p, g.Dir, dir, ws.Commit)
	return ctx.Err()
}
