// Package turn holds what all adapters share: how an agent is started and ended
// (Connect, Transport), how its silence is bounded (Watchdog), how its own words
// of a failure are read (Classify), and how what it says becomes a reply (Recorder).
//
// # Guarantees
//
//   - A text is kept as the agent wrote it, but for what Hide names: that leaves
//     the host neither whole nor in pieces.
//   - After Stop a recorder takes nothing new: what an agent says after it was
//     told to stop is in no reply.
//   - What a recorder keeps is bounded: 64 MiB of text, kernel.MaxReplyTools
//     tools, 512 outcomes.
//   - A Failure has the reply so far in Partial.
//
// It holds nothing that a crash could leave behind; the processes are proc's.
package turn
