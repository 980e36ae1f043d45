// Package host wires stores, buses, stages and agents into the process that
// owns a data directory, and offers its operations to commands in the same
// process and, over a local socket, to others.
//
// Every operation takes JSON arguments and gives JSON lines: what `--json`
// prints. Guarantees: one host per data directory (the stores hold the lock);
// an operation's caller may go away at any time without touching a run; a host
// made by a command stays until the connections it accepted are done.
package host
