// Package term shows runs and lists on a terminal. It reads the same lines that
// `--json` prints and knows nothing else: no store, no stage, no process.
//
// Text of agents is hostile: everything printed goes through plaintext.Clean,
// so no control sequence of an agent reaches the terminal.
package term
