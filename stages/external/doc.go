// Package external makes any executable a stage: one JSON object on stdin, one on
// stdout, as for `witan stage`.
//
// The answer must be exactly of the stage's shape: every field that the schema
// requires, none it does not know, and the hash, when one is given, that of the
// output. A non-zero exit, the time limit or any other answer is a failure of the
// stage; its stderr is kept as a pack, without what looks like a secret. The
// program is the person's own: it runs with their rights, in a process tree of
// which nothing is left when the stage ends.
package external
