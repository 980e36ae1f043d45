// Package council gives the agent of a turn tools: an MCP server named "witan"
// with receipt, context, ask and finding (SPEC A8).
//
// A host listens once. Each native session of an agent gets an Endpoint, whose
// MCP is what the adapter offers; each turn sets who answers there:
//
//	srv, err := council.Listen(dir)
//	e := srv.Endpoint(key)
//	t := council.NewTurn(council.TurnConfig{Env: env, Turn: turn, Strict: true, Lookup: …})
//	over := e.Turn(t)
//	… the turn …
//	over()
//	receipt, found := t.Collect()
//
// The agent starts `witan council-tools`, whose Relay carries bytes between its
// stdio and the host's socket; the protocol is served by the host alone.
//
// # Guarantees
//
//   - The socket has mode 0600 in a folder of mode 0700, and a connection says
//     nothing before it has shown an endpoint's token. The token is in the
//     environment of the server and never in arguments.
//   - A call is answered by the turn that is on when it arrives. Once over has
//     returned, nothing of that turn is answered any more, and what was still
//     under way has ended; later calls are told that the turn is over.
//   - A client that is gone, or breaks the protocol, ends its own calls and no
//     others. Lines, calls in flight, open questions, connections and findings
//     are bounded.
//   - What an agent is told of an error is its code and one sentence, never its
//     cause.
//   - Close returns when nothing of the server runs any more.
//
// # What a crash may leave behind
//
// The socket file, which the next Listen in the folder replaces; a folder of
// that one file under the temporary directory where the path would have been too
// long. What a turn had collected is lost with the turn.
package council
