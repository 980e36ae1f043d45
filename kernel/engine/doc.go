// Package engine drives runs: it is the only writer of the ledger.
//
// One driver goroutine works on each active run. It asks kernel.Next for the
// next step, appends the records of the step durably, and only then tells the
// bus. Stage requests and results travel over the control bus as hints that
// carry digests; the executor re-reads the ledger for each request and answers
// a repeated one with the result it already has, so a lost, doubled or
// re-ordered signal changes nothing. While something is outstanding the driver
// repeats its requests with a growing pause; with no active run the package has
// no timer and no goroutine of its own besides the bus subscriptions.
//
// Order of every step (SPEC E5): durable ledger write, then the signal to the
// other side, then publication to views. A view cannot delay a record.
//
// # What a crash may leave behind
//
// Records up to some step and nothing of the next; packs that no record names;
// stream chunks of running attempts. Start turns every run that was being
// worked on into an interrupted one: an invoke stage without an end is closed
// with the text its stream holds, pure stages are run to their end, and nothing
// is invoked. Resume makes a new try.
package engine
