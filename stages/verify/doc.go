// Package verify says what holds of a claim.
//
// Words never verify anything: a claim that names a command is verified only by
// a recorded run of exactly that command line, with the exit code it promises,
// on the candidate's exact content, after the last change. Missing is never
// pass. Only commands of the person are run; an agent's words never name one.
//
// The candidate is the frozen workspace with what the turn left over it, or with what
// it was given to read: of a git folder the commit, the tracked files that differ and
// the candidate's files, and nothing else. Evidence names exactly that content. It is
// written to a folder of its own below scratch. A check may write there, in a
// temporary folder beside it and in the build caches of the person's tools; where the
// system can confine it, nowhere else. A crash may leave folders named candidate-* in
// scratch: nothing refers to them. Running a stage again finds the same verdict or
// makes it anew.
package verify
