package isolation

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"witan/kernel"
	"witan/kernel/tree"
)

// proof is what is known of an entry before anything of it is removed.
type proof struct {
	content    bool // there is some
	registered bool // with git
	gone       bool // the repository is
}

func refuse(what string, args ...any) *kernel.Error {
	return kernel.E("isolation.Remove", kernel.Conflict, nil, what, args...)
}

// prove shows that the content of e is what we made, or refuses.
func (p *Places) prove(ctx context.Context, root *os.Root, e *entry) (proof, error) {
	var pr proof
	fi, err := root.Lstat(filepath.Join(e.Name, e.Name))
	switch {
	case os.IsNotExist(err):
	case err != nil:
		return pr, disk("isolation.Remove", err, "place %s cannot be looked at", e.Name)
	case fi.Mode()&fs.ModeSymlink != 0:
		return pr, refuse("the folder of place %s is now a link to somewhere else", e.Name).WithNext("remove the link %s yourself", e.dir())
	case !fi.IsDir():
		return pr, refuse("the folder of place %s is no folder any more", e.Name).WithNext("remove %s yourself", e.dir())
	default:
		pr.content = true
		if real, err := filepath.EvalSymlinks(e.dir()); err != nil || real != e.dir() {
			return pr, refuse("place %s is not where it was made", e.Name).WithNext("look at %s", e.dir())
		}
	}
	if e.How != Worktree || e.Repository == "" {
		return pr, nil
	}
	if fi, err := os.Stat(e.Repository); os.IsNotExist(err) || err == nil && !fi.IsDir() {
		pr.gone = true
		return pr, nil
	}
	return pr, p.registered(ctx, e, &pr)
}

// registered asks git whether the place is a worktree of the repository, and
// whether the person uses it.
func (p *Places) registered(ctx context.Context, e *entry, pr *proof) error {
	g, err := tree.NewGit(ctx, p.Run, e.root, "GIT_DIR="+e.Repository)
	if err != nil {
		return err
	}
	out, err := worktrees(ctx, g, e.Repository, "list", "--porcelain")
	if err != nil {
		return err
	}
	for block := range strings.SplitSeq(string(out), "\n\n") {
		at, rest, _ := strings.Cut(block, "\n")
		if filepath.FromSlash(strings.TrimPrefix(at, "worktree ")) != e.dir() {
			continue
		}
		pr.registered = true
		for l := range strings.SplitSeq(rest, "\n") {
			word, what, _ := strings.Cut(l, " ")
			switch word {
			case "branch":
				return refuse("branch %s is checked out in place %s", strings.TrimPrefix(what, "refs/heads/"), e.Name).
					WithNext("run git switch --detach in %s, then try again", e.dir())
			case "locked":
				return refuse("place %s is locked with git", e.Name).WithNext("run git worktree unlock %s, then try again", e.dir())
			}
		}
	}
	if pr.content && e.Ready && !pr.registered {
		return refuse("git does not know place %s any more", e.Name).WithNext("look at %s and remove it yourself", e.dir())
	}
	return nil
}
