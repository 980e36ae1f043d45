// Package stores opens a data directory and gives the kernel its ports: ledger,
// packs, conversations, streams, stat cache. It also checks, backs up and
// restores one.
//
// Guarantees and what a crash leaves behind are stated by the packages below:
// db, ledger, conversations and packs.
package stores
