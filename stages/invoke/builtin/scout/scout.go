package scout

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

const id kernel.AgentID = "scout"

// Scout is the agent.
type Scout struct{ run kernel.Runner }

// New returns the agent; run starts git.
func New(run kernel.Runner) *Scout { return &Scout{run} }

func (s *Scout) Info() work.Info {
	return work.Info{ID: id, Name: "Scout", Doc: "maps the workspace: languages, entry points, dependencies, tests, recent change"}
}

// section is one part of the map; a part without lines is left out.
type section struct {
	title string
	lines []string
}

func (s *Scout) Run(ctx context.Context, turn work.Turn, emit work.Emit) (work.Report, error) {
	end := emit.Tool("read", "List the workspace")
	f, err := work.Open(ctx, turn.Workspace, s.run)
	end(err == nil)
	if err != nil {
		return work.Report{}, err
	}
	defer f.Close()

	langs := languages(f)
	end = emit.Tool("read", "Read manifests and entry points")
	m := readManifests(f)
	sections := []section{
		{"Languages", languageLines(langs)},
		{"Entry points", entries(ctx, f, m)},
		{"Dependencies", m.dependencies()},
		{"Tests", tests(f)},
	}
	end(true)
	if f.Git {
		end = emit.Tool("execute", "git log")
		lines, err := s.recent(ctx, f)
		end(err == nil)
		sections = append(sections, section{"Recent change", lines})
	}
	sections = append(sections, section{"Largest files", largest(f)})
	if err := ctx.Err(); err != nil {
		return work.Report{}, context.Cause(ctx)
	}

	o, content := listing(f)
	emit.Outcome(o, content)
	text, summary := write(f, langs, sections)
	return work.Report{Text: text, Summary: summary}, nil
}

func write(f *work.Folder, langs []language, sections []section) (text, summary string) {
	var total int64
	for _, file := range f.Files {
		total += file.Size
	}
	summary = fmt.Sprintf("%s, %s", work.Count(len(f.Files), "file", "files"), work.Bytes(total))
	if len(langs) > 0 {
		summary += ", mostly " + langs[0].name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**Workspace map.** %s.\n", summary)
	if what := readme(f); what != "" {
		fmt.Fprintf(&b, "\n%s\n", what)
	}
	for _, sec := range sections {
		if len(sec.lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n", sec.title)
		for _, l := range sec.lines {
			fmt.Fprintf(&b, "- %s\n", l)
		}
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	return b.String(), "Mapped the workspace: " + summary + "."
}

// listing is the evidence behind the map: every file with its size.
func listing(f *work.Folder) (kernel.Outcome, []byte) {
	var b bytes.Buffer
	for _, file := range f.Files {
		fmt.Fprintf(&b, "%12d  %s\n", file.Size, work.Show(file.Path))
	}
	for _, l := range f.Links {
		fmt.Fprintf(&b, "%12s  %s -> %s\n", "link", work.Show(l.Path), work.Show(l.Target))
	}
	return work.Evidence(id, "listing", "observed", fmt.Sprintf("%s of the workspace with their sizes", work.Count(len(f.Files), "file", "files")), b.Bytes())
}

func largest(f *work.Folder) []string {
	files := slices.Clone(f.Files)
	slices.SortStableFunc(files, func(a, b work.File) int { return cmp.Compare(b.Size, a.Size) })
	var lines []string
	for _, file := range files[:min(5, len(files))] {
		lines = append(lines, fmt.Sprintf("%s, %s", work.Code(file.Path), work.Bytes(file.Size)))
	}
	return lines
}

// recent tells the last commits and what is not committed.
func (s *Scout) recent(ctx context.Context, f *work.Folder) ([]string, error) {
	var lines []string
	res, err := work.Git(ctx, s.run, f.Path, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=all", "--", ".")
	if err != nil {
		return nil, err
	}
	if res.Exit == 0 {
		if n := changed(string(res.Stdout)); n > 0 {
			lines = append(lines, work.Count(n, "path is", "paths are")+" changed and not committed")
		} else {
			lines = append(lines, "everything is committed")
		}
	}
	// A repository without commits has no log; that is not an error of the map.
	res, err = work.Git(ctx, s.run, f.Path, "log", "-n", "8", "--no-color", "--no-show-signature", "--no-ext-diff", "--date=short", "--format=%h%x09%ad%x09%an%x09%s", "--", ".")
	if err != nil || res.Exit != 0 {
		return append(lines, "no commits yet"), err
	}
	for l := range strings.Lines(string(res.Stdout)) {
		if p := strings.SplitN(strings.TrimRight(l, "\n"), "\t", 4); len(p) == 4 {
			lines = append(lines, fmt.Sprintf("%s %s %s (%s)", work.Code(p[0]), p[1], work.Clip(work.Show(p[3]), 100), work.Clip(work.Show(p[2]), 40)))
		}
	}
	return lines, nil
}

// changed counts the paths of git status; a rename has a second name.
func changed(out string) int {
	n := 0
	entries := strings.Split(out, "\x00")
	for i := 0; i < len(entries); i++ {
		if len(entries[i]) < 4 {
			continue
		}
		n++
		if entries[i][0] == 'R' || entries[i][0] == 'C' {
			i++
		}
	}
	return n
}
