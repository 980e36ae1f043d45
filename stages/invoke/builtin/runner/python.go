package runner

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"witan/stages/invoke/builtin/work"
)

var (
	unitHead   = regexp.MustCompile(`^(FAIL|ERROR): (.+)$`)
	unitFrame  = regexp.MustCompile(`^\s*File "(.+)", line (\d+)`)
	unitRule   = regexp.MustCompile(`^[=]{70}$|^Ran \d+ tests? in`)
	pyHead     = regexp.MustCompile(`^_{3,} (.+?) _{3,}$`)
	pyFrame    = regexp.MustCompile(`^(\S+\.py):(\d+):(.*)$`)
	pyRule     = regexp.MustCompile(`^=+ .+ =+$`)
	pyMessage  = regexp.MustCompile(`^E\s+(.+)$`)
	pythonNone = regexp.MustCompile(`(?m)^Ran 0 tests in|^no tests ran`)
	pyMissing  = regexp.MustCompile(`ModuleNotFoundError: No module named '([^'.]+)`)
)

// pythonLacks reports a module that is not of the project and not installed.
func pythonLacks(f *work.Folder, out string) bool {
	for _, m := range pyMissing.FindAllStringSubmatch(out, -1) {
		own := false
		for _, file := range f.Files {
			if path.Base(file.Path) == m[1]+".py" || strings.Contains("/"+file.Path, "/"+m[1]+"/") {
				own = true
			}
		}
		if !own {
			return true
		}
	}
	return false
}

// parsePython reads the output of unittest or pytest.
func parsePython(p places, out string) []failure {
	lines := strings.Split(strings.ReplaceAll(out, "\r\n", "\n"), "\n")
	all := sections(p, lines, unitHead, unitRule, unitFrame, 2)
	if len(all) == 0 {
		all = sections(p, lines, pyHead, pyRule, pyFrame, 1)
	}
	return once(all)
}

// sections reads one failing test after another: a headline, then a trace whose
// last place in a test is where it failed, else its last place in the project.
func sections(p places, lines []string, head, rule, frame *regexp.Regexp, name int) []failure {
	var all []failure
	for i := 0; i < len(lines); i++ {
		m := head.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		f := failure{name: m[name]}
		inTest := false
		for i++; i < len(lines) && !head.MatchString(lines[i]) && !rule.MatchString(lines[i]); i++ {
			l := lines[i]
			if m := frame.FindStringSubmatch(l); m != nil {
				if at := p.find(m[1]); at != "" && (pythonTest(at) || !inTest) {
					inTest = inTest || pythonTest(at)
					f.path = at
					f.line, _ = strconv.Atoi(m[2])
				}
			} else if m := pyMessage.FindStringSubmatch(l); m != nil && f.message == "" {
				f.message = m[1]
			} else if name == 2 && l != "" && l[0] != ' ' && strings.Contains(l, "Error") {
				f.message = l
			}
		}
		i--
		if f.path == "" {
			f.path, f.line = firstPython(p), 1
		}
		all = append(all, f)
	}
	return all
}

func firstPython(p places) string {
	for _, file := range p.f.Files {
		if pythonTest(file.Path) {
			return file.Path
		}
	}
	return p.dir
}

// hasPytest looks for pytest where the interpreter keeps its packages: beside
// it (a virtual environment or a private build), and where systems put them.
func hasPytest(python string) bool {
	real, err := filepath.EvalSymlinks(python)
	if err != nil {
		real = python
	}
	roots := []string{filepath.Dir(filepath.Dir(python)), filepath.Dir(filepath.Dir(real)), "/usr", "/usr/local"}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, ".local"))
		// A shim of pyenv stands for the version that its file names.
		if strings.Contains(filepath.ToSlash(python), "/shims/") {
			root := filepath.Dir(filepath.Dir(python))
			b, _ := os.ReadFile(filepath.Join(root, "version"))
			if v := strings.Fields(string(b)); len(v) > 0 && fs.ValidPath(v[0]) {
				roots = []string{filepath.Join(root, "versions", v[0])}
			}
		}
	}
	for _, r := range roots {
		for _, pattern := range []string{"lib/python3*/site-packages/pytest/__init__.py", "lib/python3*/dist-packages/pytest/__init__.py", "lib/python3/dist-packages/pytest/__init__.py"} {
			if m, _ := filepath.Glob(filepath.Join(r, pattern)); len(m) > 0 {
				return true
			}
		}
	}
	return false
}
