// Package bus carries signals inside one process, on Watermill's Publisher and
// Subscriber interfaces.
//
// Signals are hints: whoever gets one re-reads the ledger. The package still
// keeps every promise that a transport can: per topic one order for all
// subscribers, one message in flight per subscription, no drop without an
// error, no goroutine per message, and a Close that says what was not
// delivered. It replaces Watermill's in-process channel, which re-orders under
// load and loses messages at close.
//
// There are two instances: Control is ordered and blocks a publisher whose
// subscriber is slow; View keeps the latest signal per key and never blocks.
//
// Nothing here is durable. After a crash the kernel publishes again what its
// ledger says is outstanding.
package bus
