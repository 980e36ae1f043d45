package markdown_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"witan/ui/markdown"
	"witan/ui/uitest"
)

// outline writes blocks in a short form.
func outline(bs []markdown.Block) string {
	var out []string
	for _, b := range bs {
		s := []string{"P", fmt.Sprintf("H%d", b.Level), "C(" + b.Lang + ")", "T", "R"}[b.Kind]
		if b.Depth > 0 || b.Quote > 0 {
			s += fmt.Sprintf("@%d/%d", b.Depth, b.Quote)
		}
		if b.Marker != "" {
			s += b.Marker
		}
		if b.Task != markdown.NoTask {
			s += []string{"", "[ ]", "[x]"}[b.Task]
		}
		out = append(out, s+" "+strings.ReplaceAll(strings.TrimSuffix(b.Text(), "\n"), "\n", "|"))
	}
	return strings.Join(out, "\n")
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"nothing", "", ""},
		{"a paragraph", "one\ntwo", "P one two"},
		{"a hard break", "one  \ntwo", "P one|two"},
		{"headings", "# A\n\n### B *c*", "H1 A\nH3 B c"},
		{"lists", "- a\n  - b\n\n    more\n- c", "P@1/0• a\nP@2/0• b\nP@2/0 more\nP@1/0• c"},
		{"numbers go on from the first", "7. a\n1. b", "P@1/07. a\nP@1/08. b"},
		{"an empty item", "-\n- b", "P@1/0• \nP@1/0• b"},
		{"tasks", "- [x] done\n- [ ] open", "P@1/0•[x] done\nP@1/0•[ ] open"},
		{"quotes", "> a\n>\n> > b", "P@0/1 a\nP@0/2 b"},
		{"code", "```go\nx := 1\n\n\ty\n```", "C(go) x := 1||    y"},
		{"an unclosed fence", "text\n\n```\ncode", "P text\nC() code"},
		{"indented code", "    a\n    b", "C() a|b"},
		{"a table", "|a|b|\n|-|-:|\n|1|2|", "T a\tb|1\t2"},
		{"a rule", "a\n\n---\n\nb", "P a\nR \nP b"},
		{"HTML is shown, not obeyed", "<script>alert(1)</script>\n\na <b>c</b>", "C(html) <script>alert(1)</script>\nP a <b>c</b>"},
		{"terminal escapes", "a\x1b[31mred\x1b[0m\x1b]0;title\x07b", "P aredb"},
		{"bidirectional controls", "a\u202eb", "P a⟨U+202E⟩b"},
		{"bytes that are no text", "a\xff\xfeb", "P a\uFFFD\uFFFDb"},
	}
	for _, tt := range tests {
		if got := outline(markdown.Parse(tt.src)); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	b := markdown.Parse("a *b* **c** `d` ~~e~~ [f](g) ![h](i) <https://j>")[0]
	want := []markdown.Span{{Text: "a "}, {Text: "b", Emph: true}, {Text: " "}, {Text: "c", Strong: true}, {Text: " "}, {Text: "d", Code: true}, {Text: " "},
		{Text: "e", Strike: true}, {Text: " "}, {Text: "f", Link: "g"}, {Text: " "}, {Text: "h", Link: "i", Image: true}, {Text: " "}, {Text: "https://j", Link: "https://j"}}
	if !reflect.DeepEqual(b.Spans, want) {
		t.Errorf("got  %+v\nwant %+v", b.Spans, want)
	}
}

// classes writes code with its coloured pieces in brackets.
func classes(lines [][]markdown.Token) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('|')
		}
		for _, t := range l {
			if t.Class == markdown.Plain {
				b.WriteString(t.Text)
				continue
			}
			fmt.Fprintf(&b, "%c[%s]", "_kSnCNTarh"[t.Class], t.Text)
		}
	}
	return b.String()
}

func TestHighlight(t *testing.T) {
	t.Parallel()
	tests := []struct{ lang, src, want string }{
		{"go", "func f(x int) string { return \"a\\\"b\" } // y", `k[func] N[f](x T[int]) T[string] { k[return] S["a\"b"] } C[// y]`},
		{"golang", "x := `a\nb` + 0x1F", "x := S[`a]|S[b`] + n[0x1F]"},
		{"c", "/* a\nb */ int c;", "C[/* a]|C[b */] T[int] c;"},
		{"python", "def f():\n    return '''a\n#b''' # c", "k[def] N[f]():|    k[return] S['''a]|S[#b'''] C[# c]"},
		{"json", `{"a": [1, true, "b"]}`, `{N["a"]: [n[1], k[true], S["b"]]}`},
		{"yaml", "a-b: 'c' # d\ne: f#g", "N[a-b]: S['c'] C[# d]|N[e]: f#g"},
		{"toml", "[a]\nb = 2", "[a]|N[b] = n[2]"},
		{"sql", "SELECT a FROM b -- c", "k[SELECT] a k[FROM] b C[-- c]"},
		{"sh", "if [ \"$a\" ]; then b; fi", `k[if] [ S["$a"] ]; k[then] b; k[fi]`},
		{"html", `<a href="b">c</a><!-- d -->`, `k[<a] href=S["b"]k[>]ck[</a>]C[<!-- d -->]`},
		{"ts", "const a: string = `b`", "k[const] a: T[string] = S[`b`]"},
		{"rust", "fn f<'a>(s: &'a str) {}", "k[fn] f<'a>(s: &'a T[str]) {}"},
		{"go", "\"no end\nx", `S["no end]|x`},
		{"c", "/* no end\nx", "C[/* no end]|C[x]"},
		{"diff", "@@ -1 +1 @@\n-a\n+b\n c", "h[@@ -1 +1 @@]|r[-a]|a[+b]| c"},
		{"", "func x", "func x"},
		{"no such language", "a\n\nif", "a||if"},
	}
	for _, tt := range tests {
		if got := classes(markdown.Highlight(tt.lang, tt.src)); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.lang, got, tt.want)
		}
	}
}

