// Package packs is the content-addressed store: small packs in Badger, large
// and bulk ones in sealed pack files beside it.
//
// A pack file is written as *.tmp, synced, read back, renamed, and only then
// indexed; it describes itself, so the index can be rebuilt from the files alone.
// Every byte of a file is covered by a checksum or, with encryption on, by
// AES-256-GCM; every read checks the SHA-256 that names the pack.
//
// After a crash: *.tmp files, which Open removes, and at worst a complete file
// that no index entry names, which Open indexes again.
package packs
