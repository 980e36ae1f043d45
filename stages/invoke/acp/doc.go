// Package acp drives agents that speak the Agent Client Protocol, as supervised
// processes or, for the built-in ones, in this process.
//
// A host builds one Agent per configured agent and looks it up by its id:
//
//	acp.New(acp.Config{
//		ID:       "alpha",
//		Connect:  acp.Process(func(p acp.Place) (proc.Spec, error) { … }),
//		Sessions: stores.Conversations,
//		Watchdog: acp.Watchdog{…}, LineBytes: …, Idle: …,
//		Usage:    acp.UsageRule{…},
//		Hide:     acp.Hide{"value of KEY": "[KEY]"},
//	})
//
// A built-in agent has Connect: acp.InProcess(serve) instead. Close ends the
// processes that are kept. The proc.Spec decides on the confinement: Write must
// hold the place's State and Output folders and, only when Place.Write is set,
// its Workspace. A kept process serves turns of the same conversation, workspace
// and permission to write; what its Spec allows stays as it was for the first of
// these turns.
//
// # Guarantees
//
//   - A turn is good only if it ended properly and produced text or a tool
//     result. Whatever else happens is a *kernel.Failure with the reply so far.
//   - The fingerprint of the prompt is on record before the prompt leaves, and a
//     permission decision before its answer does. An option that the agent did
//     not offer is never chosen; the same request twice is one decision.
//   - Silence is bounded by the watchdog. Counts of usage and other signs of life
//     are not progress; waiting for a person is not silence.
//   - After a stop nothing new is taken from the agent, and open questions are
//     answered "cancelled". An agent that obeyed keeps process and session for
//     the next turn; any other is ended with its whole tree before Invoke returns.
//   - What is printed between the messages goes nowhere but into the error text
//     of an agent that died without a word.
//
// # What a crash may leave behind
//
// Agents end with their supervisors. Native sessions are stored and, where the
// agent can, loaded by the next host.
package acp
