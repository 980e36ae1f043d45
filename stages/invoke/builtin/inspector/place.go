package inspector

import (
	"bytes"
	"path"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"witan/stages/invoke/builtin/work"
)

// onPurpose are folders whose files are examples for tests, right or wrong.
var onPurpose = []string{"testdata", "fixtures", "fixture", "__fixtures__", "__snapshots__", "golden", "goldens", "testscripts"}

// fixture reports whether a file is an example for tests.
func fixture(name string) bool {
	if path.Ext(name) == ".txtar" {
		return true
	}
	tests := false
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if slices.Contains(onPurpose, part) || tests && part == "data" {
			return true
		}
		tests = tests || part == "test" || part == "tests"
	}
	return false
}

// isTest reports whether a file is a test or lies among tests.
func isTest(name string) bool {
	base := path.Base(name)
	base = strings.TrimSuffix(base, ".tmpl")
	stem := strings.TrimSuffix(base, path.Ext(base))
	if strings.HasSuffix(stem, "_test") || strings.HasSuffix(stem, ".test") || strings.HasSuffix(stem, ".spec") || strings.HasSuffix(stem, "_spec") ||
		strings.HasPrefix(base, "test_") || base == "conftest.py" {
		return true
	}
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		switch part {
		case "test", "tests", "__tests__", "spec", "specs", "e2e":
			return true
		}
	}
	return false
}

// text reports whether b is text: no NUL byte at its beginning and, over the
// first part, UTF-8 or at least few bytes that are not.
func text(b []byte) bool {
	head := b[:min(len(b), 8<<10)]
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	bad := 0
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		i += n
	}
	return bad*10 <= len(head)
}

// lineAt returns the 1-based line of a byte offset.
func lineAt(b []byte, offset int) int {
	return 1 + bytes.Count(b[:min(max(offset, 0), len(b))], []byte{'\n'})
}

// lineEnds are the offsets of all line ends, to find the lines of many offsets.
type lineEnds []int

func indexLines(b []byte) lineEnds {
	var ends lineEnds
	for i, c := range b {
		if c == '\n' {
			ends = append(ends, i)
		}
	}
	return ends
}

// line returns the 1-based line of a byte offset.
func (e lineEnds) line(offset int) int { return 1 + sort.SearchInts(e, offset) }

const ignoreComment = "witan:ignore"

// excused reports whether the line, or the line before it if that holds only
// the comment, says that it is as it should be.
func excused(lines []string, line int) bool {
	if line < 1 || line > len(lines) {
		return false
	}
	if strings.Contains(lines[line-1], ignoreComment) {
		return true
	}
	if line < 2 {
		return false
	}
	before := strings.TrimSpace(lines[line-2])
	return len(before) <= len(ignoreComment)+12 && strings.Contains(before, ignoreComment)
}

// ignores are the patterns of .witanignore.
type ignores []string

func readIgnores(f *work.Folder) ignores {
	b, err := f.Read(".witanignore")
	if err != nil {
		return nil
	}
	var ig ignores
	for l := range strings.Lines(string(b)) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			ig = append(ig, l)
		}
	}
	return ig
}

// match reports whether a pattern covers the file: a folder on the way to it,
// its name, or its path.
func (ig ignores) match(name string) bool {
	parts := strings.Split(name, "/")
	return slices.ContainsFunc(ig, func(pattern string) bool {
		folder := strings.HasSuffix(pattern, "/")
		p := strings.Trim(pattern, "/")
		anchored := strings.Contains(strings.TrimSuffix(pattern, "/"), "/")
		for i := range parts {
			if folder && i == len(parts)-1 {
				break
			}
			candidate := parts[i]
			if anchored {
				candidate = strings.Join(parts[:i+1], "/")
			}
			if ok, err := path.Match(p, candidate); err == nil && ok {
				return true
			}
		}
		return false
	})
}
