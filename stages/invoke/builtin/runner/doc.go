// Package runner is the built-in agent that runs the project's own tests: in a
// copy of the workspace, confined to it, within a time limit.
//
// # What is run
//
// At the top of the workspace, else in the first folders below it that have
// something: go test ./... for a Go module with tests; npm test where
// package.json names one, else node --test where there are test files; pytest,
// or unittest where that is not installed; cargo test; and, where none of these
// is found, the test target of a Makefile. Nothing is downloaded: where the
// project's dependencies are not on the machine, that is said and is no failure
// of its tests.
//
// # Guarantees
//
//   - The copy holds what git tracks and what is new and not ignored, with links
//     that stay inside; the workspace is not written. Installed dependencies
//     (node_modules, .venv) are linked, and cannot be written either where the
//     system can confine.
//   - A failing test is a finding with the place its output names, backed by
//     the command, its exit code and its output as reproduced evidence. Times
//     and the folder of the copy are left out of it, so that the same failure
//     is the same evidence.
//   - Tests that do not end within the limit are stopped with everything they
//     started; this is reported, and says nothing about them.
//   - What it starts carries WITAN_INSIDE; a runner below it runs nothing.
//
// After a crash a copy may remain in the turn's state folder.
package runner
