// Package receipt reads the statement that closes a turn: from the receipt tool,
// or from the end of the text. Where both are there they must be canonically
// equal.
//
// It is pure: the reply and the packs it names decide the claim, so running it
// again, before or after a crash, gives the same one. Strict reading fails the
// attempt with class protocol; lenient reading drops what it cannot read, names
// the codes in Dropped, and always keeps the text. Findings of a receipt become
// outcomes.
package receipt
