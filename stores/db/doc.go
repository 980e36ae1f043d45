// Package db opens the Badger database of a data directory and guards it.
//
// Layout of a data directory: FORMAT (schema and pinned options), LOCK (one
// host), SEAL (checksums of a cleanly closed database) or OPEN (of the starts of
// an open one's files), witness, db/ (Badger), packs/, stat/, quarantine/,
// snapshots/. Folders are 0700, files 0600.
//
// Guarantees: one host per directory; a write is refused while there is still
// room for what Badger does on its own; nothing is recreated on a guess; a log
// that Badger would silently cut is copied to quarantine before it is opened.
//
// After a crash: OPEN and no SEAL, write-ahead logs (*.mem) that Badger replays at the
// next open, and *.tmp files that the next open removes.
package db
