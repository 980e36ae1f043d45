package mend

import (
	"bytes"
	"go/ast"
	goformat "go/format"
	"go/parser"
	"go/token"
)

// format writes a Go file as gofmt does, if it parses and nobody generates it.
func format(b []byte) ([]byte, []Fix) {
	windows := bytes.Contains(b, []byte("\r\n"))
	src := b
	if windows {
		src = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
		if bytes.Count(b, []byte("\r\n")) != bytes.Count(b, []byte("\n")) {
			return nil, nil // mixed: no way to keep what is there
		}
	}
	if bytes.ContainsRune(src, '\r') || bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
		return nil, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, nil
	}
	out, err := goformat.Source(src)
	if err != nil || bytes.Equal(out, src) {
		return nil, nil
	}
	line := firstChange(src, out)
	if windows {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	return out, []Fix{{Format, line, "formatted as gofmt does"}}
}

// firstChange is the line of a where b begins to differ.
func firstChange(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return 1 + bytes.Count(a[:n], []byte{'\n'})
}
