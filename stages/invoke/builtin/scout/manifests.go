package scout

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"witan/stages/invoke/builtin/work"
)

// manifest is what one file says about the project.
type manifest struct {
	path    string
	kind    string
	deps    []string // "name version", direct ones, sorted
	dev     int      // further ones, for development only or indirect
	entries []string // ready lines
}

type manifests []manifest

// readers parse manifests by file name. One that cannot be parsed tells
// nothing: that it is broken is for the inspector to say.
var readers = map[string]func(b []byte, m *manifest){
	"go.mod": goMod, "package.json": packageJSON, "pyproject.toml": pyproject, "Cargo.toml": cargo, "requirements.txt": requirements,
}

// maxManifests bounds how many are read.
const maxManifests = 64

func readManifests(f *work.Folder) manifests {
	var ms manifests
	for _, file := range f.Files {
		base := path.Base(file.Path)
		read := readers[base]
		if read == nil || fixture(file.Path) || len(ms) == maxManifests {
			continue
		}
		b, err := f.Read(file.Path)
		if err != nil {
			continue
		}
		m := manifest{path: file.Path, kind: base}
		read(b, &m)
		slices.Sort(m.deps)
		ms = append(ms, m)
	}
	return ms
}

func fixture(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "testdata" || part == "fixtures" || part == "__fixtures__" {
			return true
		}
	}
	return false
}

func (ms manifests) dependencies() []string {
	const most = 12
	var lines []string
	for _, m := range ms {
		if len(m.deps) == 0 && m.dev == 0 {
			continue
		}
		var shown []string
		for _, d := range m.deps[:min(most, len(m.deps))] {
			shown = append(shown, work.Clip(work.Show(d), 80))
		}
		if more := len(m.deps) - most; more > 0 {
			shown = append(shown, fmt.Sprintf("and %d more", more))
		}
		line := fmt.Sprintf("%s: %s direct", work.Code(m.path), fmt.Sprint(len(m.deps)))
		if len(shown) > 0 {
			line += " (" + strings.Join(shown, ", ") + ")"
		}
		if m.dev > 0 {
			line += fmt.Sprintf(", %d indirect or for development", m.dev)
		}
		lines = append(lines, line)
	}
	return lines
}

var goRequire = regexp.MustCompile(`^\s*(?:require\s+)?([^\s()]+\.[^\s()]+)\s+(v[^\s]+)\s*(//\s*indirect)?`)

func goMod(b []byte, m *manifest) {
	block := ""
	for l := range strings.Lines(string(b)) {
		t := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(t, "module "):
			m.entries = append(m.entries, fmt.Sprintf("Go module %s in %s", work.Code(strings.Fields(t)[1]), work.Code(m.path)))
		case strings.HasSuffix(t, "(") && block == "":
			block = strings.Fields(t)[0]
		case t == ")":
			block = ""
		case block == "require" || block == "" && strings.HasPrefix(t, "require "):
			if r := goRequire.FindStringSubmatch(l); r != nil && r[3] == "" {
				m.deps = append(m.deps, r[1]+" "+r[2])
			} else if r != nil {
				m.dev++
			}
		}
	}
}

func packageJSON(b []byte, m *manifest) {
	var p struct {
		Name            string            `json:"name"`
		Main            string            `json:"main"`
		Bin             json.RawMessage   `json:"bin"`
		Scripts         map[string]string `json:"scripts"`
		Dependencies    map[string]string `json:"dependencies"`
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if json.Unmarshal(b, &p) != nil {
		return
	}
	for name, v := range p.Dependencies {
		m.deps = append(m.deps, name+" "+v)
	}
	m.dev = len(p.DevDependencies)
	var one string
	var many map[string]string
	switch {
	case json.Unmarshal(p.Bin, &one) == nil && one != "":
		m.entries = append(m.entries, fmt.Sprintf("command %s → %s", work.Code(p.Name), work.Code(one)))
	case json.Unmarshal(p.Bin, &many) == nil:
		for _, name := range slices.Sorted(maps.Keys(many)) {
			m.entries = append(m.entries, fmt.Sprintf("command %s → %s", work.Code(name), work.Code(many[name])))
		}
	}
	if p.Main != "" {
		m.entries = append(m.entries, fmt.Sprintf("main of %s: %s", work.Code(m.path), work.Code(p.Main)))
	}
	if len(p.Scripts) > 0 {
		m.entries = append(m.entries, fmt.Sprintf("scripts of %s: %s", work.Code(m.path), list(slices.Sorted(maps.Keys(p.Scripts)))))
	}
}

var requirement = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(\[[^\]]*\])?\s*([=<>!~]=?[^;#]*)?`)

func requirements(b []byte, m *manifest) {
	for l := range strings.Lines(string(b)) {
		if r := requirement.FindString(strings.TrimSpace(l)); r != "" {
			m.deps = append(m.deps, strings.TrimSpace(r))
		}
	}
}

func pyproject(b []byte, m *manifest) {
	var p struct {
		Project struct {
			Name         string
			Scripts      map[string]string
			Dependencies []string
			Optional     map[string][]string `toml:"optional-dependencies"`
		}
		Tool struct {
			Poetry struct {
				Name         string
				Scripts      map[string]any
				Dependencies map[string]any
			}
		}
	}
	if !decodeTOML(b, &p) {
		return
	}
	m.deps = append(m.deps, p.Project.Dependencies...)
	for _, name := range slices.Sorted(maps.Keys(p.Tool.Poetry.Dependencies)) {
		if name != "python" {
			m.deps = append(m.deps, name)
		}
	}
	for _, extra := range p.Project.Optional {
		m.dev += len(extra)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Project.Scripts)) {
		m.entries = append(m.entries, fmt.Sprintf("command %s → %s", work.Code(name), work.Code(p.Project.Scripts[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Tool.Poetry.Scripts)) {
		m.entries = append(m.entries, fmt.Sprintf("command %s → %s", work.Code(name), work.Code(fmt.Sprint(p.Tool.Poetry.Scripts[name]))))
	}
}

func cargo(b []byte, m *manifest) {
	var p struct {
		Package struct{ Name string }
		Bin     []struct{ Name, Path string }
		Deps    map[string]any `toml:"dependencies"`
		Dev     map[string]any `toml:"dev-dependencies"`
	}
	if !decodeTOML(b, &p) {
		return
	}
	for name, v := range p.Deps {
		if s, ok := v.(string); ok {
			name += " " + s
		}
		m.deps = append(m.deps, name)
	}
	m.dev = len(p.Dev)
	if p.Package.Name != "" {
		m.entries = append(m.entries, fmt.Sprintf("crate %s in %s", work.Code(p.Package.Name), work.Code(m.path)))
	}
	for _, bin := range p.Bin {
		m.entries = append(m.entries, fmt.Sprintf("command %s → %s", work.Code(bin.Name), work.Code(bin.Path)))
	}
}

func decodeTOML(b []byte, v any) bool {
	return !work.TooDeep(b) && toml.Unmarshal(b, v) == nil
}

// list writes names, the first of them if there are many.
func list(names []string) string {
	const most = 16
	var out []string
	for _, n := range names[:min(most, len(names))] {
		out = append(out, work.Code(work.Clip(n, 60)))
	}
	if more := len(names) - most; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}
