package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"witan/stages/invoke/builtin/work"
)

// suite is one way the project tests itself.
type suite struct {
	dir      string // in the workspace, "." at its top
	shown    string // the command line as a person would type it in dir
	argv     []string
	manifest string // file that says how, for failures without a place
	line     int
	parse    func(p places, out string) []failure
	lacks    func(f *work.Folder, out string) bool // the machine is at fault
	empty    func(out string) bool                 // there was no test
	vars     func(dir string) []string             // further environment, given the folder in the copy
}

func (s suite) env(dir string) []string {
	if s.vars == nil {
		return nil
	}
	return s.vars(dir)
}

// where names the suite in a sentence.
func (s suite) where() string {
	if s.dir == "." {
		return work.Code(s.shown)
	}
	return work.Code(s.shown) + " in " + work.Code(s.dir)
}

// maxSuites bounds how many are run.
const maxSuites = 4

// detectors look for tests in one folder. Each returns the suite, or why there
// is one that cannot be run; neither if there is none.
var detectors = []func(f *work.Folder, dir string, try probe) (*suite, string){goSuite, nodeSuite, pythonSuite, cargoSuite}

// probe starts a command and reports whether it ended with exit 0.
type probe func(argv ...string) bool

// find looks at the top of the workspace, and below it if there is nothing.
func find(f *work.Folder, try probe) (suites []suite, notes []string) {
	suites, notes = detect(f, ".", try)
	if len(suites) > 0 || len(notes) > 0 {
		return suites, notes
	}
	for _, dir := range below(f) {
		s, n := detect(f, dir, try)
		suites, notes = append(suites, s...), append(notes, n...)
	}
	if len(suites) > maxSuites {
		notes = append(notes, fmt.Sprintf("Only the first %d of %d test suites were run.", maxSuites, len(suites)))
		suites = suites[:maxSuites]
	}
	return suites, notes
}

