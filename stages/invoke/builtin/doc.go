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
// # Guarantees
//
//   - The same state of the workspace gives the same text, findings and evidence.
//   - A turn ends with a respond receipt; text from the workspace in front of it
//     cannot be taken for one.
//   - session/cancel ends a turn and everything it started with stop reason
//     "cancelled".
//
// # What a crash may leave behind
//
// Files below the turn's state folder. The workspace is never written.
package builtin
