// Package commit records results: the message of an attempt, and once per run the
// accepted result.
//
// It is keyed: the ids follow from the run and the place in it, so doing it again
// after a crash finds the same effect and gives the same result. A result holds
// no time; the stored message does. A crash leaves the message written whole, or
// not at all.
package commit
