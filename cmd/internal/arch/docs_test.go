package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDependenciesPage compares docs/dependencies.md with go.mod.
func TestDependenciesPage(t *testing.T) {
	required, _, _ := strings.Cut(read(t, "go.mod"), "// indirect")
	required = required[:strings.LastIndex(required, "require (")]
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(required, -1) {
		want = append(want, m[1])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\|").FindAllStringSubmatch(read(t, "docs/dependencies.md"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(want, got) {
		t.Errorf("go.mod requires %q\nthe page has    %q", want, got)
	}
}

// TestReasonsPage checks that docs/cli.md lists every reason and notice code
// that product code writes down.
func TestReasonsPage(t *testing.T) {
	files, err := loadModule("../../..")
	if err != nil {
		t.Fatal(err)
	}
	page, ships, found := read(t, "docs/cli.md"), product(files), 0
	for _, f := range files {
		if !ships(f) || within(f.pkg, "kernel/kerneltest") {
			continue
		}
		codes, err := codesIn(read(t, f.name))
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		for _, c := range codes {
			found++
			if !strings.Contains(page, fmt.Sprintf("| `%s` |", c)) {
				t.Errorf("%s: %q has no row in docs/cli.md", f.name, c)
			}
		}
	}
	if found == 0 {
		t.Error("found no code at all, so this shows nothing")
	}
}

var code = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

// codesIn returns the string literals given to fields Reason and Code, and
// those of constants and variables whose names begin so.
func codesIn(src string) ([]string, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var codes []string
	add := func(name string, value ast.Expr) {
		lit, ok := value.(*ast.BasicLit)
		name = strings.ToLower(name)
		if !ok || lit.Kind != token.STRING || !strings.HasPrefix(name, "reason") && !strings.HasPrefix(name, "code") {
			return
		}
		if s, err := strconv.Unquote(lit.Value); err == nil && code.MatchString(s) {
			codes = append(codes, s)
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				add(key.Name, n.Value)
			}
		case *ast.AssignStmt:
			for i := range min(len(n.Lhs), len(n.Rhs)) {
				switch left := n.Lhs[i].(type) {
				case *ast.Ident:
					add(left.Name, n.Rhs[i])
				case *ast.SelectorExpr:
					add(left.Sel.Name, n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i := range min(len(n.Names), len(n.Values)) {
				add(n.Names[i].Name, n.Values[i])
			}
		}
		return true
	})
	return codes, nil
}

func TestCodesIn(t *testing.T) {
	got, err := codesIn(`package p
		const ReasonGone = "host_gone"
		const Other = "not_this"
		var f = T{Reason: "no_space", Text: "not_this_either", Code: "late_response", Code: x, Reason: "not a code"}
		func g() { reason := "silent"; f.Status, f.Reason = "not", "stalled" }`)
	if want := []string{"host_gone", "no_space", "late_response", "silent", "stalled"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}
