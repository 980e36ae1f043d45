// Package builtin holds the agents that work offline, with no model and no
// account, and the ACP server that makes them agents like any other: scout
// maps the workspace, inspector checks it, runner runs its tests.
//
// Serve speaks ACP over any pair of pipes; a host connects it to its ACP client
// with two in-memory pipes. Beside the protocol's own messages a turn sends the
// notification "_witan/outcome" with
//
//	{"sessionId": "…", "outcome": {…}, "content": "…"}
//
// for each finding and each piece of evidence, where content is the text that
// outcome.hash names (left out for a finding). The folder for what a turn must
// write is taken from "_meta": {"witan": {"state": "/path"}} of session/new or
// session/prompt; without it a temporary folder is made and removed.
//
// The turn block that ends a prompt says what is asked for. Without one, and in
// the phase respond, an agent does its own analysis. In a council it proposes
// what it found, looks up the places that a proposal names, puts forward the
// plan that follows from the block alone (so that all built-in agents put
// forward the same one), works, integrates or verifies; in a discussion it says
// what it found, and an owner closes its second round.
//
// A verification compares with what the run's first turns found, which is kept
// as digests in "before-….json" beside the turns' state folders, if those lie
// in a folder called like the run. Without it every fault of high severity
// counts as new.
//
// # Guarantees
//
//   - The same state of the workspace gives the same text, findings and evidence.
//   - A turn of a phase ends with its receipt, which strict reading takes; text
//     from the workspace in front of it cannot be taken for one.
//   - The workspace is written in one case: by the finalizer of a council whose
//     turn may write, as package mend says, each change listed.
//   - session/cancel ends a turn and everything it started with stop reason
//     "cancelled".
//
// # What a crash may leave behind
//
// Files below the turn's state folder, and what package mend leaves.
package builtin
