package runner

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"witan/stages/invoke/builtin/work"
)

var (
	goEnd    = regexp.MustCompile(`^(FAIL|ok|\?)\s+(\S+)`)
	goFail   = regexp.MustCompile(`^\s*--- FAIL: (\S+) `)
	goPlace  = regexp.MustCompile(`^\s+([^\s:]+\.go):(\d+): ?(.*)$`)
	goFrame  = regexp.MustCompile(`^\t(\S.*\.go):(\d+)(?: \+0x[0-9a-f]+)?$`)
	goBuild  = regexp.MustCompile(`^(?:vet: )?([^\s:]+\.go):(\d+)(?::\d+)?: (.+)$`)
	goLog    = regexp.MustCompile(`\.Logf?\(`)
	goPanic  = regexp.MustCompile(`^(panic: .*|fatal error: .*)$`)
	goModule = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)
)

// goLacks reports packages that could not be built for want of something; tests
// that ran and failed count all the same.
func goLacks(_ *work.Folder, out string) bool {
	return work.GoLacks(out) && !strings.Contains(out, "--- FAIL: ")
}

// parseGo reads the plain output of go test: what a package writes stands
// before the line that says how the package ended.
func parseGo(p places, out string) []failure {
	module := ""
	if b, err := p.f.Read(path.Join(p.dir, "go.mod")); err == nil {
		if m := goModule.FindSubmatch(b); m != nil {
			module = string(m[1])
		}
	}
	var all []failure
	var block []string
	build := false
	for l := range strings.Lines(out) {
		l = strings.TrimRight(l, "\r\n")
		if strings.HasPrefix(l, "# ") {
			build = true
			continue
		}
		if m := goBuild.FindStringSubmatch(l); build && m != nil {
			if name := p.find(m[1]); name != "" {
				line, _ := strconv.Atoi(m[2])
				all = append(all, failure{build: true, path: name, line: line, message: m[3]})
			}
			continue
		}
		m := goEnd.FindStringSubmatch(l)
		if m == nil {
			block = append(block, l)
			continue
		}
		build = false
		if dir, ok := packageDir(module, p.dir, m[2]); ok && m[1] == "FAIL" && !strings.HasSuffix(l, "failed]") {
			all = append(all, goTests(p, dir, block)...)
		}
		block = nil
	}
	return once(all)
}

func packageDir(module, dir, pkg string) (string, bool) {
	rel, ok := strings.CutPrefix(pkg, module)
	if !ok || module == "" {
		return "", false
	}
	return path.Join(dir, rel), true
}

// goTests reads what the tests of one package wrote.
func goTests(p places, dir string, block []string) []failure {
	var all []failure
	for i, l := range block {
		m := goFail.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		end := i + 1
		for end < len(block) && !goFail.MatchString(block[end]) {
			end++
		}
		f := failure{name: m[1], path: path.Join(dir), message: ""}
		if !goWhere(p, dir, block[i+1:end], &f) {
			// A test that failed because a test below it did is not one more.
			if end < len(block) && strings.HasPrefix(strings.TrimSpace(block[end]), "--- FAIL: "+m[1]+"/") {
				continue
			}
			f.path, f.line = firstTest(p, dir, m[1])
		}
		all = append(all, f)
	}
	if len(all) == 0 && len(block) > 0 {
		f := failure{name: "the package's tests"}
		if goWhere(p, dir, block, &f) {
			all = append(all, f)
		}
	}
	return all
}

// goWhere finds where a test failed: its first message that is not a log, else
// the first frame of a panic in the project, in a test if there is one.
func goWhere(p places, dir string, lines []string, f *failure) bool {
	var frame *failure
	for _, l := range lines {
		if m := goPanic.FindStringSubmatch(l); m != nil && f.message == "" {
			f.message = m[1]
		}
		if m := goPlace.FindStringSubmatch(l); m != nil {
			name := path.Join(dir, m[1])
			if !p.f.Has(name) {
				name = p.unique(m[1])
			}
			line, _ := strconv.Atoi(m[2])
			if name != "" && !goLog.MatchString(p.source(name, line)) {
				f.path, f.line, f.message = name, line, strings.TrimSpace(m[3])
				return true
			}
		}
		if m := goFrame.FindStringSubmatch(l); m != nil {
			if name := p.find(m[1]); name != "" && (frame == nil || strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(frame.path, "_test.go")) {
				line, _ := strconv.Atoi(m[2])
				frame = &failure{path: name, line: line}
			}
		}
	}
	if frame != nil {
		f.path, f.line = frame.path, frame.line
		return true
	}
	return false
}

// firstTest is where a test is declared, for one that says nothing else.
func firstTest(p places, dir, name string) (string, int) {
	top, _, _ := strings.Cut(name, "/")
	for _, file := range p.f.Files {
		if path.Dir(file.Path) != dir || !strings.HasSuffix(file.Path, "_test.go") {
			continue
		}
		b, err := p.f.Read(file.Path)
		if err != nil {
			continue
		}
		if text := "func " + top + "("; strings.Contains(string(b), text) {
			return file.Path, lineOf(b, text)
		}
	}
	return path.Join(p.dir, "go.mod"), 1
}

// once drops what is said twice.
func once(all []failure) []failure {
	seen := map[failure]bool{}
	var out []failure
	for _, f := range all {
		key := failure{name: f.name, path: f.path, line: f.line, build: f.build}
		if !seen[key] {
			seen[key] = true
			out = append(out, f)
		}
	}
	return out
}
