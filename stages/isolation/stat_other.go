//go:build !linux

package isolation

import "io/fs"

// untouched is never sure: everything is read.
func untouched(a, b fs.FileInfo) bool { return false }
