package inspector

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// Limits of one tool chain.
const (
	toolTime   = 90 * time.Second
	maxModules = 8
)

// tools asks each tool chain that is installed and that the project has use for.
func (s *scan) tools(run kernel.Runner, state string, emit work.Emit) error {
	t, err := work.NewTools(state)
	if err != nil {
		return kernel.E("builtin.inspector", kernel.ReadOnly, err, "the turn's state folder cannot be written")
	}
	s.vet(run, t, emit)
	s.node(run, t, emit)
	s.python(run, t, emit)
	return nil
}

// start runs one tool, confined; ok is false when it gave no answer, which then
// is a note.
func (s *scan) start(run kernel.Runner, t work.Tools, emit work.Emit, shown, dir string, stdin []byte, argv ...string) (res kernel.CommandResult, ok bool) {
	end := emit.Tool("execute", shown)
	res, err := run.Run(s.ctx, kernel.Command{Argv: argv, Dir: dir, Env: t.Env, Stdin: stdin, Timeout: toolTime, Write: t.Write, Confine: true, Limit: 4 << 20})
	switch {
	case errors.Is(err, context.Canceled) || s.ctx.Err() != nil:
	case err != nil:
		s.note("%s could not be run.", shown)
	case res.TimedOut:
		s.note("%s did not finish within %d seconds.", shown, int(toolTime.Seconds()))
	default:
		end(true)
		return res, true
	}
	end(false)
	return res, false
}

func (s *scan) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// vet runs go vet in each module.
func (s *scan) vet(run kernel.Runner, t work.Tools, emit work.Emit) {
	var modules []string
	for _, f := range s.f.Files {
		if path.Base(f.Path) == "go.mod" && !fixture(f.Path) && !s.ignore.match(f.Path) {
			modules = append(modules, path.Dir(f.Path))
		}
	}
	if len(modules) == 0 {
		return
	}
	gobin := work.Find("go")
	if gobin == "" {
		s.note("Go is not installed, so go vet was not asked.")
		return
	}
	if len(modules) > maxModules {
		s.note("Only the first %d of %d Go modules were asked.", maxModules, len(modules))
		modules = modules[:maxModules]
	}
	clean := true
	var lacking []string
	for _, dir := range modules {
		if !s.hasGo(dir) {
			continue
		}
		res, ok := s.start(run, t, emit, "go vet ./...", filepath.Join(s.f.Path, filepath.FromSlash(dir)), nil, gobin, "vet", "./...")
		if !ok {
			clean = false
			continue
		}
		if !slices.Contains(s.checked, "go vet") {
			s.checked = append(s.checked, "go vet")
		}
		if res.Exit != 0 {
			clean = false
			if s.vetOutput(dir, string(res.Stdout)+string(res.Stderr)) {
				lacking = append(lacking, work.Code(dir))
			}
		}
	}
	if len(lacking) > 0 {
		s.note("go vet in %s needs modules or tools that are not on this machine; what depends on them was not checked.", strings.Join(lacking, ", "))
	}
	if clean {
		zero := 0
		s.claims = append(s.claims, kernel.ClaimText{Text: "go vet reports nothing.", Command: "go vet ./...", Exit: &zero})
	}
}

func (s *scan) hasGo(dir string) bool {
	return slices.ContainsFunc(s.f.Files, func(f work.File) bool {
		return path.Ext(f.Path) == ".go" && (dir == "." || strings.HasPrefix(f.Path, dir+"/"))
	})
}

var (
	goLine = regexp.MustCompile(`^(?:vet: )?((?:\./|\.\./)?[^\s:][^:]*\.(?:go|s|c|h|mod)):(\d+)(?::\d+)?: (.+)$`)
)

// vetOutput turns what go vet wrote into issues and reports whether the machine
// lacks something. Errors of the compiler and of the type checker are the same
// errors twice.
func (s *scan) vetOutput(dir, out string) (lacks bool) {
	found := false
	for l := range strings.Lines(out) {
		m := goLine.FindStringSubmatch(strings.TrimRight(l, "\r\n"))
		if m == nil {
			continue
		}
		found = true
		if work.GoLacks(m[3]) || m[3] == "too many errors" {
			continue
		}
		name := path.Join(dir, filepath.ToSlash(m[1]))
		line, _ := strconv.Atoi(m[2])
		if filepath.IsAbs(m[1]) || strings.HasPrefix(name, "../") || !s.f.Exists(name) {
			continue
		}
		i := issue{check: "build", severity: "medium", title: "go vet: " + m[3], path: name, line: line}
		if strings.HasPrefix(l, "vet: ") || broken.MatchString(m[3]) {
			i.severity, i.title = "high", "does not compile: "+m[3]
		}
		s.add(i)
	}
	lacks = work.GoLacks(out)
	if !lacks && !found {
		s.note("go vet in %s failed: %s", work.Code(dir), work.Clip(work.Show(firstLine(out)), 300))
	}
	return lacks
}

// broken tells the compiler's errors from vet's advice by how they are worded.
var broken = regexp.MustCompile(`^(undefined:|syntax error|expected |declared and not used|cannot use |missing return|not enough arguments|too many arguments|` +
	`no required module|found packages|invalid operation|assignment mismatch|undeclared|import cycle|missing go.sum)|imported and not used|redeclared|is not in std`)

func firstLine(s string) string {
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			return l
		}
	}
	return "no output"
}
