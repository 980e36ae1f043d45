// Package model is what the window shows: one immutable value, and pure functions
// that make the next value of it from what a host says. It draws nothing, reads
// no clock and starts no goroutine.
//
// A value that was handed out never changes: reducers copy what they touch, and
// text and lists only ever grow behind what an older value can see. A pointer
// that is still the same therefore means that nothing changed, which is what
// caches of drawn rows use as their key. Only the newest value is taken further:
// two values made from the same older one may share the room behind its text.
//
// What a host sends may come twice, or after a gap: lines are known by their
// epoch and revision, entities by their ids, so that a line applied twice leaves
// what it left the first time.
package model
