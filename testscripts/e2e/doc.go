// Package e2e runs a real coding agent under the real binary. A pinned OpenCode
// answers from the scripted model server, so there is no model, no account and
// the same answer every time.
//
// The tests have the build tag e2e: they install the agent from npm, with the
// hashes of opencode/package-lock.json, into a cache directory. Run them with
// make e2e.
package e2e
