package runner

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"witan/stages/invoke/builtin/work"
)

var (
	tapNot    = regexp.MustCompile(`^(\s*)not ok \d+(?: - (.*))?$`)
	tapAny    = regexp.MustCompile(`^\s*(?:not )?ok \d+`)
	tapKind   = regexp.MustCompile(`^\s*failureType: '([^']*)'`)
	tapError  = regexp.MustCompile(`^(\s*)error: (.*)$`)
	tapAt     = regexp.MustCompile(`^\s*location: '(.+):(\d+):\d+'`)
	nodeFrame = regexp.MustCompile(`(?:\(|\bat |\s|^)((?:file://)?[^\s()'"]+\.[cm]?[jt]sx?):(\d+):\d+`)
	nodeHead  = regexp.MustCompile(`^((?:file://)?\S+\.[cm]?[jt]sx?):(\d+)$`)
	nodeThrow = regexp.MustCompile(`^(?:Uncaught )?(\w*Error)\b`)
	nodeAt    = regexp.MustCompile(`^\s*at\s`)
	nodeNone  = regexp.MustCompile(`(?m)^# tests 0$|^ℹ tests 0$|No tests found`)
	nodeGone  = regexp.MustCompile(`(?:Cannot find (?:module|package)|Could not resolve) '([^'./][^']*)'|sh: (?:\d+: )?\S+: (?:command )?not found|ENOTCACHED`)
)

// nodeLacks reports a package that is not installed; a missing file of the
// project itself is the project's own fault.
func nodeLacks(_ *work.Folder, out string) bool { return nodeGone.MatchString(out) }

// parseNode reads TAP, which node --test writes, and failing that the stack
// traces that every other tool prints.
func parseNode(p places, out string) []failure {
	lines := strings.Split(strings.ReplaceAll(out, "\r\n", "\n"), "\n")
	var all []failure
	for i, l := range lines {
		m := tapNot.FindStringSubmatch(l)
		if m == nil || strings.Contains(m[2], "# TODO") || strings.Contains(m[2], "# SKIP") {
			continue
		}
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "..." && !tapAny.MatchString(lines[end]) {
			end++
		}
		f, ok := tapTest(p, m[2], lines[i+1:end])
		if at := p.find(m[2]); ok && at != "" {
			f = tapFile(p, at, lines[:i], f)
		}
		if ok {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		all = traces(p, lines)
	}
	return once(all)
}

// tapTest reads one failing test. Those that failed only because a test below
// them did are left out.
func tapTest(p places, name string, lines []string) (failure, bool) {
	f := failure{name: name}
	var declared failure
	for i, l := range lines {
		if m := tapKind.FindStringSubmatch(l); m != nil && m[1] == "subtestsFailed" {
			return failure{}, false
		}
		if m := tapAt.FindStringSubmatch(l); m != nil {
			declared.path = p.find(m[1])
			declared.line, _ = strconv.Atoi(m[2])
			continue
		}
		if m := tapError.FindStringSubmatch(l); m != nil && f.message == "" {
			f.message = strings.Trim(m[2], "'\"")
			if strings.HasPrefix(m[2], "|") && i+1 < len(lines) {
				f.message = strings.TrimSpace(lines[i+1])
			}
		}
		for _, m := range nodeFrame.FindAllStringSubmatch(l, -1) {
			if at := p.find(m[1]); at != "" && f.path == "" {
				f.path = at
				f.line, _ = strconv.Atoi(m[2])
			}
		}
	}
	if f.path == "" {
		f.path, f.line = declared.path, declared.line
	}
	if f.path == "" {
		f.path, f.line = path.Join(p.dir, "package.json"), 1
	}
	return f, true
}

// tapFile is for a file that failed as a whole, before or outside of its tests:
// what it wrote stands before, as comments.
func tapFile(p places, name string, before []string, f failure) failure {
	f.name, f.path, f.line = path.Base(name), name, 1
	for i := len(before) - 1; i >= 0 && strings.HasPrefix(before[i], "#"); i-- {
		text := strings.TrimPrefix(strings.TrimPrefix(before[i], "#"), " ")
		if m := nodeThrow.FindStringSubmatch(text); m != nil {
			f.message = text
			f.build = m[1] == "SyntaxError"
		}
		if m := nodeHead.FindStringSubmatch(text); m != nil {
			if at := p.find(m[1]); at != "" {
				f.path = at
				f.line, _ = strconv.Atoi(m[2])
				break
			}
		}
	}
	return f
}

// traces takes from each stack trace its first place in the project, in a test
// if there is one.
func traces(p places, lines []string) []failure {
	var all []failure
	var best *failure
	message := ""
	flush := func() {
		if best != nil {
			all = append(all, *best)
		}
		best = nil
	}
	for _, l := range lines {
		if !nodeAt.MatchString(l) {
			flush()
			if t := strings.TrimSpace(l); t != "" {
				message = t
			}
			continue
		}
		if m := nodeFrame.FindStringSubmatch(l); m != nil {
			if at := p.find(m[1]); at != "" && (best == nil || nodeTest(at) && !nodeTest(best.path)) {
				line, _ := strconv.Atoi(m[2])
				best = &failure{name: path.Base(at), path: at, line: line, message: message}
			}
		}
	}
	flush()
	return all
}
