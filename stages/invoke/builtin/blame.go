package builtin

import (
	"path"
	"regexp"
	"strings"
)

// failed is a line of a report about a failing test.
var failed = regexp.MustCompile("^- HIGH `([^`]+):\\d+`: (.+)$")

// blamed reports, of an example of the tests, whether a failing test names it,
// by its path or by its path from the test's folder: such a file is not wrong
// on purpose.
func blamed(reports []string) func(name string) bool {
	type failure struct{ dir, message string }
	var all []failure
	for _, r := range reports {
		for l := range strings.Lines(r) {
			if m := failed.FindStringSubmatch(strings.TrimRight(l, "\r\n")); m != nil {
				all = append(all, failure{path.Dir(m[1]), m[2]})
			}
		}
	}
	return func(name string) bool {
		for _, f := range all {
			rel := name
			if f.dir != "." {
				rel = strings.TrimPrefix(name, f.dir+"/")
			}
			if strings.Contains(rel, "/") && (names(f.message, rel) || names(f.message, name)) {
				return true
			}
		}
		return false
	}
}

// names reports whether a text holds a path as a whole word.
func names(text, name string) bool {
	for i := 0; ; {
		k := strings.Index(text[i:], name)
		if k < 0 {
			return false
		}
		from, to := i+k, i+k+len(name)
		if (from == 0 || !inPath(text[from-1])) && (to == len(text) || !inPath(text[to]) || text[to] == '.' && (to+1 == len(text) || text[to+1] == ' ')) {
			return true
		}
		i = from + 1
	}
}

func inPath(c byte) bool {
	return c == '/' || c == '.' || c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}
