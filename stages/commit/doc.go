// Package commit records results: the message of an attempt, and once per run the
// accepted result. "commit/record" does no more; "commit/apply" writes the accepted
// files to the workspace; "commit/git" commits them on a branch of their own.
//
// All are keyed: the ids follow from the run and the place in it, so doing it again
// after a crash finds or finishes the same effect and gives the same result. A
// result holds no time; the stored message does.
//
// Apply compares all files before it writes one. A file that is as the run found it
// becomes the new one, one that is new already stays, and where the person changed
// something else in a text the two are merged; anything else is an apply_conflict,
// and nothing was written. Line ends that the person's copy has throughout are kept,
// and so are its permissions but for execution. Nothing is followed, and nothing
// outside of the workspace or in a repository's own folder is touched. A crash leaves
// each file old or new, never half of it, and at most files named .tmp-witan-*, which
// the next try of the same run takes away. Hard links to a file stay with the old
// content.
//
// Git writes objects and one ref. The person's index, branch and files are not
// touched and hooks do not run. A crash leaves the branch with the whole commit, or
// no branch.
package commit
