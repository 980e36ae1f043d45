package tree_test

import (
	"testing"
	"unicode/utf8"

	"witan/kernel/tree"
)

func TestPathsStayAsTheyAre(t *testing.T) {
	for _, p := range []string{"", "a/b.go", "naïve/日本.txt", "new\nline", `back\slash`, "\U0001F600", "\uFFFD"} {
		if got := tree.EncodePath(p); got != p {
			t.Errorf("%q becomes %q", p, got)
		}
	}
	for _, p := range []string{"\xff", "a\x80b/\xc3", "\uF7FF", "\uF780\xff", "\xed\xa0\x80"} {
		if got := tree.EncodePath(p); got == p || !utf8.ValidString(got) {
			t.Errorf("%q becomes %q", p, got)
		}
	}
}

// FuzzPath: every name comes back, and no two become one.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"a/b", "\xff\xfe", "\uF7FF", "é\xc3", "\uF780\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		e := tree.EncodePath(p)
		if !utf8.ValidString(e) || tree.DecodePath(e) != p {
			t.Fatalf("%q becomes %q and comes back as %q", p, e, tree.DecodePath(e))
		}
	})
}
