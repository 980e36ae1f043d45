//go:build !windows && !cgo

package shell

import (
	"context"

	"witan/kernel"
)

// Available says whether this program can open a window.
const Available = false

// Run says that it cannot.
func Run(context.Context, Options) error {
	return kernel.E("shell.Run", kernel.Unsupported, nil, "the window is not in this version, which was built for the terminal only").
		WithNext("use the terminal (witan help), or a version with the window")
}
