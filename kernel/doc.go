// Package kernel holds what every part of Witan agrees on: identifiers,
// digests, the ledger record, the typed stages, the ports to the world, and
// the two pure functions a run consists of, Fold and Decide.
//
// # Guarantees
//
//   - A run is the fold of its records and nothing else. Fold and Decide do no
//     I/O, read no clock, draw no random number and start no goroutine, so any
//     prefix of a ledger decides the same next step on every machine.
//   - Records form one hash chain per run. A record is durable before anything
//     is told about it; the bus carries hints, never truth.
//   - Packs are immutable and named by the SHA-256 of their bytes; whoever
//     reads one through the Packs port gets verified bytes or an error.
//
// # What a crash may leave behind
//
// At any moment the process may die. A stage that was started and not finished
// is then visible as a "stage.started" record without its end. What happens
// next depends on the stage's Class: Pure and Keyed stages run again, a Once
// stage is never repeated for the same attempt: the attempt becomes
// interrupted and a new try is made only by resume.
//
// The package imports the standard library only; a test enforces it.
package kernel
