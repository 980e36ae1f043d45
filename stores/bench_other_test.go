//go:build !linux

package stores_test

import "os"

func datasync(f *os.File) error { return f.Sync() }
