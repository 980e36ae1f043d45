// Package kerneltest holds what tests of every port share: in-memory
// implementations, fault-injecting decorators, and the conformance suites that
// each implementation and each decorator runs.
package kerneltest
