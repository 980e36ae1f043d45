package inspector

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// ID is the agent's own id.
const ID kernel.AgentID = "inspector"

// Bounds. What lies beyond is counted and said.
const (
	maxTotal    = 256 << 20 // bytes read in all
	maxFindings = 200
)

// Inspector is the agent.
type Inspector struct {
	run kernel.Runner
	as  kernel.AgentID
}

// New returns the agent; run starts git and the tool chains.
func New(run kernel.Runner) *Inspector { return &Inspector{run, ID} }

// As returns the same checks for another agent, whose findings they are then.
func (in *Inspector) As(id kernel.AgentID) *Inspector { return &Inspector{in.run, id} }

func (in *Inspector) Info() work.Info {
	return work.Info{ID: in.as, Name: "Inspector", Doc: "checks every file without running it: conflicts, secrets, links, data files, vet and syntax errors"}
}

// issue is a finding before it has an identity.
type issue struct {
	check    string
	severity string
	title    string
	detail   string
	path     string
	line     int
}

// scan is one turn of the inspector.
type scan struct {
	as      kernel.AgentID
	ctx     context.Context
	f       *work.Folder
	ignore  ignores
	issues  []issue
	notes   []string
	claims  []kernel.ClaimText
	checked []string             // tools that gave an answer
	docs    map[string]*document // parsed Markdown, by path
	read    int64
	files   int
}

func (in *Inspector) Run(ctx context.Context, turn work.Turn, emit work.Emit) (work.Report, error) {
	steps := []work.Step{{Text: "Read every file", Status: "in_progress"}, {Text: "Check links", Status: "pending"}, {Text: "Ask the tool chains", Status: "pending"}}
	emit.Plan(steps)
	end := emit.Tool("read", "Read the workspace")
	f, err := work.Open(ctx, turn.Workspace, in.run)
	if err != nil {
		end(false)
		return work.Report{}, err
	}
	defer f.Close()
	s := &scan{as: in.as, ctx: ctx, f: f, ignore: readIgnores(f), docs: map[string]*document{}, notes: slices.Clone(f.Notes)}
	s.content()
	end(true)

	step := func(i int) {
		steps = slices.Clone(steps)
		steps[i-1].Status = "completed"
		if i < len(steps) {
			steps[i].Status = "in_progress"
		}
		emit.Plan(steps)
	}
	step(1)
	s.links()
	step(2)
	if err := s.tools(in.run, turn.State, emit); err != nil {
		return work.Report{}, err
	}
	step(3)
	if ctx.Err() != nil {
		return work.Report{}, context.Cause(ctx)
	}
	return s.report(emit), nil
}

// content reads each file once and gives it to every check of content.
func (s *scan) content() {
	for _, file := range s.f.Files {
		if s.ctx.Err() != nil {
			return
		}
		if s.ignore.match(file.Path) || fixture(file.Path) {
			continue
		}
		s.files++
		s.size(file)
		if file.Size > work.MaxRead {
			continue
		}
		if s.read += file.Size; s.read > maxTotal {
			s.notes = append(s.notes, fmt.Sprintf("More than %s of content: files from %s on were not read.", work.Bytes(maxTotal), work.Code(file.Path)))
			return
		}
		b, err := s.f.Read(file.Path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, work.ErrTooLarge) {
				s.notes = append(s.notes, fmt.Sprintf("%s could not be read.", work.Code(file.Path)))
			}
			continue
		}
		s.file(file, b)
	}
}

// file checks one file. A parser that panics on it costs that file only.
func (s *scan) file(file work.File, b []byte) {
	name := file.Path
	defer func() {
		if p := recover(); p != nil {
			s.notes = append(s.notes, fmt.Sprintf("%s could not be checked.", work.Code(name)))
		}
	}()
	if s.binary(file, b) {
		return
	}
	s.data(name, b)
	if !text(b) {
		return
	}
	markdown := isMarkdown(name)
	if markdown {
		s.docs[name] = parseMarkdown(b)
	}
	s.conflicts(name, b)
	if !isTest(name) {
		s.secrets(name, b)
	}
}

