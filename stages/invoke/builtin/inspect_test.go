package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestInspectorRules holds each rule of content against what is and what is
// not a fault. line 0 means that nothing is found.
func TestInspectorRules(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("aB3dE6gH9", 4)
	begin, end := "-----BEGIN EC "+"PRIVATE KEY-----\n", "-----END EC "+"PRIVATE KEY-----\n"
	for _, tt := range []struct {
		name, file, text string
		line             int
	}{
		// Conflicts.
		{"whole conflict", "a.txt", "x\n<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n", 2},
		{"conflict with line ends of Windows", "a.txt", "<<<<<<< a\r\n1\r\n=======\r\n2\r\n>>>>>>> b\r\n", 1},
		{"second start counts", "a.txt", "<<<<<<< a\n<<<<<<< b\n=======\n>>>>>>> c\n", 2},
		{"no end", "a.txt", "<<<<<<< a\n=======\n", 0},
		{"no middle", "a.txt", "<<<<<<< a\n>>>>>>> b\n", 0},
		{"indented", "a.txt", "  <<<<<<< a\n  =======\n  >>>>>>> b\n", 0},
		{"too long", "a.txt", "<<<<<<<< a\n=======\n>>>>>>>> b\n", 0},
		{"Go string", "a.go", "package a\n\nconst x = `\n<<<<<<< a\n=======\n>>>>>>> b\n`\n", 0},
		{"broken Go", "a.go", "package a\n\n<<<<<<< a\nvar x = 1\n=======\nvar x = 2\n>>>>>>> b\n", 3},
		{"conflict in a test", "a_test.py", "<<<<<<< a\nx = 1\n=======\nx = 2\n>>>>>>> b\n", 1},
		{"here-document", "a.sh", "cat <<EOF\n<<<<<<< a\n=======\n>>>>>>> b\nEOF\n", 0},
		{"after a here-document", "a.sh", "cat <<EOF\nEOF\n<<<<<<< a\n=======\n>>>>>>> b\n", 3},
		// Secrets.
		{"token", "a.txt", "x\n" + token + "\n", 2},
		{"token in a test", "a_test.go", "package a\n// " + token + "\n", 0},
		{"token that says it is none", "a.txt", "gh" + "p_" + strings.Repeat("EXAMPLE", 6) + "\n", 0},
		{"key", "a.pem", begin + "MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY\n" + end, 1},
		{"encrypted key", "a.pem", begin + "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04f\n" + end, 1},
		{"key in a string", "a.js", "const k = '" + strings.TrimSpace(begin) + `\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04f` + "';\n", 1},
		{"mention of a key", "a.md", "It starts with " + begin + "and so on, and nothing comprehensible\n", 0},
		{"assigned", "a.yaml", "db:\n  password: \"k9Xw2mQ7pL4vR8tZ\"\n", 2},
		{"assigned a name", "a.go", "package a\n\nconst secretKey = \"WITAN_SECRET_KEY\"\n", 0},
		{"assigned from the environment", "a.py", "api_key = os.environ[\"API_KEY\"]\n", 0},
		{"exported", ".env", "export API_TOKEN=k9Xw2mQ7pL4vR8tZ1aB3\n", 1},
		{"placeholder", ".env", "API_TOKEN=put-your-token-here-please\n", 0},
		{"hash of a lock", "package-lock.json", "{\"token\": \"k9Xw2mQ7pL4vR8tZ1aB3\"}\n", 0},
		// Links.
		{"link", "a.md", "[x](b.md)\n", 1},
		{"link in brackets", "a.md", "[x](<b c.md>)\n", 1},
		{"link with a title", "a.md", "[x](b.md 'title')\n", 1},
		{"link over lines", "a.md", "some [text\nmore](b.md)\n", 2},
		{"picture in a link", "a.md", "[![x](https://host.invalid/x)](b.md)\n", 1},
		{"escaped name", "a.md", "[x](a%2emd) [y](./a.md) [z](../workspace-outside)\n", 0},
		{"code with backticks in it", "a.md", "`` a ` [x](b.md) ``\n", 0},
		{"unclosed code", "a.md", "a ` b [x](b.md)\n\n`\n", 1},
		{"fence in a list", "a.md", "- x\n\n  ```\n  [x](b.md)\n  ```\n", 0},
		{"fence of tildes", "a.md", "~~~\n```\n[x](b.md)\n~~~\n", 0},
		{"after a fence", "a.md", "```\nx\n```\n[x](b.md)\n", 4},
		{"list item", "a.md", "- x\n\n    [x](b.md)\n", 3},
		{"front matter", "a.md", "---\nx: \"[x](b.md)\"\n---\n", 0},
		{"footnote", "a.md", "x[^1]\n\n[^1]: b.md\n", 0},
		{"reference", "a.md", "[x]\n\n[x]: <b.md> \"title\"\n", 3},
		{"heading", "a.md", "# One: `two(a[, b])` & *three*\n\n[x](#one-twoa-b--three) [y](#One) \n", 3},
		{"heading given twice", "a.md", "# X\n# X\n[a](#x) [b](#x-1)\n", 0},
		{"heading given once", "a.md", "# X\n[b](#x-1)\n", 2},
		{"heading with a link", "a.md", "# [`Code`](a.md)\n[b](#code)\n", 0},
		{"named element", "a.md", "<a id='here'></a>\n[b](#here) [c](#user-content-here) [d](#)\n", 0},
		{"line of a source", "a.md", "[b](a.go#L10)\n", 1},
		{"template", "a.md", "[b]({{ url }}) [c](${x}) [d](/root/x)\n", 0},
		// Data.
		{"comments", "a.json", "{\n// x\n}\n", 2},
		{"comments where they are read", ".vscode/a.json", "{\n// \" x\n/* { */ \"a\": \"//\", }\n", 0},
		{"fault where comments are read", "tsconfig.json", "{\n// x\n\"a\": 1 \"b\": 2}\n", 3},
		{"mark of byte order", "a.json", "\xef\xbb\xbf{}\n", 0},
		{"empty", "a.json", "\n", 1},
		{"two values", "a.json", "{}\n\n{\n}\n", 3},
		{"template of JSON", "a.json", "{\"a\": {{ x }}}\n", 0},
		{"notebook", "a.ipynb", "{", 1},
		{"broken in a test", "tests/a.json", "{", 0},
		{"YAML with tags and documents", "a.yaml", "a: !Ref x\n---\nb: !Sub [x]\n", 0},
		{"YAML anchor", "a.yaml", "a: 1\n\nb: *gone\n", 3},
		{"YAML bracket", "a.yaml", "a: 1\nb: [1, 2\nc: 3\n", 2},
		{"YAML quote", "a.yaml", "a: 1\nb: \"x\n", 2},
		{"YAML first line", "a.yaml", "a: b: c\n", 1},
		{"YAML merge twice", "a.yaml", "a: &a {x: 1}\nb:\n  <<: *a\n  <<: *a\n", 0},
		{"YAML second document", "a.yaml", "a: 1\n---\nb: 1\n\tc: 2\n", 4},
		{"TOML given twice", "a.toml", "a = 1\nb = 2\na = 3\n", 3},
		{"TOML cut", "a.toml", "a = 1\nb = \"x\n", 2},
		// Binaries.
		{"program of Windows", "a.dat", "MZ" + strings.Repeat("\x00", 58) + "\x40\x00\x00\x00PE\x00\x00", 1},
		{"text that begins like one", "a.txt", "MZ is how it begins\n", 0},
		{"picture", "a.png", "\x89PNG\r\n\x1a\n\x00\x00", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := []string{}
			if tt.line > 0 {
				want = append(want, fmt.Sprintf("%s:%d", tt.file, tt.line))
			}
			got := newRepo(t, map[string]string{tt.file: tt.text}).run("inspector").findings()
			if !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
		})
	}
}
