package inspector

import (
	"bytes"
	"context"
	"path"
	"strings"

	"witan/stages/invoke/builtin/work"
)

// Rules are the checks of content one at a time, for those who mend what they
// find.
type Rules struct{ s scan }

// NewRules returns the rules for a folder, whose .witanignore they follow.
func NewRules(ctx context.Context, f *work.Folder) *Rules {
	return &Rules{scan{as: ID, ctx: ctx, f: f, ignore: readIgnores(f), docs: map[string]*document{}}}
}

// Ignored reports whether the project says that a file is not to be checked.
func (r *Rules) Ignored(name string) bool { return r.s.ignore.match(name) }

// Example reports whether a file lies among tests or their examples, where it
// may be wrong on purpose.
func Example(name string) bool { return fixture(name) || isTest(name) }

// Fixture reports whether a file is an example for tests.
func Fixture(name string) bool { return fixture(name) }

// StrictJSON reports whether a file is JSON by its name, of the kind whose
// readers take neither comments nor commas too many.
func StrictJSON(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".json", ".webmanifest", ".geojson", ".ipynb":
		return !commented(name)
	}
	return false
}

// BadJSON returns why a JSON file does not parse; nil if it does.
func BadJSON(name string, b []byte) error {
	_, err := checkJSON(name, b)
	return err
}

// InConflict reports whether a text holds a whole merge conflict, meant or
// shown.
func InConflict(b []byte) bool {
	start := bytes.HasPrefix(b, []byte("<<<<<<<")) || bytes.Contains(b, []byte("\n<<<<<<<"))
	return start && bytes.Contains(b, []byte("\n>>>>>>>"))
}

// Link is a relative link of a Markdown file to a file that is not there.
type Link struct {
	Line     int
	From, To int    // where the destination stands in the file, without angle brackets
	Dest     string // without escapes of Markdown
	Target   string // path in the workspace that it means
}

// BrokenLinks returns the links of a Markdown file to files that are not there,
// but for those that the file says are as they should be.
func (r *Rules) BrokenLinks(name string, b []byte) []Link {
	if !isMarkdown(name) || !text(b) {
		return nil
	}
	var out []Link
	lines := strings.Split(string(b), "\n")
	for _, l := range parseMarkdown(b).links {
		if excused(lines, l.line) {
			continue
		}
		if target, ok := r.s.target(name, l.dest); ok && r.s.resolve(target) == "" {
			out = append(out, Link{Line: l.line, From: l.from, To: l.to, Dest: l.dest, Target: target})
		}
	}
	return out
}
