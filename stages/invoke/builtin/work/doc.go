// Package work holds what every built-in agent is given and what it gives
// back: the turn, the folder it may read, the commands it may run, the
// evidence it leaves and the report it closes with.
//
// # Guarantees
//
//   - A Folder is read-only and never leaves the workspace: every name is
//     resolved below its root, a link that points outside is not followed, and
//     only regular files are opened. Files, bytes and depth are bounded, so a
//     hostile folder costs a bounded amount of time and memory.
//   - The same folder gives the same list, in the same order, on every machine.
//   - Commands run through kernel.Runner with a complete environment of our
//     own: a private HOME and TMPDIR, and no credentials.
//
// # What a crash may leave behind
//
// Files below Turn.State, which belongs to the turn and goes with it. Nothing
// here writes into the workspace.
package work
