package inspector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"witan/stages/invoke/builtin/work"
)

// data checks that a data file parses. Files among tests may be broken on purpose.
func (s *scan) data(name string, b []byte) {
	if isTest(name) {
		return
	}
	var kind string
	var line int
	var err error
	switch strings.ToLower(path.Ext(name)) {
	case ".json", ".jsonc", ".webmanifest", ".geojson", ".ipynb":
		kind = "JSON"
		line, err = checkJSON(name, b)
	case ".yaml", ".yml":
		kind = "YAML"
		line, err = checkYAML(b)
	case ".toml":
		kind = "TOML"
		line, err = checkTOML(b)
	default:
		return
	}
	switch {
	case errors.Is(err, errDeep):
		s.notes = append(s.notes, fmt.Sprintf("%s is nested too deeply to be checked.", work.Code(name)))
	case err != nil:
		s.add(issue{check: "syntax", severity: "medium", title: "invalid " + kind, detail: err.Error(), path: name, line: line})
	}
}

var (
	errDeep = errors.New("nested too deeply")
	bom     = []byte("\xef\xbb\xbf")
	// generated marks files that a template engine reads first.
	template = regexp.MustCompile(`\{\{|\{%|<%|\$\{\{`)
)

// commented reports whether the readers of this JSON file allow comments.
func commented(name string) bool {
	base := strings.ToLower(path.Base(name))
	ext := path.Ext(base)
	if ext == ".jsonc" || strings.Contains("/"+name, "/.vscode/") || strings.Contains("/"+name, "/.devcontainer/") || strings.Contains("/"+name, "/.zed/") {
		return true
	}
	for _, prefix := range []string{"tsconfig", "jsconfig", "tslint", "typedoc", "api-extractor", "rush"} {
		if strings.HasPrefix(base, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"devcontainer.json", ".eslintrc.json", ".babelrc.json", "babel.config.json", ".swcrc", "turbo.json", "nx.json",
		"project.json", "deno.json", "biome.json", ".jshintrc", ".jscsrc", "language-configuration.json", "renovate.json", "launch.json", "tasks.json",
		"settings.json", "keybindings.json", "angular.json", "wrangler.json", ".hintrc", "firebase.json", "appsettings.json"}, base) ||
		strings.HasPrefix(base, "appsettings.")
}

func checkJSON(name string, b []byte) (line int, err error) {
	src := bytes.TrimPrefix(b, bom)
	if commented(name) {
		src = plainJSON(src)
	}
	var v json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(src))
	first := dec.Decode(&v)
	if first == nil {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return 0, nil
		}
		if jsonLines(src) {
			return 0, nil
		}
	}
	if template.Match(src) {
		return 0, nil
	}
	// Unmarshal gives the offset of the first wrong byte in any case.
	err = json.Unmarshal(src, &v)
	var syntax *json.SyntaxError
	at := len(src)
	if errors.As(err, &syntax) {
		at = int(syntax.Offset) - 1
	}
	if at >= len(src) || strings.Contains(err.Error(), "unexpected end") {
		at = len(bytes.TrimRight(src, " \t\r\n"))
		err = errors.New("the file ends in the middle of a value")
		if at == 0 {
			err = errors.New("the file is empty")
		}
	}
	return lineAt(src, at), err
}

// jsonLines reports whether each line is a JSON value of its own.
func jsonLines(b []byte) bool {
	n := 0
	for l := range bytes.Lines(b) {
		if l = bytes.TrimSpace(l); len(l) > 0 {
			if n++; !json.Valid(l) {
				return false
			}
		}
	}
	return n > 1
}

// plainJSON blanks comments and commas before a closing bracket, and leaves
// every other byte at its place.
func plainJSON(b []byte) []byte {
	out := slices.Clone(b)
	blank := func(i, j int) {
		for ; i < j; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	comma := -1 // a comma with nothing but space after it so far
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(b) && b[i] != '"' && b[i] != '\n'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			i++
		case c == '/' && i+1 < len(b) && b[i+1] == '/':
			j := i + bytes.IndexByte(append(b[i:len(b):len(b)], '\n'), '\n')
			blank(i, j)
			i = j
		case c == '/' && i+1 < len(b) && b[i+1] == '*':
			j := len(b)
			if k := bytes.Index(b[i+2:], []byte("*/")); k >= 0 {
				j = i + 2 + k + 2
			}
			blank(i, j)
			i = j
		case c == ',':
			comma = i
			i++
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
			comma = -1
			i++
		default:
			if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
				comma = -1
			}
			i++
		}
	}
	return out
}

func checkYAML(b []byte) (line int, err error) {
	src := bytes.TrimPrefix(b, bom)
	if work.TooDeep(src) {
		return 0, errDeep
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			if template.Match(src) {
				return 0, nil
			}
			line, text := yamlPlace(src, err)
			return line, errors.New(text)
		}
		if dup := duplicate(&n, 0); dup != nil {
			// YAML has more line ends than editors count.
			return min(dup.Line, lineAt(src, len(src))), fmt.Errorf("key %q is given twice", work.Clip(dup.Value, 80))
		}
	}
}

// duplicate finds a key that its mapping already has.
func duplicate(n *yaml.Node, depth int) *yaml.Node {
	if depth > 1000 {
		return nil
	}
	if n.Kind == yaml.MappingNode {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.Value == "<<" {
				continue
			}
			if key := k.Tag + " " + k.Value; seen[key] {
				return k
			} else {
				seen[key] = true
			}
		}
	}
	for _, c := range n.Content {
		if d := duplicate(c, depth+1); d != nil {
			return d
		}
	}
	return nil
}

func checkTOML(b []byte) (line int, err error) {
	src := bytes.TrimPrefix(b, bom)
	if work.TooDeep(src) {
		return 0, errDeep
	}
	var v map[string]any
	err = toml.Unmarshal(src, &v)
	if err == nil || template.Match(src) {
		return 0, nil
	}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, _ := at.Position()
		return max(line, 1), errors.New(strings.TrimPrefix(at.Error(), "toml: "))
	}
	return 1, errors.New(strings.TrimPrefix(err.Error(), "toml: "))
}
