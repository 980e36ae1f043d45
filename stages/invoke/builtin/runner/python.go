package runner

import (
	"path"
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
			f.build = strings.HasPrefix(f.message, "SyntaxError") || strings.HasPrefix(f.message, "IndentationError")
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
