// Package opencode drives OpenCode, and its fork Kilo, by the events of "opencode
// run --format json": a process for each turn, which goes on in the session of the
// one before.
//
//	opencode.New(opencode.Config{ID: "alpha", Spec: …, Sessions: stores.Conversations, Watchdog: …, Hide: …})
//
// The command of the Spec is the program and whatever a person wants in front of
// "run"; the adapter adds the rest. The prompt goes in on stdin.
//
// # Guarantees
//
// Those of package stream, and:
//
//   - A read-only turn that the system does not hold has no tools that change
//     anything. Nothing less would do: the program's plan mode runs commands.
//   - Settings that a person has in the environment stay, with those of the turn on
//     top. Tool servers are offered there and not in the arguments, which everybody
//     on the machine can read.
//   - How a turn ended is what its last step and the errors before it say. The
//     program's exit code is 1 also after a turn that it brought to a good end with
//     less context.
//   - The usage is the sum of the turn's steps, with what was read from the cache
//     and written to it in the input and the reasoning in the output.
//   - Reasoning is a sign of life and no text, and so is what the program says to
//     itself when the context is full.
//
// Nobody is asked for permission: what the person's settings want to ask about,
// the program refuses.
//
// # What it cannot see
//
// The program tells of a tool when it has ended. A tool that runs is silence, and
// bounded like that. It also makes room before the context is full, and its summary
// looks like an answer then.
//
// # What a crash may leave behind
//
// What package stream says, and the program's own record of the session.
package opencode
