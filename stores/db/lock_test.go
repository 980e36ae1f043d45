package db

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"witan/kernel"
)

func TestLock(t *testing.T) {
	dir := t.TempDir()
	// What a dead owner left is no lock.
	if err := os.WriteFile(filepath.Join(dir, "LOCK"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and again after a release
		l, err := TakeLock(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = TakeLock(dir)
		if !kernel.IsKind(err, kernel.Locked) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
			t.Fatalf("a second lock: %v", err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLockUnsupported: where locks do not work nothing runs unlocked, and nobody
// is told to wait.
func TestLockUnsupported(t *testing.T) {
	_, err := takeLock(t.TempDir(), func(*os.File) error { return errors.ErrUnsupported })
	if !kernel.IsKind(err, kernel.ReadOnly) || !strings.Contains(err.Error(), "no working locks") {
		t.Fatal(err)
	}
}

func TestLockNoFolder(t *testing.T) {
	if _, err := TakeLock(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Fatal("a lock in a folder that is not there")
	}
}
