// Command fakeagent is a scripted ACP agent for tests; see its package.
package main

import (
	"os"

	"witan/cmd/fakeagent/fake"
)

func main() { os.Exit(fake.Main(os.Args[1:])) }
