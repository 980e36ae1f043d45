//go:build unix

package council_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/council"
)

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Mode()
}

func TestSocketIsPrivate(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	dir = filepath.Join(dir, "tools")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s, err := council.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m := mode(t, s.Path()); m != fs.ModeSocket|0o600 || filepath.Dir(s.Path()) != dir {
		t.Errorf("%s: %v", s.Path(), m)
	}
	if m := mode(t, dir); m.Perm() != 0o700 {
		t.Errorf("its folder: %v", m)
	}
	if _, err := council.Listen(dir); !kernel.IsKind(err, kernel.Locked) {
		t.Errorf("a second host in the folder: %v", err)
	}
	m, _ := s.Open(newTurn(nil))
	connect(t, m) // the first host is still there
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(s.Path()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 25))
	s, err := council.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Path()) > 100 || mode(t, s.Path()).Perm() != 0o600 || mode(t, filepath.Dir(s.Path())).Perm() != 0o700 {
		t.Errorf("%s: %v", s.Path(), mode(t, s.Path()))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Dir(s.Path())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
}
