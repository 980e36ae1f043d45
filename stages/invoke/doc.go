// Package invoke is the stage that gives a delivery to its agent and brings the
// reply back. The adapters are in the packages below.
//
// It is of class once: the fingerprint of what is sent is on record before the
// first byte leaves, and an invocation without an end is never repeated for the
// same attempt.
package invoke
