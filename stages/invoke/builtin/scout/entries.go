package scout

import (
	"bytes"
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"

	"witan/stages/invoke/builtin/work"
)

// maxEntries bounds the lines of the section.
const maxEntries = 40

// entries lists where the project starts: what manifests declare, then main
// packages and scripts, then build targets and images.
func entries(ctx context.Context, f *work.Folder, ms manifests) []string {
	var lines []string
	for _, m := range ms {
		lines = append(lines, m.entries...)
	}
	lines = append(lines, mains(ctx, f)...)
	if more := len(lines) - maxEntries; more > 0 {
		lines = append(lines[:maxEntries], fmt.Sprintf("and %d more", more))
	}
	return lines
}

func mains(ctx context.Context, f *work.Folder) []string {
	var lines []string
	seen := map[string]bool{} // Go packages
	for _, file := range f.Files {
		if ctx.Err() != nil {
			break
		}
		dir, base := path.Split(file.Path)
		if fixture(file.Path) {
			continue
		}
		switch {
		case path.Ext(base) == ".go" && !strings.HasSuffix(base, "_test.go") && !seen[dir]:
			if b, err := f.Read(file.Path); err == nil && goMain(b) {
				seen[dir] = true
				lines = append(lines, "Go program "+work.Code(strings.TrimSuffix("./"+dir, "/")))
			}
		case path.Ext(base) == ".py":
			if b, err := f.Read(file.Path); err == nil && (base == "__main__.py" || pythonMain.Match(b)) {
				lines = append(lines, "Python program "+work.Code(file.Path))
			}
		case base == "main.rs" && path.Base(dir) == "src", path.Base(strings.TrimSuffix(dir, "/")) == "bin" && path.Ext(base) == ".rs":
			lines = append(lines, "Rust program "+work.Code(file.Path))
		case base == "Makefile" || base == "GNUmakefile" || base == "makefile":
			if t := targets(f, file.Path); len(t) > 0 {
				lines = append(lines, fmt.Sprintf("targets of %s: %s", work.Code(file.Path), list(t)))
			}
		case languageOf(file.Path) == "Dockerfile":
			lines = append(lines, image(f, file.Path))
		}
	}
	return lines
}

var (
	goMainFunc = regexp.MustCompile(`(?m)^func main\(\)`)
	pythonMain = regexp.MustCompile(`(?m)^if __name__ == ["']__main__["']`)
	makeTarget = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_./-]*(?:[ \t]+[A-Za-z0-9][A-Za-z0-9_./-]*)*)[ \t]*::?(?:[^=]|$)`)
	dockerLine = regexp.MustCompile(`(?i)^(ENTRYPOINT|CMD|EXPOSE)\s+(.+)$`)
)

// goMain reports whether the file is one of a program and has its main function.
func goMain(b []byte) bool {
	if !bytes.Contains(b, []byte("package main")) || !goMainFunc.Match(b) {
		return false
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", b, parser.PackageClauseOnly)
	return err == nil && file.Name.Name == "main"
}

// targets are the explicit targets of a Makefile, in its order.
func targets(f *work.Folder, name string) []string {
	b, err := f.Read(name)
	if err != nil {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for l := range strings.Lines(string(b)) {
		m := makeTarget.FindStringSubmatch(strings.TrimRight(l, "\r\n"))
		if m == nil {
			continue
		}
		for _, t := range strings.Fields(m[1]) {
			if !seen[t] {
				seen[t] = true
				out = append(out, t)
			}
		}
	}
	return out
}

func image(f *work.Folder, name string) string {
	b, _ := f.Read(name)
	var says []string
	for l := range strings.Lines(string(b)) {
		if m := dockerLine.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
			says = append(says, work.Code(strings.ToUpper(m[1])+" "+work.Clip(m[2], 80)))
		}
	}
	line := "image " + work.Code(name)
	if len(says) > 0 {
		line += ": " + strings.Join(says[:min(4, len(says))], ", ")
	}
	return line
}

// readme is the title and the first paragraph of the project's own description.
func readme(f *work.Folder) string {
	name := ""
	for _, file := range f.Files {
		if low := strings.ToLower(file.Path); low == "readme.md" || low == "readme" || low == "readme.txt" || low == "readme.rst" {
			name = file.Path
			break
		}
	}
	if name == "" {
		return ""
	}
	b, err := f.Read(name)
	if err != nil {
		return ""
	}
	var title, para string
	for l := range strings.Lines(string(b)) {
		t := strings.TrimSpace(l)
		switch {
		case para != "" && t == "":
			return quote(name, title, para)
		case t == "" || strings.HasPrefix(t, "[!") || strings.HasPrefix(t, "![") || strings.HasPrefix(t, "<") || strings.Trim(t, "=-") == "":
		case strings.HasPrefix(t, "#"):
			if para != "" {
				return quote(name, title, para)
			}
			if title == "" {
				title = strings.TrimSpace(strings.TrimLeft(t, "#"))
			}
		case strings.HasPrefix(t, "```"):
			return quote(name, title, para)
		default:
			para = strings.TrimSpace(para + " " + t)
		}
	}
	return quote(name, title, para)
}

func quote(name, title, para string) string {
	says := strings.TrimSuffix(work.Clip(work.Show(title), 120), ".")
	if says != "" && para != "" {
		says += ". "
	}
	says += work.Clip(work.Show(para), 400)
	if says == "" {
		return ""
	}
	return fmt.Sprintf("%s says: %s", work.Code(name), says)
}
