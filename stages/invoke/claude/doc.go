// Package claude drives Claude Code over its own duplex stream of JSON: prompts
// and answers to questions go in, events come out. The stream says more than ACP
// does: what failed and why, what was used, and what a tool is about to do.
//
// A host builds one Agent per configured agent:
//
//	claude.New(claude.Config{
//		ID:       "alpha",
//		Spec:     func(p turn.Place) (proc.Spec, error) { … },
//		Sessions: stores.Conversations,
//		Decide:   …, Model: "…", Effort: "…", Idle: …, LineBytes: …,
//		Watchdog: turn.Watchdog{…},
//		Hide:     turn.Hide{"value of KEY": "[KEY]"},
//	})
//
// Spec names the program and how it is held; the flags of the protocol, of the
// session, the model, the effort and the tool servers go behind its arguments.
//
// # Guarantees
//
//   - A turn is good only if its result says so and there was text or a tool. The
//     words "success" and exit codes are not believed; signs.go has the table of
//     what is, with a recorded stream for each row.
//   - The fingerprint of the prompt is on record before the prompt leaves, and a
//     permission decision before its answer does. The same request twice is one
//     decision. A read-only turn that the system cannot hold has no tools that
//     change anything.
//   - The text of thoughts and of sub-agents stays with the agent; both count as
//     progress. Text that arrives in pieces and again as a whole is taken once.
//   - Native ids of sessions, and what Hide names, reach no record.
//   - A stop is an interrupt first. An agent that obeyed is kept for the next turn
//     of its session; any other is ended with its whole tree before Invoke returns.
//   - A process has one session. It serves the turns that go on in it; a turn that
//     starts anew, or has other tool servers, gets a process of its own.
//
// # What a crash may leave behind
//
// Agents end with their supervisors. The name of a session is chosen here and
// stored, so that the next host resumes it.
package claude
