// Package receipts reads the typed statement that closes a turn. It is pure.
//
// Strict reading refuses what it does not know; lenient reading ignores unknown
// keys, drops what it cannot read and says so, except that a plan is taken whole
// or not at all. A duplicate key at any level and bytes that are not UTF-8 make
// a receipt invalid in both. What Parse returns is canonical: parsing it again
// gives the same bytes.
//
// Arguments reads by the same bounds what an agent gives to the other tools of
// its turn.
package receipts
