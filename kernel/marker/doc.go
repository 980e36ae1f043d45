// Package marker knows the control markers that share a channel with text: the
// turn block and the receipt. It hides a receipt while an answer streams, finds
// it at the end of a text, and makes other agents' text harmless.
//
// A receipt is the last thing in a text, or it is none: one in the middle is a
// quotation and stays visible. What is shown while streaming and what is kept at
// the end are the same text, however the stream was cut.
package marker
