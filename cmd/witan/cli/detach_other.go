//go:build !unix

package cli

import "os/exec"

// detach has nothing to do: a child is not tied to its parent here.
func detach(*exec.Cmd) {}
