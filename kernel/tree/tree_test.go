package tree_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/kernel/tree"
)

var one = kernel.Sum([]byte("1"))

func FuzzNode(f *testing.F) {
	f.Add(tree.Encode(nil, []tree.Entry{{Type: 'd', Hash: one, Name: "a"}, {Type: 'f', Hash: one, Name: "b\n", Size: 300}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		es, err := tree.Decode(b)
		if err == nil && !bytes.Equal(tree.Encode(nil, es), b) {
			t.Fatalf("%q decodes and encodes to %q", b, tree.Encode(nil, es))
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	good := tree.Encode(nil, []tree.Entry{{Type: 'f', Hash: one, Name: "a"}, {Type: 'f', Hash: one, Name: "b"}})
	for name, b := range map[string][]byte{
		"cut":        good[:len(good)-1],
		"behind":     append(bytes.Clone(good), 0),
		"unsorted":   tree.Encode(nil, []tree.Entry{{Type: 'f', Hash: one, Name: "b"}, {Type: 'f', Hash: one, Name: "a"}}),
		"twice":      tree.Encode(nil, []tree.Entry{{Type: 'f', Hash: one, Name: "a"}, {Type: 'f', Hash: one, Name: "a"}}),
		"parent":     tree.Encode(nil, []tree.Entry{{Type: 'd', Hash: one, Name: ".."}}),
		"path":       tree.Encode(nil, []tree.Entry{{Type: 'f', Hash: one, Name: "a/b"}}),
		"no name":    tree.Encode(nil, []tree.Entry{{Type: 'f', Hash: one, Name: ""}}),
		"other type": tree.Encode(nil, []tree.Entry{{Type: 'z', Hash: one, Name: "a"}}),
		"magic":      append([]byte("X"), good[1:]...),
		"empty":      nil,
	} {
		if es, err := tree.Decode(b); !kernel.IsKind(err, kernel.Invalid) {
			t.Errorf("%s: %v, %v", name, es, err)
		}
	}
}

func TestCheckout(t *testing.T) {
	ctx, m := context.Background(), kerneltest.NewMem()
	put := func(b []byte) kernel.Digest {
		d, err := m.Put(ctx, "x", b)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	sub := put(tree.Encode(nil, []tree.Entry{{Type: tree.Exec, Name: "run.sh", Hash: put([]byte("#!/bin/sh\n"))}}))
	root := put(tree.Encode(nil, []tree.Entry{{Type: tree.Dir, Name: "bin", Hash: sub}, {Type: tree.Link, Name: "l", Hash: put([]byte("bin/run.sh"))},
		{Type: tree.File, Name: "n\n", Hash: put([]byte("x"))}}))
	dir := t.TempDir()
	if err := tree.Checkout(ctx, m, root, dir); err != nil {
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
	m.Flip(sub)
	if err := tree.Checkout(ctx, m, root, t.TempDir()); !kernel.IsKind(err, kernel.Corrupt) {
		t.Errorf("a flipped node: %v", err)
	}
}
