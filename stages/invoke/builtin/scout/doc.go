// Package scout is the built-in agent that maps a workspace: what it is
// written in, where it starts, what it depends on, what tests it has and what
// changed last. It reads; it runs nothing but git, and changes nothing.
//
// The map is made of facts that a file or git states. Nothing is guessed from
// names alone where a manifest says it. After a crash nothing is left behind.
package scout
