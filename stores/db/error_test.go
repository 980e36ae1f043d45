package db

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"witan/kernel"
)

// TestDiskError: whatever fails, the sentence names the place, and what a person
// can mend comes with a next step.
func TestDiskError(t *testing.T) {
	for cause, want := range map[error]kernel.Kind{
		syscall.ENOSPC: kernel.NoSpace, syscall.EDQUOT: kernel.NoSpace,
		syscall.EROFS: kernel.ReadOnly, fs.ErrPermission: kernel.ReadOnly,
		syscall.EIO: kernel.Internal,
	} {
		for _, call := range []string{"write", "sync", "rename"} {
			err := DiskError("db.Test", "/the/place", fmt.Errorf("commit: %w", &os.PathError{Op: call, Path: "/x", Err: cause}))
			ke, ok := err.(*kernel.Error)
			if !ok || ke.Kind != want || !strings.Contains(ke.What, "/the/place") || want != kernel.Internal && ke.Next == "" {
				t.Errorf("%s fails with %v: %#v", call, cause, err)
			}
		}
	}
}
