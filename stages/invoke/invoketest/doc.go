// Package invoketest is the contract that every adapter keeps: one suite, run
// over a scripted agent in a process of its own and over one in this process.
//
// A test binary that uses it has a TestMain that returns through Main: the
// binary is the supervisor of what it starts.
package invoketest
