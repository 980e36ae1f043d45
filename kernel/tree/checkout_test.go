package tree_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/kernel/tree"
)

// store makes trees in memory.
type store struct {
	*kerneltest.Mem
	t *testing.T
}

func newStore(t *testing.T) store { return store{kerneltest.NewMem(), t} }

func (s store) put(b []byte) kernel.Digest {
	s.t.Helper()
	d, err := s.Put(context.Background(), "x", b)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s store) entry(kind byte, name, content string) tree.Entry {
	return tree.Entry{Type: kind, Name: name, Hash: s.put([]byte(content)), Size: int64(len(content))}
}

func (s store) dir(name string, entries ...tree.Entry) tree.Entry {
	return tree.Entry{Type: tree.Dir, Name: name, Hash: s.put(tree.Encode(nil, entries))}
}

func (s store) root(entries ...tree.Entry) kernel.Digest { return s.dir("", entries...).Hash }

func TestCheckout(t *testing.T) {
	ctx, s := context.Background(), newStore(t)
	bin := s.dir("bin", s.entry(tree.Exec, "run.sh", "#!/bin/sh\n"))
	root := s.root(bin, s.dir("empty"), s.entry(tree.Link, "l", "bin/run.sh"), s.entry(tree.File, "n\n", "x"))
	dir := t.TempDir()
	if err := tree.Checkout(ctx, s, root, dir); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "n\n")); string(b) != "x" {
		t.Errorf("file: %q", b)
	}
	if l, _ := os.Readlink(filepath.Join(dir, "l")); l != "bin/run.sh" {
		t.Errorf("link: %q", l)
	}
	if fi, err := os.Stat(filepath.Join(dir, "bin", "run.sh")); err != nil || fi.Mode()&0o100 == 0 {
		t.Errorf("executable: %v %v", fi, err)
	}
	if fi, err := os.Stat(filepath.Join(dir, "empty")); err != nil || !fi.IsDir() {
		t.Errorf("empty folder: %v %v", fi, err)
	}
	if err := tree.Checkout(ctx, s, root, dir); !kernel.IsKind(err, kernel.Conflict) {
		t.Errorf("over what is there: %v", err)
	}
	s.Flip(bin.Hash)
	if err := tree.Checkout(ctx, s, root, t.TempDir()); !kernel.IsKind(err, kernel.Corrupt) {
		t.Errorf("a flipped node: %v", err)
	}
}

func TestWalk(t *testing.T) {
	s := newStore(t)
	root := s.root(s.dir("a", s.entry(tree.File, "x", "1"), s.dir("y", s.entry(tree.File, "z", "2"))), s.entry(tree.File, "b", "3"))
	var got []string
	err := tree.Walk(context.Background(), s, root, func(path string, e tree.Entry) error {
		got = append(got, string(e.Type)+path)
		return nil
	})
	if want := []string{"da", "fa/x", "da/y", "fa/y/z", "fb"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	stop := errors.New("stop")
	if err := tree.Walk(context.Background(), s, root, func(string, tree.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tree.Walk(ctx, s, root, func(string, tree.Entry) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestDepthIsBounded(t *testing.T) {
	s := newStore(t)
	d := s.root()
	for range tree.MaxDepth + 2 {
		d = s.root(tree.Entry{Type: tree.Dir, Name: "d", Hash: d})
	}
	if err := tree.Walk(context.Background(), s, d, func(string, tree.Entry) error { return nil }); !kernel.IsKind(err, kernel.Invalid) {
		t.Errorf("too deep: %v", err)
	}
}

// streaming gives large packs piece by piece and refuses to hold one.
type streaming struct {
	store
	copied int
}

func (s *streaming) Get(ctx context.Context, d kernel.Digest) ([]byte, error) {
	b, err := s.Mem.Get(ctx, d)
	if len(b) > 1<<20 {
		s.t.Errorf("a pack of %d bytes was taken into memory", len(b))
	}
	return b, err
}

func (s *streaming) CopyTo(ctx context.Context, d kernel.Digest, w io.Writer) (int64, error) {
	s.copied++
	b, err := s.Mem.Get(ctx, d)
	if err != nil {
		return 0, err
	}
	return io.Copy(w, bytes.NewReader(b))
}

func TestLargeFilesAreStreamed(t *testing.T) {
	s := &streaming{store: newStore(t)}
	large := string(kerneltest.Random(1, 3<<20))
	root := s.root(s.entry(tree.File, "large", large), s.entry(tree.File, "small", "x"))
	dir := t.TempDir()
	if err := tree.Checkout(context.Background(), s, root, dir); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "large")); err != nil || string(b) != large || s.copied != 1 {
		t.Errorf("%d bytes, copied %d times, %v", len(b), s.copied, err)
	}
}

// What lies outside of the folder is not written to, whatever the snapshot says.
func TestNothingOutsideIsTouched(t *testing.T) {
	ctx, s := context.Background(), newStore(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := s.put([]byte("theirs"))
	for name, dirty := range map[string][]kernel.DirtyFile{
		"through a link": {{Path: "a", Mode: "link", Hash: s.put([]byte(outside)), Bytes: int64(len(outside))}, {Path: "a/secret", Hash: file}},
		"onto a link":    {{Path: "a", Mode: "link", Hash: s.put([]byte(secret)), Bytes: int64(len(secret))}, {Path: "a", Hash: file}},
		"deletion":       {{Path: "a", Mode: "link", Hash: s.put([]byte(outside)), Bytes: int64(len(outside))}, {Path: "a/secret"}},
		"up":             {{Path: "../" + filepath.Base(outside) + "/secret", Hash: file}},
		"absolute":       {{Path: secret, Hash: file}},
		"escaped":        {{Path: tree.EncodePath("../x\xff"), Hash: file}},
	} {
		_, err := tree.Materialise(ctx, nil, s, kernel.Workspace{Kind: "git", Dirty: dirty}, t.TempDir())
		if up := name == "up" || name == "absolute" || name == "escaped"; up != kernel.IsKind(err, kernel.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := os.ReadFile(secret); err != nil || string(b) != "mine" {
			t.Fatalf("%s: the file outside has %q, %v", name, b, err)
		}
	}
}

func TestMaterialiseKinds(t *testing.T) {
	ctx, s := context.Background(), newStore(t)
	dir := t.TempDir()
	at, err := tree.Materialise(ctx, nil, s, kernel.Workspace{Kind: "folder", Tree: s.root(s.entry(tree.File, "a", "1"))}, dir)
	if b, rerr := os.ReadFile(filepath.Join(at, "a")); err != nil || at != dir || string(b) != "1" {
		t.Errorf("folder: %q, %q, %v, %v", at, b, err, rerr)
	}
	if _, err := tree.Materialise(ctx, nil, s, kernel.Workspace{Kind: "none"}, t.TempDir()); !kernel.IsKind(err, kernel.Invalid) {
		t.Errorf("none: %v", err)
	}
	// A repository without commits is its files only; a name that is not UTF-8 is itself again.
	dir = t.TempDir()
	ws := kernel.Workspace{Kind: "git", Sub: "sub", Dirty: []kernel.DirtyFile{{Path: tree.EncodePath("sub/\xff"), Hash: s.put([]byte("1")), Mode: "0755"}}}
	at, err = tree.Materialise(ctx, nil, s, ws, dir)
	fi, serr := os.Stat(filepath.Join(at, "\xff"))
	if err != nil || at != filepath.Join(dir, "sub") || serr != nil || fi.Mode()&fs.ModePerm&0o100 == 0 {
		t.Errorf("git: %q, %v, %v", at, err, serr)
	}
}
