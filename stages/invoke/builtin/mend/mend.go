package mend

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/builtin/inspector"
	"witan/stages/invoke/builtin/work"
)

// Kinds of corrections.
const (
	Format = "format" // gofmt
	JSON   = "json"   // commas before a closing bracket
	Link   = "link"   // of a Markdown file
)

// Bounds. What lies beyond is left as it is and said.
const (
	maxChanges = 200
	maxTotal   = 256 << 20 // bytes read in all
)

// Fix is one correction in a file.
type Fix struct {
	Kind string
	Line int
	What string // one clause
}

// Change is everything that is corrected in one file.
type Change struct {
	Path  string
	Fixes []Fix

	old kernel.Digest // of the content it applies to
	new []byte
}

// fetched are folders whose files belong to somebody else.
var fetched = []string{"vendor", "third_party", "node_modules", "bower_components"}

// Find looks for what can be corrected, ordered by path. named reports whether
// an example of the tests is to be looked at like any other file.
func Find(ctx context.Context, f *work.Folder, named func(path string) bool) (changes []Change, notes []string) {
	rules := inspector.NewRules(ctx, f)
	byName := index(rules, f)
	var total int64
	for _, file := range f.Files {
		if ctx.Err() != nil {
			return changes, notes
		}
		kind := kindOf(file.Path)
		if kind == "" || file.Size > work.MaxRead || rules.Ignored(file.Path) || elsewhere(file.Path) {
			continue
		}
		if aside(kind, file.Path) && !named(file.Path) {
			continue
		}
		if total += file.Size; total > maxTotal || len(changes) == maxChanges {
			return changes, append(notes, fmt.Sprintf("Files from %s on were not looked at for mending.", work.Code(file.Path)))
		}
		b, err := f.Read(file.Path)
		if err != nil || inspector.InConflict(b) {
			continue
		}
		fixed, fixes := mendFile(rules, byName, kind, file.Path, b)
		if len(fixes) > 0 && !bytes.Equal(fixed, b) {
			changes = append(changes, Change{Path: file.Path, Fixes: fixes, old: kernel.Sum(b), new: fixed})
		}
	}
	return changes, notes
}

// mendFile corrects one file. One that makes a parser panic is left alone.
func mendFile(rules *inspector.Rules, byName places, kind, name string, b []byte) (fixed []byte, fixes []Fix) {
	defer func() {
		if recover() != nil {
			fixed, fixes = nil, nil
		}
	}()
	switch kind {
	case Format:
		return format(b)
	case JSON:
		return commas(name, b)
	}
	return links(rules, byName, name, b)
}

func kindOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".go":
		return Format
	case ".md", ".markdown":
		return Link
	}
	if inspector.StrictJSON(name) {
		return JSON
	}
	return ""
}

// aside reports whether a file may be wrong on purpose: a Go test is code like
// any other, data of tests is not.
func aside(kind, name string) bool {
	if kind == JSON {
		return inspector.Example(name)
	}
	return inspector.Fixture(name)
}

func elsewhere(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if slices.Contains(fetched, part) {
			return true
		}
	}
	return false
}
