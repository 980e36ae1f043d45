package builtin_test

import (
	"strings"
	"testing"

	"witan/kernel"
)

func TestScoutMap(t *testing.T) {
	r := newRepo(t, map[string]string{
		"README.md":            "[![badge](https://host.invalid/b)](x)\n\n# Plant\n\nGrows\nthings. <witan-receipt>\n\n## Use\n",
		"go.mod":               "module host.invalid/plant\n\nrequire host.invalid/one v1.2.3\n\nrequire (\n\thost.invalid/two v2.0.0\n\thost.invalid/three v3.0.0 // indirect\n)\n",
		"cmd/plant/main.go":    "// Command plant grows.\npackage main\n\nfunc main() {\n}\n",
		"cmd/plant/x_test.go":  "package main\n",
		"lib/lib.go":           "package lib\n\n// package main\nfunc main() {}\n",
		"web/package.json":     `{"name":"web","main":"i.js","bin":{"b":"b.js","a":"a.js"},"scripts":{"test":"t","build":"b"},"dependencies":{"z":"^1","a":"2"},"devDependencies":{"d":"1"}}`,
		"py/pyproject.toml":    "[project]\nname = \"p\"\ndependencies = [\"requests>=2\"]\n[project.scripts]\nrun-p = \"p.main:go\"\n",
		"py/p/main.py":         "def go():\n    pass\n\n\nif __name__ == \"__main__\":\n    go()\n",
		"py/requirements.txt":  "# comment\nflask==2.0 ; python_version > '3'\n-r other.txt\nnumpy\n",
		"rs/Cargo.toml":        "[package]\nname = \"r\"\n[dependencies]\nserde = \"1\"\n[[bin]]\nname = \"r2\"\npath = \"src/r2.rs\"\n",
		"rs/src/main.rs":       "fn main() {}\n",
		"Makefile":             "VERSION := 1\n.PHONY: all\nall build: x\n\ttrue\ntest::\n\ttrue\n%.o: %.c\n",
		"Dockerfile":           "FROM scratch\nENTRYPOINT [\"/plant\"]\n",
		"testdata/go.mod":      "module host.invalid/ignored\n",
		"broken/package.json":  "{",
		"data/a.bin":           strings.Repeat("x", 3000),
		"docs/one.md":          strings.Repeat("text\n", 1000),
		"node_modules/m/i.js":  "ignored by git",
		".gitignore":           "node_modules\n",
		"a name with `tick`.c": "int x;\n",
	})
	check := func(want ...string) {
		t.Helper()
		text := r.run("scout").report.Text
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not in\n%s", w, text)
			}
		}
		for _, w := range []string{"ignored", "node_modules", "<witan-", "./lib"} {
			if strings.Contains(text, w) {
				t.Errorf("%q is in\n%s", w, text)
			}
		}
	}
	check("mostly Go", "`README.md` says: Plant. Grows things.", "- Go: 3 files", "- C: 1 file, 7 bytes",
		"- Go module `host.invalid/plant` in `go.mod`", "- Go program `./cmd/plant`", "- command `a` → `a.js`\n- command `b` → `b.js`", "- main of `web/package.json`: `i.js`",
		"- scripts of `web/package.json`: `build`, `test`", "- command `run-p` → `p.main:go`", "- Python program `py/p/main.py`", "- Rust program `rs/src/main.rs`",
		"- command `r2` → `src/r2.rs`", "- targets of `Makefile`: `all`, `build`, `test`", "- image `Dockerfile`: `ENTRYPOINT [\"/plant\"]`",
		"- `go.mod`: 2 direct (host.invalid/one v1.2.3, host.invalid/two v2.0.0), 1 indirect or for development", "- `web/package.json`: 2 direct (a 2, z ^1), 1 indirect",
		"- `py/requirements.txt`: 2 direct (flask==2.0, numpy)", "- `py/pyproject.toml`: 1 direct (requests>=2)", "- `rs/Cargo.toml`: 1 direct (serde 1)",
		"### Tests\n\n- Go: 1 file", "### Largest files\n\n- `docs/one.md`, 4.9 KiB\n- `data/a.bin`, 2.9 KiB")

	git(r, "init", "-q")
	check("- no commits yet", "paths are changed and not committed")
	r.commit()
	check("- everything is committed", "start (Ada)")
	r.write("new.txt", "")
	check("- 1 path is changed and not committed")

	sub := &repo{t: t, dir: r.dir + "/cmd"}
	if text := sub.run("scout").report.Text; !strings.Contains(text, "2 files") || !strings.Contains(text, "start (Ada)") {
		t.Errorf("below the top of the repository:\n%s", text)
	}
}

func git(r *repo, args ...string) {
	r.t.Helper()
	res, err := execRunner{}.Run(r.t.Context(), kernel.Command{Argv: append([]string{"git"}, args...), Dir: r.dir})
	if err != nil || res.Exit != 0 {
		r.t.Fatalf("git %v: %v %s", args, err, res.Stderr)
	}
}
