// Package jsonrpc is a bounded JSON-RPC 2.0 peer over a pair of streams.
//
// Framing is by JSON value: line ends only separate values, the end of input
// ends the last one. Lines that do not look like an object are noise and go to
// diagnostics. What is wrong in a way that cannot be told from lost data fails
// closed: malformed JSON, a response to an id never used, a line over the limit.
// Bytes that are no UTF-8 become one U+FFFD each; the line's hash is reported.
//
// # Guarantees
//
//   - Notifications are handled in order, and before any response that came
//     behind them is returned; a slow handler slows the other side down, nothing
//     is dropped.
//   - Every request of the other side is answered, by its own id as it was written.
//   - A side that does not read holds nobody up: Call obeys its context, Notify
//     never waits. What is queued for it is bounded by what our side sends and by
//     the requests that may be open at a time.
//   - A response that arrived before its call was given up is returned; one that
//     arrives later is reported as late. Neither ends the connection.
//   - A line costs at most three times its size, and nothing once it was handled.
//
// The owner closes what is behind both streams; then both goroutines end, and
// Done closes.
package jsonrpc
