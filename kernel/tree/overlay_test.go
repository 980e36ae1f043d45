package tree_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"witan/kernel"
	"witan/kernel/tree"
)

func (s store) file(path, mode, content string) kernel.CandidateFile {
	return kernel.CandidateFile{Path: tree.EncodePath(path), Hash: s.put([]byte(content)), Mode: mode, Bytes: int64(len(content))}
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	ctx, s, dir := context.Background(), newStore(t), t.TempDir()
	root := s.root(s.dir("a", s.entry(tree.File, "x", "1")), s.entry(tree.Link, "b", "/"), s.entry(tree.File, "c", "1"),
		s.dir("gone", s.entry(tree.File, "x", "1")), s.entry(tree.Exec, "run", "1"))
	if err := tree.Checkout(ctx, s, root, dir); err != nil {
		t.Fatal(err)
	}
	utf16 := "\xff\xfea\x00\r\x00\n\x00"
	files := []kernel.CandidateFile{s.file("a", "0755", "file\r\nno end"), {Path: "a/x", What: "deleted"}, {Path: "b", What: "deleted"}, s.file("b/c\n\xff", "0644", utf16),
		s.file("c", "link", "b"), {Path: "gone/x", What: "deleted"}, {Path: "never/was", What: "deleted"}, s.file("run", "0600", "2")}
	if err := tree.Overlay(ctx, s, files, dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "file\r\nno end", "b/c\n\xff": utf16, "run": "2"} {
		if b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil || string(b) != want {
			t.Errorf("%q has %q, %v", name, b, err)
		}
	}
	for name, exec := range map[string]bool{"a": true, "run": false} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || (fi.Mode()&0o100 != 0) != exec {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
	}
	if l, err := os.Readlink(filepath.Join(dir, "c")); err != nil || l != "b" {
		t.Errorf("link: %q, %v", l, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "gone")); !os.IsNotExist(err) {
		t.Errorf("the folder that became empty: %v", err)
	}
}

// Whatever a candidate says, nothing outside of the folder is touched, and nothing
// of a repository's own.
func TestOverlayStaysInside(t *testing.T) {
	t.Parallel()
	ctx, s, outside := context.Background(), newStore(t), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"up": "../x", "absolute": secret, "escaped": "a/../../x\xff", "empty": "", "git": "sub/.git/hooks/x",
		"another case": ".GIT/config", "short name": "GIT~1/config", "dots": ".git. /config"} {
		dir := t.TempDir()
		err := tree.Overlay(ctx, s, []kernel.CandidateFile{s.file("first", "0644", "1"), s.file(path, "0644", "theirs")}, dir)
		if !kernel.IsKind(err, kernel.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: wrote %v, %v", name, left, err)
		}
	}
	for name, files := range map[string][]kernel.CandidateFile{
		"through a link": {s.file("l/secret", "0644", "theirs")},
		"onto a link":    {s.file("s", "0644", "theirs")},
		"deletion":       {{Path: "l/secret"}},
		"deletes a link": {{Path: "l"}},
	} {
		dir := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(dir, "l")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, filepath.Join(dir, "s")); err != nil {
			t.Fatal(err)
		}
		if err := tree.Overlay(ctx, s, files, dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		fi, err := os.Lstat(secret)
		if b, rerr := os.ReadFile(secret); err != nil || rerr != nil || string(b) != "mine" || fi.Mode().Perm() != fs.FileMode(0o600) {
			t.Fatalf("%s: the file outside has %q, %v, %v, %v", name, b, fi, err, rerr)
		}
	}
}

func TestOverlayNeedsItsContent(t *testing.T) {
	t.Parallel()
	s, f := newStore(t), kernel.CandidateFile{Path: "a", Hash: kernel.Sum([]byte("nowhere")), Mode: "0644"}
	if err := tree.Overlay(context.Background(), s, []kernel.CandidateFile{f}, t.TempDir()); !kernel.IsKind(err, kernel.NotFound) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tree.Overlay(ctx, s, []kernel.CandidateFile{f}, t.TempDir()); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}
