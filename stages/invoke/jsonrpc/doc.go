// Package jsonrpc is a bounded JSON-RPC 2.0 peer over a pair of streams.
//
// Framing is by JSON value: line ends only separate values, the end of input
// ends the last one. Lines that do not look like an object are noise and go to
// diagnostics. What is wrong in a way that cannot be told from lost data fails
// closed: malformed JSON, a response to an id never used, a line over the limit.
// Notifications are handled in order, and before any response that came behind
// them is returned; a slow handler slows the other side down, nothing is dropped.
package jsonrpc
