// Package isolation gives turns the folder that they work in.
//
// A writer works in a place of its own below a root of ours: in a git folder in a
// worktree of the frozen commit, without a branch; in a folder without git, or in a
// repository that has no commit yet, in a plain copy. Over it lie the files that
// differed when the workspace was frozen, and the candidate that the turn goes on
// from. Who reads a candidate gets such a place too. With consent a writer works in
// the person's own folder; then what it did is found by comparing with the state
// before. Submodules that the person has checked out are there as plain files, best
// effort; what changes in them, in repositories inside, or in what git ignores, is
// no part of a candidate. Files that cannot be read, are special or larger than
// tree.MaxFile are reported as changed and are no part of a candidate either: they never
// look deleted.
//
// The content of a file is its bytes on disk, as git checks them out, and its mode
// is whether it may be executed. Nothing is followed out of a place. Git is run with
// the repository's own folder named outright, so that what a turn leaves at .git in
// its place decides nothing.
//
// A place is a folder below the root with a marker beside the content. It is removed
// only after proof: the marker names it, it lies in the root after links are
// resolved and is no link, and, for a worktree, git has it registered, unlocked and
// without a branch of the person. Content that was never captured is kept first: as
// a commit at refs/witan/kept/NAME, or moved to the folder kept in the root. A crash
// leaves a place that Leftovers lists and Remove takes away; neither ever removes a
// branch, or what it did not make.
package isolation
