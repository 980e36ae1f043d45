// Package secrets finds strings that look like credentials, so that they are
// refused in receipts and left out of evidence, exports and logs.
//
// It errs on the side of known formats: a finding is a reason to look, a miss is
// possible. Redact leaves nothing that Find finds. Both take time linear in the
// length of the text.
package secrets
