// Command witan lets several coding agents work on one task while a person
// keeps the last word.
package main

import (
	"os"

	"witan/cmd/witan/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