// TestHighlightKeepsText colours text in every language: only tabs may change.
func TestHighlightKeepsText(t *testing.T) {
	t.Parallel()
	src := uitest.Markdown + "\n\\ \"\\\n' `\n/* <!-- \"\"\" é 漢 0x1.e+9_ -- # // x(y) <a"
	for _, lang := range []string{"go", "python", "javascript", "typescript", "c", "cpp", "java", "csharp", "kotlin", "swift", "rust", "php", "ruby", "lua", "bash", "sql", "json", "yaml", "toml", "css", "html", "make", "dockerfile", "diff"} {
		var got []string
		for _, l := range markdown.Highlight(lang, src) {
			line := ""
			for _, tok := range l {
				line += tok.Text
			}
			got = append(got, line)
		}
		want := strings.ReplaceAll(strings.ReplaceAll(src, "\t\t", "        "), "\t", "    ")
		if strings.Join(got, "\n") != want {
			t.Errorf("%s changed the text to %q", lang, strings.Join(got, "\n"))
		}
	}
}

// TestStreamIsParse cuts texts at every place: what a stream shows at the end is
// what a parser shows of the whole, and on the way it must not lose text.
func TestStreamIsParse(t *testing.T) {
	t.Parallel()
	for _, src := range []string{uitest.Markdown, "a\n\nb\n\n- c\n\n  d\n- e\n\nf", "# x\n```\na\n\nb\n```\n\nlast", strings.Repeat("para\n\n", 50), "[a][1]\n\ntext\n\n[1]: https://example.org\n\nend"} {
		for step := 1; step < 9; step += 3 {
			var s markdown.Stream
			var got []markdown.Block
			for n := 0; n < len(src); n += step {
				end := min(n+step, len(src))
				for end < len(src) && !utf8.RuneStart(src[end]) {
					end++
				}
				got = s.Update(src[:end])
			}
			want := markdown.Parse(src)
			if a, b := outline(got), outline(want); a != b && !strings.Contains(src, "]: ") {
				t.Errorf("in steps of %d: got\n%s\nwant\n%s", step, a, b)
			}
			if len(got) != len(want) {
				t.Errorf("in steps of %d: %d blocks, want %d", step, len(got), len(want))
			}
		}
	}
}

// TestStreamCost streams a long text in small pieces: blocks that are finished are
// not parsed again, so the cost is far from the square of the length.
func TestStreamCost(t *testing.T) {
	t.Parallel()
	var s markdown.Stream
	src := strings.Repeat("A paragraph of some words that goes on for a line.\n\n", 400)
	for n := 16; n < len(src); n += 16 {
		s.Update(src[:n])
	}
	if limit := 12 * len(src); s.Parsed() > limit {
		t.Errorf("%d bytes were parsed for a text of %d", s.Parsed(), len(src))
	}
	if got := s.Update("something else"); outline(got) != "P something else" {
		t.Errorf("another text gives %s", outline(got))
	}
}

// TestHugeInput bounds what is kept to be drawn.
func TestHugeInput(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("|a|b|\n|-|-|\n")
	for table.Len() < 600<<10 {
		table.WriteString("|some cell|another cell|\n")
	}
	for name, src := range map[string]string{"one line": strings.Repeat("x", 12<<20), "a table": table.String(), "lines": strings.Repeat("y\n\n", 1<<20),
		"code": "```\n" + strings.Repeat("z\n", 600<<10), "nesting": strings.Repeat("> ", 3000) + "deep", "lists": strings.Repeat("- ", 2000) + "deep"} {
		kept, cut := 0, 0
		for _, b := range markdown.Parse(src) {
			kept += len(b.Text())
			cut += b.Cut
		}
		if kept > 1<<20 {
			t.Errorf("%s: %d bytes are kept", name, kept)
		}
		if len(src) > 3<<20 && cut == 0 {
			t.Errorf("%s: nothing was cut, and nothing says so", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(uitest.Markdown, 7)
	f.Add("- a\n\n1. b\n\t> c\n```x\n", 3)
	f.Fuzz(func(t *testing.T, src string, at int) {
		var s markdown.Stream
		if at > 0 && at < len(src) {
			s.Update(src[:at])
		}
		s.Update(src)
		for _, b := range markdown.Parse(src) {
			if !utf8.ValidString(b.Text()) || strings.ContainsRune(b.Text(), '\x1b') {
				t.Errorf("%q gives %q", src, b.Text())
			}
		}
	})
}
