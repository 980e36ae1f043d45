package inspector

import (
	"bytes"
	"go/parser"
	"go/token"
	"path"
	"strings"
)

// conflicts reports each whole conflict at the line where it starts.
func (s *scan) conflicts(name string, b []byte) {
	if !bytes.Contains(b, []byte("<<<<<<<")) {
		return
	}
	b = s.withoutExamples(name, b)
	const none, ours, theirs = 0, 1, 2
	state, start, offset, n := none, 0, 0, 0
	begin := 0
	for l := range bytes.Lines(b) {
		n++
		line := strings.TrimRight(string(l), "\r\n")
		switch {
		case marker(line, '<'):
			state, start, begin = ours, n, offset
		case state == ours && line == "=======":
			state = theirs
		case state == theirs && marker(line, '>'):
			if !quoted(name, b, begin) {
				s.add(issue{check: "conflict", severity: "high", title: "unresolved merge conflict",
					detail: "The conflict starts here and ends further down with " + strings.TrimSpace(line) + ".", path: name, line: start})
			}
			state = none
		}
		offset += len(l)
	}
}

// marker reports whether the line is seven of c, alone or followed by a space
// and a name.
func marker(line string, c byte) bool {
	m := strings.Repeat(string(c), 7)
	rest, ok := strings.CutPrefix(line, m)
	return ok && (rest == "" || rest[0] == ' ')
}

// withoutExamples blanks what is shown and not meant: code blocks of prose.
func (s *scan) withoutExamples(name string, b []byte) []byte {
	if d := s.docs[name]; d != nil {
		return d.text
	}
	return b
}

// quoted reports whether offset lies in a string of several lines: such a file
// is about conflicts, not in one. Go is parsed, as a conflict breaks its syntax.
func quoted(name string, b []byte, offset int) bool {
	before := string(b[:offset])
	switch path.Ext(name) {
	case ".go":
		_, err := parser.ParseFile(token.NewFileSet(), "", b, parser.SkipObjectResolution)
		return err == nil
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx":
		return (strings.Count(before, "`")-strings.Count(before, "\\`"))%2 == 1
	case ".py":
		return strings.Count(before, `"""`)%2 == 1 || strings.Count(before, "'''")%2 == 1
	case ".sh", ".bash", ".rb", ".pl":
		return openHeredoc(before)
	}
	return false
}
