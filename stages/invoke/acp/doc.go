// Package acp drives agents that speak the Agent Client Protocol, as supervised
// processes or, for the built-in ones, in this process.
//
// A turn is good only if it ended properly and produced text or a tool result.
// Whatever else happens becomes a typed failure with the partial reply. Silence
// is bounded by the watchdog; waiting for a person is not silence. An agent that
// obeyed cancel keeps its process and its session for the next turn.
//
// A crash of the host ends the agents with their supervisors; native sessions are
// stored and, where the agent can, loaded by the next host.
package acp
