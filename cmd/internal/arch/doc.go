// Package arch has only tests: they hold the rules of docs/architecture.md on
// which package may import which, and on where process control may happen. They
// read the source of the whole module, tests and files for other systems
// included, and there is no list of exceptions.
package arch
