package inspector

import (
	_ "embed"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// The two helpers only parse: they take a JSON list of paths on stdin and give
// a JSON list of errors. One process looks at all files.
var (
	//go:embed check.js
	checkJS string
	//go:embed check.py
	checkPY string
)

// parseError is one entry of a helper's answer.
type parseError struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// maxScripts bounds the files given to a helper.
const maxScripts = 5000

func (s *scan) scripts(exts ...string) []string {
	var names []string
	for _, f := range s.f.Files {
		if slices.Contains(exts, path.Ext(f.Path)) && !fixture(f.Path) && !s.ignore.match(f.Path) && f.Size <= 1<<20 &&
			!strings.Contains(f.Path, "{{") && len(names) < maxScripts {
			names = append(names, f.Path)
		}
	}
	return names
}

var (
	jsx    = regexp.MustCompile(`<[A-Za-z][\w.]*(\s[^<>]*)?/?>|<>|</`)
	typed  = regexp.MustCompile(`@flow\b|@noflow\b`)
	markup = regexp.MustCompile(`"(react|preact|solid-js|@babel/core|flow-bin|next|gatsby|inferno)"\s*:`)
)

func (s *scan) node(run kernel.Runner, t work.Tools, emit work.Emit) {
	names := s.scripts(".js", ".mjs", ".cjs")
	if len(names) == 0 {
		return
	}
	node := work.Find("node")
	if node == "" {
		s.note("Node is not installed, so the syntax of JavaScript was not checked.")
		return
	}
	errs, ok := s.ask(run, t, emit, "node: parse "+work.Count(len(names), "file", "files"), names, node, "--no-warnings", "--experimental-vm-modules", "-e", checkJS)
	if !ok {
		return
	}
	markedUp := s.markedUp()
	for _, e := range errs {
		b, err := s.f.Read(e.Path)
		// Other languages live in files called .js where a build step takes them.
		if err != nil || typed.Match(b) || markedUp && jsx.Match(b) || template.Match(b) && strings.Contains(e.Path, "template") {
			continue
		}
		s.add(issue{check: "syntax", severity: "high", title: "does not parse: " + e.Text, path: e.Path, line: e.Line})
	}
}

// markedUp reports whether the project uses markup in JavaScript.
func (s *scan) markedUp() bool {
	return slices.ContainsFunc(s.f.Files, func(f work.File) bool {
		if path.Base(f.Path) != "package.json" {
			return false
		}
		b, err := s.f.Read(f.Path)
		return err == nil && markup.Match(b)
	})
}

func (s *scan) python(run kernel.Runner, t work.Tools, emit work.Emit) {
	names := s.scripts(".py")
	if len(names) == 0 {
		return
	}
	python := work.Find("python3")
	if python == "" {
		s.note("Python is not installed, so the syntax of Python was not checked.")
		return
	}
	requires := ""
	if b, err := s.f.Read("pyproject.toml"); err == nil {
		if m := requiresPython.FindSubmatch(b); m != nil {
			requires = string(m[1])
		}
	}
	errs, ok := s.ask(run, t, emit, "python3: parse "+work.Count(len(names), "file", "files"), names, python, "-I", "-S", "-B", "-W", "ignore", "-c", checkPY, requires)
	if !ok {
		return
	}
	for _, e := range errs {
		if e.Path == "" {
			s.note("Python's syntax was not checked: %s.", work.Show(e.Text))
			continue
		}
		s.add(issue{check: "syntax", severity: "high", title: "does not parse: " + e.Text, path: e.Path, line: e.Line})
	}
}

var requiresPython = regexp.MustCompile(`(?m)^\s*requires-python\s*=\s*["'][^"']*>=?\s*(3\.\d+)`)

// ask gives the files to a helper and reads its answer.
func (s *scan) ask(run kernel.Runner, t work.Tools, emit work.Emit, shown string, names []string, argv ...string) ([]parseError, bool) {
	in, err := json.Marshal(names)
	if err != nil {
		return nil, false
	}
	res, ok := s.start(run, t, emit, shown, s.f.Path, in, argv...)
	if !ok {
		return nil, false
	}
	var errs []parseError
	if err := json.Unmarshal(res.Stdout, &errs); err != nil || res.Exit != 0 {
		s.note("%s gave no answer: %s", shown, work.Clip(work.Show(firstLine(string(res.Stderr))), 200))
		return nil, false
	}
	s.checked = append(s.checked, shown)
	return errs, true
}
