//go:build !linux

package proc

import (
	"runtime"

	"witan/kernel"
)

func memory(int) (Memory, error) {
	return Memory{}, kernel.E("proc.Memory", kernel.Unsupported, nil, "the memory of a program is not known on %s", runtime.GOOS)
}
