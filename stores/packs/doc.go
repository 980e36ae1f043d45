// Package packs is the content-addressed store: small packs in Badger, large
// and bulk ones in sealed pack files beside it.
//
// A pack file is written as *.tmp, read back and compared, synced, renamed, and
// only then indexed; it describes itself, so the index can be rebuilt from the
// files alone. Every byte of a file is covered by a checksum or, with a key, by
// AES-256-GCM; every read checks the SHA-256 that names the pack.
//
// After a crash: *.tmp files, which Open removes, and at worst complete files
// that the index does not know, which Open indexes. A pack that turns out to be
// damaged is set aside with its bytes in quarantine/; storing the same content
// again heals it.
package packs
