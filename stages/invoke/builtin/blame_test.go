package builtin_test

import (
	"testing"
)

// An example of the tests is mended only if a failing test of its folder names it.
func TestBlame(t *testing.T) {
	const high = "- HIGH `p/a_test.go:3`: TestA: "
	for _, tt := range []struct {
		name, said string
		mended     bool
	}{
		{"from the test's folder", high + "testdata/a.json: invalid", true},
		{"by its path", high + "cannot read p/testdata/a.json.", true},
		{"from another folder", "- HIGH `q/a_test.go:3`: TestA: testdata/a.json: invalid", false},
		{"another file", high + "testdata/a.json5 and mytestdata/a.json and testdata/a.json/x", false},
		{"by its name alone", high + "a.json: invalid", false},
		{"in words", "The file p/testdata/a.json is wrong on purpose", false},
		{"of low severity", "- LOW `p/a_test.go:3`: TestA: testdata/a.json", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRepo(t, map[string]string{"p/testdata/a.json": "[1,]\n", "p/a_test.go": "package p\n"})
			s := newCouncil(r, "inspector", "alpha").ask("inspector", "synthesis", 1, quote("alpha", "work", "W01", "Tests.\n\n"+tt.said), map[string]any{"write": true})
			if got := r.read("p/testdata/a.json") == "[1]\n"; got != tt.mended || (len(s.Artifacts) > 0) != tt.mended {
				t.Errorf("mended %v: %s", got, s.raw)
			}
		})
	}
}
