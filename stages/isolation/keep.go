package isolation

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"witan/kernel"
	"witan/kernel/tree"
)

// keptRefs is where kept content is in a repository.
const keptRefs = "refs/witan/kept/"

// keep makes recoverable what would be lost: content, if all is set, and commits
// that are on no branch. It returns the ref or the folder that has it, and afterwards
// nothing else of e needs to be kept.
func (p *Places) keep(ctx context.Context, root *os.Root, e *entry, pr proof, all bool) (string, error) {
	if e.How == InPlace {
		return "", nil
	}
	var head string
	if e.How == Worktree && !pr.gone {
		var err error
		if head, err = p.lonely(ctx, e); err != nil || head == "" && !all {
			return "", err
		}
		ref, err := p.keepRef(ctx, e, head, all)
		if err == nil || !kernel.IsKind(err, kernel.Unavailable) && !kernel.IsKind(err, kernel.Unsupported) {
			return ref, err
		}
	} else if !all && !pr.gone {
		return "", nil
	}
	// What git cannot take, a repository inside or a file that cannot be read, stays
	// as it is in a folder.
	if head != "" {
		if _, err := p.keepRef(ctx, e, head, false); err != nil {
			return "", err
		}
	}
	if err := root.Mkdir(keptFolder, 0o700); err != nil && !os.IsExist(err) {
		return "", disk("isolation.Remove", err, "the folder for kept work cannot be made")
	}
	to := filepath.Join(keptFolder, e.Name)
	if err := root.Rename(filepath.Join(e.Name, e.Name), to); err != nil {
		return "", disk("isolation.Remove", err, "the work in place %s cannot be kept", e.Name)
	}
	return filepath.Join(e.root, to), nil
}

// inside is git with the worktree of e, named outright.
func (p *Places) inside(ctx context.Context, e *entry) (*tree.Git, error) {
	return tree.NewGit(ctx, p.Run, e.dir(), "GIT_DIR="+e.Admin, "GIT_WORK_TREE="+e.dir(), "GIT_INDEX_FILE="+e.at("index.keep"))
}

// lonely is the commit of a worktree unless a branch or tag has it. A turn may have
// left none at all.
func (p *Places) lonely(ctx context.Context, e *entry) (string, error) {
	g, err := p.inside(ctx, e)
	if err != nil {
		return "", err
	}
	head, err := line(g.Output(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"))
	if kernel.IsKind(err, kernel.Unavailable) {
		return "", nil
	}
	if err != nil || p.unmerged(ctx, e) == 0 {
		return "", err
	}
	return head, nil
}

// unmerged counts the commits of a worktree that are on no branch and no tag.
func (p *Places) unmerged(ctx context.Context, e *entry) int {
	g, err := p.inside(ctx, e)
	if err != nil {
		return -1
	}
	n, err := line(g.Output(ctx, "rev-list", "--count", "HEAD", "--not", e.Commit, "--branches", "--tags", "--remotes"))
	if err != nil {
		return -1
	}
	count, err := strconv.Atoi(n)
	if err != nil {
		return -1
	}
	return count
}

// keepRef makes a ref of head or, with all, of a commit of everything that git does
// not ignore.
func (p *Places) keepRef(ctx context.Context, e *entry, head string, all bool) (string, error) {
	g, err := p.inside(ctx, e)
	if err != nil {
		return "", err
	}
	commit := head
	if all {
		if commit, err = p.commitAll(ctx, g, e, head); err != nil {
			return "", err
		}
	}
	ref := keptRefs + e.Name
	_, err = g.OutputEnv(ctx, ident, "-c", "core.fsync=all", "update-ref", ref, commit)
	return ref, err
}

var ident = []string{"GIT_AUTHOR_NAME=Witan", "GIT_AUTHOR_EMAIL=witan@localhost", "GIT_COMMITTER_NAME=Witan", "GIT_COMMITTER_EMAIL=witan@localhost"}

func (p *Places) commitAll(ctx context.Context, g *tree.Git, e *entry, head string) (string, error) {
	if err := copyFile(e.at(indexFile), e.at("index.keep")); err != nil {
		return "", disk("isolation.Remove", err, "git's index cannot be copied")
	}
	others, err := g.Output(ctx, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return "", err
	}
	for _, p := range split(others) {
		if strings.HasSuffix(p, "/") {
			return "", kernel.E("isolation.Remove", kernel.Unsupported, nil, "%q is a repository of its own", p)
		}
	}
	if _, err := g.Output(ctx, "-c", "core.fsync=all", "-c", "core.safecrlf=false", "add", "--all", "--", "."); err != nil {
		return "", err
	}
	written, err := line(g.Output(ctx, "-c", "core.fsync=all", "write-tree"))
	if err != nil {
		return "", err
	}
	if head == "" {
		head = e.Commit
	}
	return line(g.OutputEnv(ctx, ident, "-c", "core.fsync=all", "commit-tree", written, "-p", head, "-m", "Work of a run that was not finished\n\nWitan-Run: "+string(e.Run)))
}
