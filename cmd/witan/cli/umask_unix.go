//go:build unix

package cli

import "syscall"

// restrictFiles makes everything this process creates its user's own: some
// libraries create files with group and world bits.
func restrictFiles() { syscall.Umask(0o077) }
