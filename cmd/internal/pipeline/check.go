package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"witan/cmd/internal/config"
	"witan/kernel"
)

// schema is the part of JSON schema that stages describe their options with.
type schema struct {
	Type       string            `json:"type"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Items      *schema           `json:"items"`
	MinItems   int               `json:"minItems"`
	MinLength  int               `json:"minLength"`
	Pattern    string            `json:"pattern"`
}

// check looks the implementation of a section up, and its options. Path is where
// the section stands: a table of the file, or a part of verify/all-of.
func (f file) check(reg kernel.Registry, kind string, s section, path ...string) error {
	use, ok := s["use"].(string)
	at := append(slices.Clone(path), "use")
	if !ok {
		return f.wrong(at, "use is missing, or no text").WithNext("write use = %q", Default().stages[kind].use())
	}
	node, ok := reg.Lookup(use)
	if !ok {
		known := implementations(reg, kind)
		return f.wrong(at, "stage %q is unknown", use).WithNext("did you mean %q? use one of %s", config.Nearest(use, known), strings.Join(known, ", "))
	}
	if !strings.HasPrefix(use, kind+"/") {
		return f.wrong(at, "%q cannot fill [%s]: it is a stage of another type", use, kind).WithNext("use one of %s", strings.Join(implementations(reg, kind), ", "))
	}
	var sch schema
	if err := json.Unmarshal(node.Spec().Options, &sch); err != nil {
		return kernel.E("pipeline.check", kernel.Internal, err, "the options of %s are described badly", use)
	}
	return f.options(reg, kind, s, sch, path)
}

func implementations(reg kernel.Registry, kind string) []string {
	var out []string
	for _, sp := range reg.Specs() {
		if strings.HasPrefix(sp.ID, kind+"/") {
			out = append(out, sp.ID)
		}
	}
	return out
}

func (f file) options(reg kernel.Registry, kind string, s section, sch schema, path []string) error {
	for _, k := range slices.Sorted(maps.Keys(s)) {
		if k == "use" {
			continue
		}
		at := append(slices.Clone(path), k)
		prop, ok := sch.Properties[k]
		if !ok {
			e := f.wrong(at, "%s has no option %q", s.use(), k)
			if n := config.Nearest(k, slices.Sorted(maps.Keys(sch.Properties))); n != "" {
				return e.WithNext("did you mean %q?", n)
			}
			return e.WithNext("it has no options")
		}
		if err := f.fits(reg, kind, s[k], prop, at); err != nil {
			return err
		}
	}
	for _, k := range sch.Required {
		if _, ok := s[k]; !ok {
			return f.wrong(append(slices.Clone(path), "use"), "%s needs the option %q", s.use(), k).WithNext("see witan stage list --json")
		}
	}
	return nil
}

// fits checks one value of an option. A table that has a use is a stage of its own.
func (f file) fits(reg kernel.Registry, kind string, v any, sch schema, at []string) error {
	if got := typeName(v); sch.Type != "" && got != sch.Type {
		return f.wrong(at, "%s is of type %s, not %s", label(at), got, sch.Type).WithNext("correct the line")
	}
	switch v := v.(type) {
	case string:
		if utf8.RuneCountInString(v) < sch.MinLength {
			return f.wrong(at, "%s is empty", label(at)).WithNext("correct the line")
		}
		if sch.Pattern == "" {
			return nil
		}
		re, err := regexp.Compile(sch.Pattern)
		if err != nil {
			return kernel.E("pipeline.check", kernel.Internal, err, "the options of [%s] are described badly", kind)
		}
		if !re.MatchString(v) {
			return f.wrong(at, "%s cannot be %q", label(at), v).WithNext("see witan stage list --json")
		}
	case []any:
		if len(v) < sch.MinItems {
			return f.wrong(at, "%s is empty", label(at)).WithNext("add an element, or leave the stage out")
		}
		for i, e := range v {
			if sch.Items == nil {
				break
			}
			if err := f.fits(reg, kind, e, *sch.Items, append(slices.Clone(at), strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case map[string]any:
		if _, ok := sch.Properties["use"]; ok {
			return f.check(reg, kind, v, at...)
		}
	}
	return nil
}

// label names an option in an error; the element of a list by its number from 1.
func label(at []string) string {
	last := at[len(at)-1]
	if n, err := strconv.Atoi(last); err == nil && len(at) > 1 {
		return fmt.Sprintf("element %d of option %q", n+1, at[len(at)-2])
	}
	return fmt.Sprintf("option %q", last)
}

// typeName is the JSON schema's name of what TOML read.
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
	case int64:
		return "integer"
	case float64:
		return "number"
	}
	return "date"
}
