// Package inspector is the built-in agent of deterministic checks: every
// finding names a file and a line and carries the lines themselves as evidence.
//
// # What is checked
//
//   - conflict markers: a whole conflict (<<<<<<<, =======, >>>>>>> in order, at
//     the start of lines), not an underline and not a string that holds one
//   - secrets: keys of known form and assigned values that look random
//   - relative links in Markdown: the file and, in Markdown, the heading
//   - JSON, YAML and TOML that does not parse; comments are fine where the
//     reader of the file allows them
//   - files of more than 5 MiB and compiled binaries that are tracked
//   - go vet, and the syntax of JavaScript and Python, where the tools are
//     installed; they are confined and cannot write the workspace
//
// # What is left alone
//
// A finding must be worth a person's time, so what is wrong on purpose is no
// finding: anything below testdata, fixtures, __fixtures__, __snapshots__ or
// golden, and txtar archives; secrets and data files in tests; a line with the
// comment "witan:ignore", or the line after one that holds nothing else; and
// what the file .witanignore at the top of the workspace lists, one pattern a
// line ("docs/old/" a folder, "*.gen.json" a name anywhere, "a/b/*.md" a path).
//
// # Guarantees
//
// Nothing in the workspace is written. Time, files and findings are bounded; a
// bound that was reached and a check that could not run are sentences of the
// report. After a crash only files in the turn's state folder remain.
package inspector
