package tree

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"witan/kernel"
)

// maxSubmodules bounds the submodules of one repository.
const maxSubmodules = 256

// Submodules writes the submodules of a commit below dir, which holds that commit,
// as plain files: those that are checked out in the repository at top and have the
// commit that is wanted. It is best effort: the others stay empty folders. Nothing
// is fetched.
func Submodules(ctx context.Context, run kernel.Runner, p kernel.Packs, top, dir, commit string) {
	if fi, err := os.Lstat(filepath.Join(dir, ".gitmodules")); err != nil || !fi.Mode().IsRegular() {
		return
	}
	g, err := NewGit(ctx, run, top)
	if err != nil {
		return
	}
	out, err := g.Output(ctx, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return
	}
	n := 0
	for rec := range strings.SplitSeq(string(out), "\x00") { // mode type object TAB path
		head, name, _ := strings.Cut(rec, "\t")
		part := strings.Fields(head)
		if len(part) != 3 || part[0] != "160000" || n == maxSubmodules {
			continue
		}
		n++
		from, err1 := local(top, name)
		to, err2 := local(dir, name)
		if err1 != nil || err2 != nil || !emptyFolder(dir, name) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(from, ".git")); err != nil {
			continue // or git would take the repository around it
		}
		_, _ = Materialise(ctx, run, p, kernel.Workspace{Kind: "git", Path: from, Commit: part[2]}, to) // and those in it
	}
}

// emptyFolder reports whether name below dir is an empty folder, of whose path
// nothing is a link.
func emptyFolder(dir, name string) bool {
	at := dir
	for part := range strings.SplitSeq(name, "/") {
		at = filepath.Join(at, part)
		if fi, err := os.Lstat(at); err != nil || !fi.IsDir() {
			return false
		}
	}
	left, err := os.ReadDir(at)
	return err == nil && len(left) == 0
}
