// Package modelserver is a scripted model provider on loopback, for tests with
// real agents and no model. It speaks OpenAI's chat completions, streamed and
// whole, and the list of models.
//
// # Guarantees
//
//   - What a request gets depends on the request and the scenario alone, never
//     on the order of arrival: agents send titles and summaries in between and
//     run sessions side by side. Only a step that fails a limited number of
//     times counts.
//   - Every reply has an id of its own; agents merge replies that share one.
//   - It listens on loopback addresses only.
//   - No goroutine outlives Close.
//
// It keeps nothing on disk, so a crash leaves nothing behind.
package modelserver