// add keeps an issue until settle.
func (s *scan) add(i issue) { s.issues = append(s.issues, i) }

// report drops what is ignored or reported twice, orders the rest, sends it and
// writes it up.
func (s *scan) report(emit work.Emit) work.Report {
	s.settle()
	rank := []string{"high", "medium", "low", "info"}
	slices.SortStableFunc(s.issues, func(a, b issue) int {
		return cmp.Or(cmp.Compare(slices.Index(rank, a.severity), slices.Index(rank, b.severity)),
			strings.Compare(a.path, b.path), cmp.Compare(a.line, b.line), strings.Compare(a.title, b.title))
	})
	all := len(s.issues)
	s.issues = s.issues[:min(all, maxFindings)]

	var t strings.Builder
	files := work.Count(s.files, "file", "files")
	summary := fmt.Sprintf("%s in %s", work.Count(all, "finding", "findings"), files)
	fmt.Fprintf(&t, "**Inspection.** %s.\n", summary)
	if all > 0 {
		t.WriteString("\n")
	}
	for _, i := range s.issues {
		s.send(i, emit)
		fmt.Fprintf(&t, "- %s %s: %s", strings.ToUpper(i.severity), work.Code(fmt.Sprintf("%s:%d", i.path, i.line)), work.Show(i.title))
		if i.detail != "" {
			fmt.Fprintf(&t, ". %s", work.Clip(work.Show(strings.ReplaceAll(i.detail, "\n", " ")), 300))
		}
		t.WriteString("\n")
	}
	if all > maxFindings {
		fmt.Fprintf(&t, "- and %d more\n", all-maxFindings)
	}
	t.WriteString("\nChecked: conflict markers, secrets, links in Markdown, JSON, YAML and TOML, large and binary files")
	for _, c := range s.checked {
		fmt.Fprintf(&t, ", %s", c)
	}
	t.WriteString(".\n")
	for _, n := range s.notes {
		fmt.Fprintf(&t, "\n%s\n", n)
	}
	claims := append([]kernel.ClaimText{{Text: fmt.Sprintf("The checks of content report %s.", summary)}}, s.claims...)
	return work.Report{Text: t.String(), Summary: "Inspected the workspace: " + summary + ".", Claims: claims[:min(16, len(claims))]}
}

// settle applies ignore comments and folds what two checks say about one line
// of one file: a broken file is broken once.
func (s *scan) settle() {
	seen := map[string]bool{}
	conflict := map[string]bool{}
	for _, i := range s.issues {
		if i.check == "conflict" {
			conflict[i.path] = true
		}
	}
	lines := map[string][]string{}
	s.issues = slices.DeleteFunc(s.issues, func(i issue) bool {
		key := fmt.Sprintf("%s\x00%d\x00%s", i.path, i.line, i.check)
		if seen[key] {
			return true
		}
		seen[key] = true
		if s.ignore.match(i.path) || fixture(i.path) {
			return true
		}
		// A conflict breaks the syntax too; the conflict is what must be resolved.
		if conflict[i.path] && (i.check == "syntax" || i.check == "build") {
			return true
		}
		if lines[i.path] == nil {
			b, err := s.f.Read(i.path)
			if err != nil {
				return false
			}
			lines[i.path] = strings.Split(string(b), "\n")
		}
		return excused(lines[i.path], i.line)
	})
}

func (s *scan) send(i issue, emit work.Emit) {
	var ids []kernel.OutcomeID
	var b []byte
	var err error
	if i.check == "size" || i.check == "binary" {
		o, content := s.hashOnly(i)
		emit.Outcome(o, content)
		ids = append(ids, o.ID)
	} else if b, err = s.f.Read(i.path); err == nil {
		o, content := work.Excerpt(s.as, i.path, i.line, b, masked(bytes.Contains(b, []byte("PRIVATE KEY"))))
		emit.Outcome(o, content)
		ids = append(ids, o.ID)
	}
	emit.Outcome(work.Finding(s.as, i.severity, i.title, i.detail, i.path, i.line, ids...), nil)
}
