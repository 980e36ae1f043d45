package runner

import (
	"path"
	"path/filepath"
	"strings"

	"witan/stages/invoke/builtin/work"
)

// places turns file names in output into paths of the workspace.
type places struct {
	f    *work.Folder
	root string // the copy
	dir  string // of the suite
}

// find returns the path of a file of the project, "" if name is none of them.
func (p places) find(name string) string {
	name = strings.TrimPrefix(name, "file://")
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(p.root, name)
		if err != nil || !filepath.IsLocal(rel) {
			return ""
		}
		name = filepath.ToSlash(rel)
	} else {
		name = path.Join(p.dir, filepath.ToSlash(name))
	}
	if strings.Contains("/"+name, "/node_modules/") || !p.f.Has(name) {
		return ""
	}
	return name
}

// source is a line of a file, "" if there is none.
func (p places) source(name string, line int) string {
	b, err := p.f.Read(name)
	if err != nil {
		return ""
	}
	n := 0
	for l := range strings.Lines(string(b)) {
		if n++; n == line {
			return strings.TrimSpace(l)
		}
	}
	return ""
}

// unique finds the one file of the project with this base name, "" if there is
// none or there are several.
func (p places) unique(base string) string {
	found := ""
	for _, f := range p.f.Files {
		if path.Base(f.Path) == base {
			if found != "" {
				return ""
			}
			found = f.Path
		}
	}
	return found
}
