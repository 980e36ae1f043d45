// Package pipeline reads pipeline files: which implementation fills each stage,
// and its options. It is strict: an unknown name, or a stage of another kind, is
// an error that names the line.
package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
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

// Default is the pipeline without a file.
func Default() *Pipeline {
	return &Pipeline{stages: map[string]section{
		"freeze": {"use": "freeze/workspace"}, "deliver": {"use": "deliver/prompt"}, "invoke": {"use": "invoke/agent"},
		"receipt": {"use": "receipt/lenient"}, "verify": {"use": "verify/none"}, "commit": {"use": "commit/record"}}}
}

const maxFile = 1 << 20

// Load reads a file over the defaults and checks it against the registry.
func Load(path string, reg kernel.Registry) (*Pipeline, error) {
	const op = "pipeline.Load"
	fi, err := os.Stat(path)
	if err == nil && (fi.IsDir() || fi.Size() > maxFile) {
		err = errors.New("a folder, or over 1 MiB")
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, kernel.E(op, kernel.Invalid, err, "pipeline file %s cannot be read", path).WithNext("name another file")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p := Default()
	p.dir = filepath.Dir(abs)
	if err := p.parse(b, path); err != nil {
		return nil, err
	}
	return p, p.check(b, path, reg)
}

func (p *Pipeline) parse(b []byte, name string) error {
	const op = "pipeline.Load"
	var m map[string]any
	if err := toml.NewDecoder(bytes.NewReader(b)).Decode(&m); err != nil {
		var d *toml.DecodeError
		if errors.As(err, &d) {
			row, _ := d.Position()
			return kernel.E(op, kernel.Invalid, nil, "%s line %d: %s", name, row, strings.TrimPrefix(d.Error(), "toml: ")).WithNext("correct the line")
		}
		return kernel.E(op, kernel.Invalid, err, "%s", name).WithNext("correct the file")
	}
	if v, ok := m["version"]; ok {
		if n, _ := v.(int64); n != 1 {
			return kernel.E(op, kernel.Invalid, nil, "%s line %d: version %v is unknown", name, line(b, "version"), v).WithNext("use version = 1")
		}
		delete(m, "version")
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		t, ok := m[k].(map[string]any)
		if !slices.Contains(Kinds, k) || !ok {
			return kernel.E(op, kernel.Invalid, nil, "%s line %d: unknown section %q", name, line(b, k), k).
				WithNext("did you mean [%s]?", config.Nearest(k, Kinds))
		}
		if section(t).use() == "" {
			if _, ok := t["use"]; ok {
				return kernel.E(op, kernel.Invalid, nil, "%s line %d: use is not a text", name, line(b, k)).WithNext(`write use = "%s"`, p.stages[k].use())
			}
			t["use"] = p.stages[k].use()
		}
		p.stages[k] = t
	}
	return nil
}

// check looks every implementation up and its options.
func (p *Pipeline) check(src []byte, name string, reg kernel.Registry) error {
	for _, kind := range Kinds {
		if err := p.checkUse(src, name, reg, kind, p.stages[kind]); err != nil {
			return err
		}
		of, _ := p.stages[kind]["of"].([]any)
		for _, o := range of {
			t, ok := o.(map[string]any)
			if !ok {
				return kernel.E("pipeline.check", kernel.Invalid, nil, "%s line %d: of holds something that is no table", name, line(src, "of")).
					WithNext(`write of = [ { use = "verify/command", run = ["…"] } ]`)
			}
			if err := p.checkUse(src, name, reg, kind, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Pipeline) checkUse(src []byte, name string, reg kernel.Registry, kind string, s section) error {
	const op = "pipeline.check"
	use := s.use()
	at := fmt.Sprintf("%s line %d", name, line(src, use))
	node, ok := reg.Lookup(use)
	if !ok {
		var known []string
		for _, sp := range reg.Specs() {
			if strings.HasPrefix(sp.ID, kind+"/") {
				known = append(known, sp.ID)
			}
		}
		return kernel.E(op, kernel.Invalid, nil, "%s: stage %q is unknown", at, use).WithNext("did you mean %q? use one of %s", config.Nearest(use, known), strings.Join(known, ", "))
	}
	if !strings.HasPrefix(use, kind+"/") {
		return kernel.E(op, kernel.Invalid, nil, "%s: %q cannot fill [%s]: it is a stage of another type", at, use, kind).WithNext("use one that begins with %s/", kind)
	}
	var schema struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(node.Spec().Options, &schema); err != nil {
		return err
	}
	for k, v := range s {
		if k == "use" {
			continue
		}
		prop, ok := schema.Properties[k]
		if !ok {
			known := make([]string, 0, len(schema.Properties))
			for n := range schema.Properties {
				known = append(known, n)
			}
			e := kernel.E(op, kernel.Invalid, nil, "%s line %d: %s has no option %q", name, line(src, k), use, k)
			if n := config.Nearest(k, known); n != "" {
				return e.WithNext("did you mean %q?", n)
			}
			return e.WithNext("it has no options")
		}
		if got := typeName(v); got != prop.Type {
			return kernel.E(op, kernel.Invalid, nil, "%s line %d: option %q is a %s, not a %s", name, line(src, k), k, got, prop.Type).WithNext("correct the line")
		}
	}
	for _, r := range schema.Required {
		if _, ok := s[r]; !ok {
			return kernel.E(op, kernel.Invalid, nil, "%s: %s needs the option %q", at, use, r).WithNext("see witan stage list --json")
		}
	}
	return nil
}

func typeName(v any) string {
	switch v.(type) {
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case string:
		return "string"
	case bool:
		return "boolean"
	}
	return "integer"
}

// line finds where a word of the file stands; 1 when it is a default.
func line(src []byte, word string) int {
	for i, l := range bytes.Split(src, []byte("\n")) {
		if bytes.Contains(l, []byte(word)) {
			return i + 1
		}
	}
	return 1
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
	p.stages["verify"] = section{"use": "verify/command", "run": run}
	return nil
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

// options are what is left of a section without use; a command that is a
// relative path is one of the file's folder.
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

func (p *Pipeline) resolve(key string, v any) any {
	switch v := v.(type) {
	case []any:
		out := slices.Clone(v)
		for i := range out {
			if m, ok := out[i].(map[string]any); ok {
				c := map[string]any{}
				for k, e := range m {
					c[k] = p.resolve(k, e)
				}
				out[i] = c
			}
		}
		if first, ok := firstText(out); ok && key == "command" && p.dir != "" && strings.ContainsRune(first, '/') && !filepath.IsAbs(first) {
			out[0] = filepath.Join(p.dir, first)
		}
		return out
	}
	return v
}

func firstText(l []any) (string, bool) {
	if len(l) == 0 {
		return "", false
	}
	s, ok := l[0].(string)
	return s, ok
}

// Show prints the effective pipeline as a file.
func (p *Pipeline) Show(w io.Writer) error {
	if _, err := fmt.Fprintln(w, "version = 1"); err != nil {
		return err
	}
	for _, kind := range Kinds {
		b, err := toml.Marshal(map[string]any(p.stages[kind]))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "\n[%s]\n%s", kind, b); err != nil {
			return err
		}
	}
	return nil
}
