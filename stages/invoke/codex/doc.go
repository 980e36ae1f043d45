// Package codex drives Codex CLI by the events of "codex exec --json": a process
// for each turn, which resumes the thread of the one before.
//
//	codex.New(codex.Config{ID: "alpha", Spec: …, Sessions: stores.Conversations, Watchdog: …, Hide: …})
//
// The command of the Spec is the program and whatever a person wants in front of
// "exec"; the adapter adds the rest. The prompt goes in on stdin.
//
// # Guarantees
//
// Those of package stream, and:
//
//   - Where the system holds the turn, the program's own sandbox is off: one inside
//     the other breaks tools and protects nothing more. Elsewhere it is on, read-only
//     or for the workspace.
//   - How a turn ended is what the program's events say, whatever its exit code. An
//     error that it got over is a notice; a warning is only a diagnostic.
//   - The program counts the whole thread. The usage of a turn is what was added
//     since the turn before; it is unknown when this host has not seen that one end.
//   - Tool servers are offered without their values in the arguments, which
//     everybody on the machine can read.
//   - Reasoning is a sign of life and no text.
//
// Nobody is asked for permission: the program has no channel for that.
//
// # What a crash may leave behind
//
// What package stream says, and the program's own record of the thread.
package codex
