// Package gemini drives Gemini CLI and Qwen Code, which take one prompt and print
// a stream of JSON: each a shape of its own, with the same flags.
//
//	gemini.New(gemini.Config{ID: "alpha", Spec: …, Sessions: …, Model: "…", …})
//
// Spec names the program and how it is held; the flags of the stream, the mode,
// the session and the tool servers go behind its arguments.
//
// # Guarantees
//
// Those of package stream, and:
//
//   - A read-only turn runs in the mode in which the programs have no tools that
//     write or run anything; a writer in the one that asks nothing, because nobody
//     could answer. What a writer may touch is for the system to hold.
//   - A turn is good only if its result says so: exit codes are 0 after some
//     failures, and the status of a provider cut to eight bits after others.
//     signs.go has the table of what is read instead, with a recorded stream for
//     each row.
//   - An error in the shape of an answer is not shown as one. Thoughts and the
//     words of sub-agents stay with the agent; both count as progress.
//   - Of a session that Qwen Code resumed, whose counts are totals, the usage of a
//     turn is unknown unless this process saw the turn before.
//
// The name of a session is chosen here, so that the next host resumes it; it and
// what Hide names reach no record.
package gemini
