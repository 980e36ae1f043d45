package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"witan/cmd/internal/config"
	"witan/kernel"
)

// Kinds are the stages of a pipeline, in order.
var Kinds = []string{"freeze", "deliver", "invoke", "receipt", "verify", "commit"}

// Pipeline is a choice for every stage.
type Pipeline struct {
	stages map[string]section
	dir    string // of the file; relative commands are looked up there
}

// section is one table of the file: use, and options.
type section map[string]any

func (s section) use() string { u, _ := s["use"].(string); return u }

// Default is the pipeline of a batch without a file.
func Default() *Pipeline { return For("batch") }

// For is the pipeline of a plan without a file. In a council every turn closes
// with its receipt, and the members verify.
func For(plan string) *Pipeline {
	p := base()
	if plan == "council" {
		p.stages["receipt"] = section{"use": "receipt/strict"}
		p.stages["verify"] = section{"use": "verify/agents"}
	}
	return p
}

func base() *Pipeline {
	return &Pipeline{stages: map[string]section{
		"freeze": {"use": "freeze/workspace"}, "deliver": {"use": "deliver/prompt"}, "invoke": {"use": "invoke/agent"},
		"receipt": {"use": "receipt/lenient"}, "verify": {"use": "verify/none"}, "commit": {"use": "commit/record"}}}
}

const maxFile = 1 << 20

// Load reads a file over the defaults of a plan and checks it against the registry.
func Load(path, plan string, reg kernel.Registry) (*Pipeline, error) {
	b, err := read(path)
	if err != nil {
		return nil, kernel.E("pipeline.Load", kernel.Invalid, err, "pipeline file %s cannot be read", path).WithNext("name another file")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, kernel.E("pipeline.Load", kernel.Internal, err, "pipeline file %s has no place", path)
	}
	p := For(plan)
	p.dir = filepath.Dir(abs)
	f := file{name: path, lines: lines(b)}
	if err := p.parse(b, f); err != nil {
		return nil, err
	}
	for _, kind := range Kinds {
		if err := f.check(reg, kind, p.stages[kind], kind); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func read(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxFile {
		return nil, errors.New("it is no file, or over 1 MiB")
	}
	return os.ReadFile(path)
}

func (p *Pipeline) parse(b []byte, f file) error {
	var m map[string]any
	if err := toml.NewDecoder(bytes.NewReader(b)).Decode(&m); err != nil {
		text := strings.TrimPrefix(err.Error(), "toml: ")
		var d *toml.DecodeError
		if errors.As(err, &d) {
			row, _ := d.Position()
			return kernel.E("pipeline.Load", kernel.Invalid, nil, "%s line %d: %s", f.name, row, text).WithNext("correct the line")
		}
		return kernel.E("pipeline.Load", kernel.Invalid, nil, "%s: %s", f.name, text).WithNext("correct the file")
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if k == "version" {
			if m[k] != int64(1) {
				return f.wrong([]string{k}, "version %v is unknown", m[k]).WithNext("use version = 1")
			}
			continue
		}
		if !slices.Contains(Kinds, k) {
			return f.wrong([]string{k}, "unknown key %q", k).WithNext("did you mean %q?", config.Nearest(k, append([]string{"version"}, Kinds...)))
		}
		t, ok := m[k].(map[string]any)
		if !ok {
			return f.wrong([]string{k}, "%q is not a table", k).WithNext("write [%s] and, below it, use = %q", k, p.stages[k].use())
		}
		if _, ok := t["use"]; !ok {
			t["use"] = p.stages[k].use()
		}
		p.stages[k] = t
	}
	return nil
}

// SetVerify puts the person's commands in place of the verify stage.
func (p *Pipeline) SetVerify(lines []string) error {
	run := make([]any, len(lines))
	for i, l := range lines {
		if strings.TrimSpace(l) == "" {
			return kernel.E("pipeline.SetVerify", kernel.Invalid, nil, "a --verify command is empty").WithNext("name a command, or leave it out")
		}
		run[i] = l
	}
	command := section{"use": "verify/command", "run": run}
	if p.Uses("verify/agents") {
		p.stages["verify"] = section{"use": "verify/all-of", "of": []any{map[string]any(command), map[string]any{"use": "verify/agents"}}}
		return nil
	}
	p.stages["verify"] = command
	return nil
}

// SetCommit puts another commit stage, with its defaults, in place of the one there is.
func (p *Pipeline) SetCommit(use string) {
	if p.stages["commit"].use() != use {
		p.stages["commit"] = section{"use": use}
	}
}

// Uses reports whether a stage is named, also as a part of verify/all-of.
func (p *Pipeline) Uses(id string) bool {
	for _, s := range p.stages {
		if s.use() == id {
			return true
		}
		parts, _ := s["of"].([]any)
		for _, part := range parts {
			if m, _ := part.(map[string]any); m["use"] == id {
				return true
			}
		}
	}
	return false
}

// Stages is the pipeline as a run records it.
func (p *Pipeline) Stages(reg kernel.Registry) (map[string]kernel.StageRef, error) {
	out := map[string]kernel.StageRef{}
	for _, kind := range Kinds {
		s := p.stages[kind]
		node, ok := reg.Lookup(s.use())
		if !ok {
			return nil, kernel.E("pipeline.Stages", kernel.Invalid, nil, "stage %q is unknown", s.use())
		}
		opt, err := p.options(s)
		if err != nil {
			return nil, err
		}
		out[kind] = kernel.StageRef{Use: s.use(), Class: node.Spec().Class.String(), Options: opt}
	}
	return out, nil
}

// Digest names the effective pipeline: two files that mean the same have the same.
func (p *Pipeline) Digest() (kernel.Digest, error) {
	m := map[string]any{}
	for _, kind := range Kinds {
		opt, err := p.options(p.stages[kind])
		if err != nil {
			return kernel.Digest{}, err
		}
		m[kind] = map[string]any{"use": p.stages[kind].use(), "options": opt}
	}
	b, err := kernel.Canonical(m)
	if err != nil {
		return kernel.Digest{}, err
	}
	return kernel.SumDomain("pipeline/1", b), nil
}

// options are what is left of a section without use; nil when that is nothing.
func (p *Pipeline) options(s section) (json.RawMessage, error) {
	rest := map[string]any{}
	for k, v := range s {
		if k != "use" {
			rest[k] = p.resolve(k, v)
		}
	}
	if len(rest) == 0 {
		return nil, nil
	}
	return kernel.Canonical(rest)
}

// resolve looks a command that is a relative path up in the file's folder, also
// in the parts of verify/all-of.
func (p *Pipeline) resolve(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = p.resolve(k, e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = p.resolve("", e)
		}
		if len(out) > 0 && key == "command" {
			if s, ok := out[0].(string); ok && p.dir != "" && strings.ContainsRune(s, '/') && !filepath.IsAbs(s) {
				out[0] = filepath.Join(p.dir, filepath.FromSlash(s))
			}
		}
		return out
	}
	return v
}
