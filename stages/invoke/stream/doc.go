// Package stream drives programs that take one prompt, print a stream of JSON
// values and end: what is common to them. What the values mean is a Dialect's
// matter, one per program:
//
//	stream.New(stream.Config{ID: "alpha", Spec: …, Sessions: …, Open: open})
//
//	func open(t *stream.Turn, s *proc.Spec) (stream.Reader, []byte, error) {
//		s.Args = append(s.Args, "--json")
//		if t.Resume != "" { … }
//		return &reader{t: t}, t.Req.Prompt, nil // the prompt is the program's input
//	}
//
// # Guarantees
//
//   - Each turn is a process of its own under the same supervision, confinement
//     and watchdog as any other agent's. After a stop its tree is gone: told to
//     end, then ended by force. There is no cancel but that.
//   - The fingerprint of the prompt is on record before the process starts.
//   - Framing is that of jsonrpc.Values: a cut or malformed value, a value over
//     the limit and whatever the Reader refuses end the turn as failed with what
//     came before. Lines that are no JSON are kept for the error text of an agent
//     that died without a word.
//   - A turn is good only if the Reader says so after the program is gone, and
//     there is text or a tool result. An exit code alone decides nothing.
//   - The native session is remembered after a good turn, and after a stopped one
//     when the prompt was part of it; the next turn that continues resumes it. A
//     session that is dead, or gave nothing, is forgotten, so that the next try
//     gets another. Its id reaches no record.
//
// # What a crash may leave behind
//
// Agents end with their supervisors. A session of a turn that a crash cut short
// is not remembered: the turn after it goes on in the one before.
package stream
