package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// file is what the rules look at in one Go file.
type file struct {
	name    string   // slash path from the module root
	pkg     string   // import path below the module; "" for the root
	test    bool     // a _test.go file
	imports []string // import paths
	uses    []string // selectors of packages, as "import/path.Name"
}

// loadModule parses every Go file below root. Folders that the go tool ignores
// (testdata, those with a leading dot or underscore) are left out.
func loadModule(root string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if p != root && (base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parseFile(filepath.ToSlash(rel), src)
		files = append(files, f)
		return err
	})
	return files, err
}

func parseFile(name string, src []byte) (file, error) {
	f := file{name: name, test: strings.HasSuffix(name, "_test.go")}
	if dir := path.Dir(name); dir != "." {
		f.pkg = dir
	}
	tree, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		return f, fmt.Errorf("%s: %w", name, err)
	}
	local := map[string]string{} // name in this file → import path
	for _, spec := range tree.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, err
		}
		f.imports = append(f.imports, imp)
		local[path.Base(imp)] = imp
		if spec.Name != nil {
			delete(local, path.Base(imp))
			local[spec.Name.Name] = imp
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && local[x.Name] != "" {
				f.uses = append(f.uses, local[x.Name]+"."+sel.Sel.Name)
			}
		}
		return true
	})
	return f, nil
}
