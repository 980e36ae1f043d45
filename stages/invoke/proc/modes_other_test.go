//go:build !linux

package proc

var modes map[string]func() int
