package inspector

import (
	"bytes"
	"testing"
)

// FuzzContent gives any bytes to every check of content. Each must end, and
// name a line that the file has.
func FuzzContent(f *testing.F) {
	for _, seed := range []string{"", "{", "a: b: c\n", "a = [", "# x\n[y](#z) `[", "<<<<<<< a\n=======\n>>>>>>> b\n", "```\n[x](y)\n```", "[x]: <y", "{\"a\": // x\n1,}",
		"a: &a [*a]\n", "a: !!binary x\n", "---\n---\n...\n", "\t- \"", "[a]\n[a]\n", "a.b.c = {", "x\n===\n", "[0]:<", "?\r?"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		last := 1 + bytes.Count(b, []byte("\n"))
		for kind, check := range map[string]func([]byte) (int, error){
			"JSON": func(b []byte) (int, error) { return checkJSON("a.json", b) }, "JSON with comments": func(b []byte) (int, error) { return checkJSON("a.jsonc", b) },
			"YAML": checkYAML, "TOML": checkTOML,
		} {
			if line, err := check(b); err != nil && err != errDeep && (line < 1 || line > last) {
				t.Errorf("%s: line %d of %d: %v", kind, line, last, err)
			}
		}
		d := parseMarkdown(b)
		if len(d.text) != len(b) {
			t.Errorf("blanking changed %d bytes to %d", len(b), len(d.text))
		}
		for _, l := range d.links {
			if l.line < 1 || l.line > last || l.dest == "" {
				t.Errorf("link %+v of %d lines", l, last)
			}
		}
		s := &scan{docs: map[string]*document{}}
		s.conflicts("a.txt", b)
		s.secrets("a.txt", b)
		for _, i := range s.issues {
			if i.line < 1 || i.line > last {
				t.Errorf("%+v of %d lines", i, last)
			}
		}
	})
}
