// Package text drives agents that know no protocol: a program takes the prompt
// and prints the answer.
//
// The prompt takes the place of {prompt} in the arguments, or else is the
// program's whole input. A host builds one Agent per configured agent:
//
//	text.New(text.Config{ID: "alpha", Spec: func(p turn.Place) (proc.Spec, error) { … }, …})
//
// # Guarantees
//
//   - A turn is good only if the program ended by itself with 0 and printed
//     something. Its words on stderr tell what went wrong, if they can be read.
//   - Each turn is a process of its own under the same supervision, confinement
//     and watchdog as any other agent's. After a stop its tree is gone.
//   - The answer is valid UTF-8 however it was cut into pieces: a byte that
//     cannot be read becomes one U+FFFD, and so does a character without its end.
//
// There are no sessions, no tools and no permission requests. What a crash may
// leave behind is proc's matter.
package text
