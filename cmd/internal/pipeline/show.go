package pipeline

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"witan/kernel"
)

// Show prints the effective pipeline as a file that loads as the same pipeline,
// from the same folder.
func (p *Pipeline) Show(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("version = 1\n")
	for _, kind := range Kinds {
		fmt.Fprintf(&b, "\n[%s]\n", kind)
		s := p.stages[kind]
		for _, k := range keys(s) {
			fmt.Fprintf(&b, "%s = %s\n", key(k), value(s[k]))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Row is a stage of an effective pipeline.
type Row struct {
	Stage   string         `json:"stage"`
	Use     string         `json:"use"`
	Options map[string]any `json:"options"`
}

// Rows are the stages in order.
func (p *Pipeline) Rows() []Row {
	var out []Row
	for _, kind := range Kinds {
		s := p.stages[kind]
		o := maps.Clone(map[string]any(s))
		delete(o, "use")
		out = append(out, Row{kind, s.use(), o})
	}
	return out
}

// keys are the keys of a table in order, use first.
func keys(m map[string]any) []string {
	out := slices.Sorted(maps.Keys(m))
	if i := slices.Index(out, "use"); i > 0 {
		out = slices.Insert(slices.Delete(out, i, i+1), 0, "use")
	}
	return out
}

const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

func key(k string) string {
	if k == "" || strings.Trim(k, bare) != "" {
		return value(k)
	}
	return k
}

// value writes on one line what options are made of: the escapes of canonical
// JSON strings are TOML's too.
func value(v any) string {
	switch v := v.(type) {
	case string:
		return string(kernel.AppendString(nil, v))
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = value(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, k := range keys(v) {
			parts = append(parts, key(k)+" = "+value(v[k]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return fmt.Sprint(v)
}
