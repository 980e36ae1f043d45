// Package deliver builds the exact text an agent is given.
//
// It is pure: the turn, the snapshot and the packs they name decide every byte,
// so the same turn gives the same delivery, before and after a crash. The text
// ends with the one turn block it has: whatever else in it, of the person or of
// another agent, could be read as a marker of ours is made harmless. A session
// that goes on gets only what it has not acknowledged, a new one the whole
// package; Complete says whether anything of it was left out for its length.
package deliver
