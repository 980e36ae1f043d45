package tree_test

import (
	"bytes"
	"testing"

	"witan/kernel"
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
		"no hash":    tree.Encode(nil, []tree.Entry{{Type: 'f', Name: "a"}}),
		"magic":      append([]byte("X"), good[1:]...),
		"empty":      nil,
	} {
		if es, err := tree.Decode(b); !kernel.IsKind(err, kernel.Invalid) {
			t.Errorf("%s: %v, %v", name, es, err)
		}
	}
}
