package mend

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"witan/stages/invoke/builtin/inspector"
	"witan/stages/invoke/builtin/work"
)

// maxLinks bounds the links that are corrected in one file.
const maxLinks = 500

// links corrects the destinations of a Markdown file whose target has exactly
// one place elsewhere.
func links(rules *inspector.Rules, byName places, name string, b []byte) ([]byte, []Fix) {
	broken := rules.BrokenLinks(name, b)
	slices.SortFunc(broken, func(x, y inspector.Link) int { return x.From - y.From })
	var out []byte
	var fixes []Fix
	kept := 0
	for _, l := range broken {
		if len(fixes) == maxLinks {
			break // the next turn goes on
		}
		if l.From < kept || l.To > len(b) || string(b[l.From:l.To]) != l.Dest {
			continue // written with escapes of Markdown
		}
		target := byName.only(name, l.Target)
		if target == "" {
			continue
		}
		dest := destination(name, target, l.Dest, l.From > 0 && b[l.From-1] == '<')
		if dest == "" || dest == l.Dest {
			continue
		}
		out = append(append(out, b[kept:l.From]...), dest...)
		kept = l.To
		fixes = append(fixes, Fix{Link, l.Line, fmt.Sprintf("the link to %s leads to %s now", work.Code(l.Dest), work.Code(dest))})
	}
	out = append(out, b[kept:]...)
	if len(fixes) > 0 && len(rules.BrokenLinks(name, out)) != len(broken)-len(fixes) {
		return nil, nil // not what was meant
	}
	return out, fixes
}

// places are the files of a folder that a link may lead to, by their names in
// lower case.
type places map[string][]string

func index(rules *inspector.Rules, f *work.Folder) places {
	all := places{}
	for _, file := range f.Files {
		if p := file.Path; !elsewhere(p) && !inspector.Fixture(p) && !rules.Ignored(p) {
			base := strings.ToLower(path.Base(p))
			all[base] = append(all[base], p)
		}
	}
	return all
}

// only is the one file with the name of target; of several that differ in case
// only, the one written like it. "" if there is none or no only one.
func (all places) only(from, target string) string {
	base := path.Base(target)
	if path.Ext(base) == "" {
		return ""
	}
	var same, alike []string
	for _, p := range all[strings.ToLower(base)] {
		if p == from {
			continue
		}
		alike = append(alike, p)
		if path.Base(p) == base {
			same = append(same, p)
		}
	}
	switch {
	case len(same) == 1:
		return same[0]
	case len(same) == 0 && len(alike) == 1:
		return alike[0]
	}
	return ""
}

// destination writes a link from one file to another, with the query and the
// anchor of the one it replaces.
func destination(from, to, old string, bracketed bool) string {
	rel, err := filepath.Rel(filepath.FromSlash(path.Dir(from)), filepath.FromSlash(to))
	if err != nil {
		return ""
	}
	rel = filepath.ToSlash(rel)
	if strings.ContainsAny(rel, "<>{}$|*\\\n") {
		return ""
	}
	if !bracketed || strings.Contains(old, "%") {
		rel = strings.NewReplacer("(", "%28", ")", "%29").Replace((&url.URL{Path: rel}).EscapedPath())
	} else if strings.ContainsAny(rel, "%#?") {
		return ""
	}
	if first, _, _ := strings.Cut(rel, "/"); strings.Contains(first, ":") {
		rel = "./" + rel
	}
	if i := strings.IndexAny(old, "?#"); i >= 0 {
		rel += old[i:]
	}
	return rel
}
