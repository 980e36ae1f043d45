package inspector

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// links reports each relative link that leads nowhere.
func (s *scan) links() {
	for _, file := range s.f.Files {
		if s.ctx.Err() != nil {
			return
		}
		d := s.docs[file.Path]
		if d == nil {
			continue
		}
		for _, l := range d.links {
			if title, detail := s.follow(file.Path, l.dest); title != "" {
				s.add(issue{check: "link " + l.dest, severity: "low", title: title, detail: detail, path: file.Path, line: l.line})
			}
		}
	}
}

// splitLink cuts a destination into the file it names, not escaped any more, a
// query and an anchor.
func splitLink(dest string) (file, query, anchor string) {
	file, anchor, _ = strings.Cut(dest, "#")
	file, query, _ = strings.Cut(file, "?")
	if u, err := url.PathUnescape(file); err == nil {
		file = u
	}
	return file, query, anchor
}

// target is the path in the workspace that a link from the document at name
// means; ok is false if it leads where the workspace cannot tell.
func (s *scan) target(name, dest string) (target string, ok bool) {
	if scheme.MatchString(dest) || strings.HasPrefix(dest, "/") || strings.ContainsAny(dest, "{}$<>|*") || strings.HasPrefix(dest, "\\") {
		return "", false
	}
	file, _, _ := splitLink(dest)
	if file == "" {
		return name, true
	}
	target = path.Join(path.Dir(name), file)
	return target, !strings.HasPrefix(target, "..") && len(target) <= 1000
}

// follow says what is wrong with a link from the document at name; "" if
// nothing is, or if it leads where the workspace cannot tell.
func (s *scan) follow(name, dest string) (title, detail string) {
	target, ok := s.target(name, dest)
	if !ok {
		return "", ""
	}
	if target = s.resolve(target); target == "" {
		file, _, _ := splitLink(dest)
		return "broken link: no file " + path.Join(path.Dir(name), file), "The link leads to " + dest + "."
	}
	_, _, anchor := splitLink(dest)
	if anchor == "" || !isMarkdown(target) {
		return "", ""
	}
	d := s.docs[target]
	if d == nil {
		return "", ""
	}
	if u, err := url.PathUnescape(anchor); err == nil {
		anchor = u
	}
	want := fold(strings.TrimPrefix(anchor, "user-content-"))
	if want == "" || want == "top" || d.anchors[want] {
		return "", ""
	}
	return fmt.Sprintf("broken link: no heading #%s in %s", anchor, target), "The link leads to " + dest + "."
}

// resolve finds what a link to name may mean: the name itself, or the source of
// the page that a site generator makes of it. "" if there is nothing.
func (s *scan) resolve(name string) string {
	candidates := []string{name}
	if stem, ok := strings.CutSuffix(name, ".html"); ok {
		candidates = append(candidates, stem+".md")
	}
	if path.Ext(name) == "" {
		candidates = append(candidates, name+".md", name+".mdx", name+".markdown", name+".html")
	}
	for _, c := range candidates {
		if s.f.Exists(c) {
			return c
		}
	}
	return ""
}