func detect(f *work.Folder, dir string, try probe) (suites []suite, notes []string) {
	for _, d := range detectors {
		s, note := d(f, dir, try)
		if s != nil {
			suites = append(suites, *s)
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	if len(suites) == 0 && len(notes) == 0 {
		if s, note := makeSuite(f, dir); s != nil {
			suites = append(suites, *s)
		} else if note != "" {
			notes = append(notes, note)
		}
	}
	return suites, notes
}

// below lists folders of the first two levels that hold a manifest.
func below(f *work.Folder) []string {
	var dirs []string
	for _, file := range f.Files {
		dir, base := path.Dir(file.Path), path.Base(file.Path)
		if dir == "." || strings.Count(dir, "/") > 1 || strings.Contains("/"+dir+"/", "/testdata/") || strings.Contains("/"+dir+"/", "/fixtures/") {
			continue
		}
		if slices.Contains([]string{"go.mod", "package.json", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Cargo.toml", "Makefile"}, base) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// any reports whether a file below dir satisfies ok.
func anyFile(f *work.Folder, dir string, ok func(rel string) bool) bool {
	return slices.ContainsFunc(f.Files, func(file work.File) bool {
		rel, in := strings.CutPrefix(file.Path, dir+"/")
		if dir == "." {
			rel, in = file.Path, true
		}
		return in && !strings.Contains("/"+rel, "/testdata/") && !strings.Contains("/"+rel, "/fixtures/") && ok(rel)
	})
}

func never(string) bool { return false }

func goSuite(f *work.Folder, dir string, _ probe) (*suite, string) {
	mod := path.Join(dir, "go.mod")
	if !f.Has(mod) || !anyFile(f, dir, func(rel string) bool { return strings.HasSuffix(rel, "_test.go") }) {
		return nil, ""
	}
	gobin := work.Find("go")
	if gobin == "" {
		return nil, "The tests of " + work.Code(mod) + " need Go, which is not installed."
	}
	work := func(d string) []string {
		if _, err := os.Stat(filepath.Join(d, "go.work")); err == nil {
			return nil
		}
		return []string{"GOWORK=off"}
	}
	return &suite{dir: dir, shown: "go test ./...", argv: []string{gobin, "test", "./..."}, manifest: mod, line: 1,
		parse: parseGo, lacks: goLacks, empty: never, vars: work}, ""
}

func nodeSuite(f *work.Folder, dir string, _ probe) (*suite, string) {
	manifest := path.Join(dir, "package.json")
	b, err := f.Read(manifest)
	if !f.Has(manifest) || err != nil {
		return nil, ""
	}
	var p struct {
		Scripts              map[string]string
		Dependencies         map[string]string
		DevDependencies      map[string]string
		OptionalDependencies map[string]string
	}
	if json.Unmarshal(b, &p) != nil {
		return nil, "The tests of " + work.Code(manifest) + " were not run: the file is not valid JSON."
	}
	s := &suite{dir: dir, manifest: manifest, line: 1, parse: parseNode, lacks: nodeLacks, empty: func(out string) bool { return nodeNone.MatchString(out) }}
	tool := "node"
	switch script := p.Scripts["test"]; {
	case script != "" && !strings.Contains(script, "no test specified"):
		tool, s.shown = "npm", "npm test --silent"
		s.line = lineOf(b, `"test"`)
	case anyFile(f, dir, nodeTest):
		s.shown = "node --test"
	default:
		return nil, ""
	}
	bin := work.Find(tool)
	if bin == "" || work.Find("node") == "" {
		return nil, "The tests of " + work.Code(manifest) + " need " + tool + ", which is not installed."
	}
	if len(p.Dependencies)+len(p.DevDependencies) > 0 && !f.IsDir(path.Join(dir, "node_modules")) && !f.IsDir("node_modules") {
		return nil, "The tests of " + work.Code(manifest) + " were not run: its dependencies are not installed (npm install)."
	}
	s.argv = append([]string{bin}, strings.Fields(s.shown)[1:]...)
	return s, ""
}

// nodeTest tells the files that node --test takes by itself.
func nodeTest(rel string) bool {
	ext := path.Ext(rel)
	if ext != ".js" && ext != ".mjs" && ext != ".cjs" || strings.Contains("/"+rel, "/node_modules/") {
		return false
	}
	stem := strings.TrimSuffix(path.Base(rel), ext)
	return stem == "test" || strings.HasPrefix(stem, "test-") || strings.HasSuffix(stem, ".test") || strings.HasSuffix(stem, "-test") ||
		strings.HasSuffix(stem, "_test") || strings.Contains("/"+path.Dir(rel)+"/", "/test/")
}

func pythonSuite(f *work.Folder, dir string, try probe) (*suite, string) {
	if !anyFile(f, dir, pythonTest) {
		return nil, ""
	}
	manifest := ""
	for _, name := range []string{"pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", "requirements.txt"} {
		if manifest == "" && f.Has(path.Join(dir, name)) {
			manifest = path.Join(dir, name)
		}
	}
	if manifest == "" {
		// A folder with tests and without a manifest is a project at the top only.
		if dir != "." {
			return nil, ""
		}
		for _, file := range f.Files {
			if manifest == "" && pythonTest(file.Path) {
				manifest = file.Path
			}
		}
	}
	python, shown := work.Find("python3"), "python3"
	for _, venv := range []string{".venv", "venv"} {
		if p := path.Join(dir, venv, "bin", "python"); f.IsDir(path.Join(dir, venv)) {
			if full := filepath.Join(f.Path, filepath.FromSlash(p)); exists(full) {
				python, shown = full, venv+"/bin/python"
				break
			}
		}
	}
	if python == "" {
		return nil, "The tests of " + work.Code(manifest) + " need Python, which is not installed."
	}
	s := &suite{dir: dir, manifest: manifest, line: 1, lacks: pythonLacks, parse: parsePython,
		empty: func(out string) bool { return pythonNone.MatchString(out) }}
	args := pythonArgs(f, dir, try(python, "-c", "import pytest"))
	s.shown, s.argv = shown+" "+strings.Join(args, " "), append([]string{python}, args...)
	s.vars = func(d string) []string {
		if exists(filepath.Join(d, "src")) {
			return []string{"PYTHONPATH=" + d + string(os.PathListSeparator) + filepath.Join(d, "src")}
		}
		return []string{"PYTHONPATH=" + d}
	}
	return s, ""
}

func pythonTest(rel string) bool {
	base := path.Base(rel)
	return path.Ext(base) == ".py" && (strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py") || base == "tests.py")
}

// pythonArgs chooses pytest where this Python has it, else unittest.
func pythonArgs(f *work.Folder, dir string, pytest bool) []string {
	if pytest {
		return []string{"-m", "pytest", "-q"}
	}
	for _, tests := range []string{"tests", "test"} {
		if f.IsDir(path.Join(dir, tests)) && !f.Has(path.Join(dir, tests, "__init__.py")) {
			return []string{"-m", "unittest", "discover", "-s", tests}
		}
	}
	return []string{"-m", "unittest"}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func cargoSuite(f *work.Folder, dir string, _ probe) (*suite, string) {
	manifest := path.Join(dir, "Cargo.toml")
	if !f.Has(manifest) || !anyFile(f, dir, func(rel string) bool {
		if path.Ext(rel) != ".rs" {
			return false
		}
		b, err := f.Read(path.Join(dir, rel))
		return err == nil && strings.Contains(string(b), "#[test]")
	}) {
		return nil, ""
	}
	bin := work.Find("cargo")
	if bin == "" {
		return nil, "The tests of " + work.Code(manifest) + " need Cargo, which is not installed."
	}
	return &suite{dir: dir, shown: "cargo test", argv: []string{bin, "test"}, manifest: manifest, line: 1, parse: parseCargo, lacks: cargoLacks, empty: never,
		vars: func(d string) []string { return []string{"CARGO_TARGET_DIR=" + filepath.Join(d, "target")} }}, ""
}

var testTarget = regexp.MustCompile(`(?m)^(?:[\w.-]+[ \t]+)*test(?:[ \t]+[\w.-]+)*[ \t]*::?(?:[^=]|$)`)

func makeSuite(f *work.Folder, dir string) (*suite, string) {
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		manifest := path.Join(dir, name)
		if !f.Has(manifest) {
			continue
		}
		b, err := f.Read(manifest)
		at := testTarget.FindIndex(b)
		if err != nil || at == nil {
			return nil, ""
		}
		bin := work.Find("make")
		if bin == "" {
			return nil, "The tests of " + work.Code(manifest) + " need make, which is not installed."
		}
		return &suite{dir: dir, shown: "make test", argv: []string{bin, "test"}, manifest: manifest, line: 1 + strings.Count(string(b[:at[0]]), "\n"),
			parse: func(places, string) []failure { return nil }, lacks: makeLacks, empty: never}, ""
	}
	return nil, ""
}

// makeLacks reports a recipe whose program is missing, which the shell says by
// its exit code.
func makeLacks(_ *work.Folder, out string) bool {
	return work.GoLacks(out) || strings.Contains(out, "Error 127")
}

// lineOf is the line of the first occurrence of text, 1 if there is none.
func lineOf(b []byte, text string) int {
	before, _, found := strings.Cut(string(b), text)
	if !found {
		return 1
	}
	return 1 + strings.Count(before, "\n")
}
