package scout

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"witan/stages/invoke/builtin/work"
)

type language struct {
	name  string
	files int
	bytes int64
}

// byExtension names what a file is written in. Data and pictures are not here:
// the map is about what people write.
var byExtension = map[string]string{
	".go": "Go", ".py": "Python", ".pyi": "Python", ".js": "JavaScript", ".mjs": "JavaScript", ".cjs": "JavaScript", ".jsx": "JavaScript",
	".ts": "TypeScript", ".mts": "TypeScript", ".cts": "TypeScript", ".tsx": "TypeScript", ".rs": "Rust", ".c": "C", ".h": "C",
	".cc": "C++", ".cpp": "C++", ".cxx": "C++", ".hpp": "C++", ".hh": "C++", ".cs": "C#", ".java": "Java", ".kt": "Kotlin", ".kts": "Kotlin",
	".scala": "Scala", ".groovy": "Groovy", ".swift": "Swift", ".m": "Objective-C", ".mm": "Objective-C", ".rb": "Ruby", ".php": "PHP",
	".pl": "Perl", ".pm": "Perl", ".lua": "Lua", ".r": "R", ".jl": "Julia", ".dart": "Dart", ".ex": "Elixir", ".exs": "Elixir", ".erl": "Erlang",
	".hs": "Haskell", ".ml": "OCaml", ".mli": "OCaml", ".fs": "F#", ".clj": "Clojure", ".cljs": "Clojure", ".elm": "Elm", ".zig": "Zig", ".nim": "Nim",
	".sh": "Shell", ".bash": "Shell", ".zsh": "Shell", ".fish": "Shell", ".ps1": "PowerShell", ".bat": "Batch", ".sql": "SQL",
	".html": "HTML", ".htm": "HTML", ".css": "CSS", ".scss": "CSS", ".sass": "CSS", ".less": "CSS", ".vue": "Vue", ".svelte": "Svelte",
	".md": "Markdown", ".markdown": "Markdown", ".rst": "reStructuredText", ".adoc": "AsciiDoc", ".tex": "TeX",
	".yaml": "YAML", ".yml": "YAML", ".toml": "TOML", ".json": "JSON", ".xml": "XML", ".proto": "Protocol Buffers", ".graphql": "GraphQL",
	".tf": "Terraform", ".nix": "Nix", ".cmake": "CMake", ".s": "Assembly", ".asm": "Assembly", ".f90": "Fortran", ".v": "Verilog", ".vhd": "VHDL",
}

var byName = map[string]string{"makefile": "Make", "gnumakefile": "Make", "dockerfile": "Dockerfile", "containerfile": "Dockerfile",
	"cmakelists.txt": "CMake", "rakefile": "Ruby", "gemfile": "Ruby", "justfile": "Just"}

// prose and data say little about a project; they come after code of any size.
var prose = []string{"Markdown", "reStructuredText", "AsciiDoc", "TeX", "YAML", "TOML", "JSON", "XML", "HTML", "CSS"}

func languages(f *work.Folder) []language {
	sum := map[string]*language{}
	for _, file := range f.Files {
		name := languageOf(file.Path)
		if name == "" {
			continue
		}
		if sum[name] == nil {
			sum[name] = &language{name: name}
		}
		sum[name].files++
		sum[name].bytes += file.Size
	}
	var out []language
	for _, l := range sum {
		out = append(out, *l)
	}
	rank := func(l language) int {
		if slices.Contains(prose, l.name) {
			return 1
		}
		return 0
	}
	slices.SortFunc(out, func(a, b language) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.bytes, a.bytes), strings.Compare(a.name, b.name))
	})
	return out
}

func languageOf(name string) string {
	base := strings.ToLower(path.Base(name))
	if l := byName[base]; l != "" {
		return l
	}
	if strings.HasPrefix(base, "dockerfile.") {
		return "Dockerfile"
	}
	return byExtension[path.Ext(base)]
}

func languageLines(langs []language) []string {
	const most = 12
	var lines []string
	for _, l := range langs[:min(most, len(langs))] {
		lines = append(lines, fmt.Sprintf("%s: %s, %s", l.name, work.Count(l.files, "file", "files"), work.Bytes(l.bytes)))
	}
	if more := len(langs) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// testKinds say by name what a test file is, in the order they are shown.
var testKinds = []struct {
	name  string
	match func(base string) bool
}{
	{"Go", func(b string) bool { return strings.HasSuffix(b, "_test.go") }},
	{"JavaScript or TypeScript", func(b string) bool {
		switch path.Ext(b) {
		case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx":
			stem := strings.TrimSuffix(b, path.Ext(b))
			return strings.HasSuffix(stem, ".test") || strings.HasSuffix(stem, ".spec")
		}
		return false
	}},
	{"Python", func(b string) bool {
		return path.Ext(b) == ".py" && (strings.HasPrefix(b, "test_") || strings.HasSuffix(b, "_test.py"))
	}},
	{"Ruby", func(b string) bool { return strings.HasSuffix(b, "_spec.rb") || strings.HasSuffix(b, "_test.rb") }},
	{"Java or Kotlin", func(b string) bool { return strings.HasSuffix(b, "Test.java") || strings.HasSuffix(b, "Test.kt") }},
	{"testscript", func(b string) bool { return path.Ext(b) == ".txtar" }},
}

func tests(f *work.Folder) []string {
	counts := make([]int, len(testKinds))
	for _, file := range f.Files {
		for i, k := range testKinds {
			if k.match(path.Base(file.Path)) {
				counts[i]++
			}
		}
	}
	var lines []string
	for i, n := range counts {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", testKinds[i].name, work.Count(n, "file", "files")))
		}
	}
	if lines == nil {
		lines = []string{"no test files found"}
	}
	return lines
}
