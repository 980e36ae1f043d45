// Package proc runs programs so that nothing of them outlives the host.
//
// Each program runs under a supervisor: this binary executed again. The
// supervisor is the leader of a session of its own and, on Linux, the reaper of
// every descendant, also of those that left their group or session. A pipe from
// the host is its lifeline: "stop" and "kill" come over it, and end of file
// without a word means that the host is gone. Then it ends the whole tree:
// terminate first, kill after the grace, again and again until no descendant is left.
//
// # Guarantees
//
//   - Done closes after the last descendant is gone. Stop, Kill, the program's
//     own end and the host's death all lead there; Kill also cuts a grace short.
//   - A program starts with the default action for every signal that the
//     supervisor handles, so that a polite end is possible.
//   - A confined program and all its descendants write only where Spec.Write
//     allows, and cannot signal what is outside: not the host, and not their
//     supervisor (Landlock ABI 3, and 6 for signals). Landlock does not cover
//     modes, owners, times and extended attributes of files.
//   - A program that cannot be started is an error of Start, confined or not.
//   - No process is ever ended by its name or by its number alone.
//
// # What a crash may leave behind
//
// After kill -9 of the host the supervisors do their work alone and write the
// report that Spec.Report names. After kill -9 of a supervisor the host ends its
// tree by an environment marker; a descendant that emptied its environment is
// missed. After both, Survivors finds the tree by marker and start time. A report
// file is whole or absent; a temporary file beside it may stay.
//
// # Systems
//
// Linux does all of this. macOS has neither reaper nor confinement: the
// program's group is ended, and the marker finds who left it. On Windows a job
// object ends the tree. Exit.Confined says what held a program.
package proc
