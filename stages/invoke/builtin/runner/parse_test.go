package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// noRunner has no programs at all.
type noRunner struct{}

func (noRunner) Run(context.Context, kernel.Command) (kernel.CommandResult, error) {
	return kernel.CommandResult{}, kernel.E("test.Run", kernel.NotFound, nil, "no programs")
}

// folder makes a workspace with these empty files, but for those with content.
func folder(t *testing.T, files ...string) *work.Folder {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		name, text, _ := strings.Cut(f, "=")
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := work.Open(t.Context(), dir, noRunner{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		dir   string
		parse func(places, string) []failure
		out   string
		want  []string
	}{
		{"pytest", []string{"tests/test_a.py", "src/a.py"}, ".", parsePython, `F.E                                      [100%]
=================================== FAILURES ===================================
____________________________ TestA.test_one[x y] _____________________________

    def test_one():
>       assert f() == 2
E       assert 1 == 2

tests/test_a.py:7: AssertionError
___________________________________ test_two ___________________________________

    def test_two():
>       f()

tests/test_a.py:12: 
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

>       1 / 0
E       ZeroDivisionError: division by zero

src/a.py:3: ZeroDivisionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_one - assert 1 == 2
`, []string{"tests/test_a.py:7 TestA.test_one[x y]: assert 1 == 2", "tests/test_a.py:12 test_two: ZeroDivisionError: division by zero"}},
		{"unittest in a folder", []string{"p/tests/test_a.py"}, "p", parsePython, `F
======================================================================
FAIL: test_x (tests.test_a.A.test_x) (i=1)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "ROOT/p/tests/test_a.py", line 5, in test_x
    self.assertEqual(1, 2)
  File "/usr/lib/python3/unittest/case.py", line 9, in assertEqual
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 1 test in 0.000s
`, []string{"p/tests/test_a.py:5 test_x (tests.test_a.A.test_x) (i=1): AssertionError: 1 != 2"}},
		{"unittest that cannot import", []string{"test_a.py"}, ".", parsePython, `======================================================================
ERROR: test_a (unittest.loader._FailedTest)
----------------------------------------------------------------------
ImportError: Failed to import test module: test_a
Traceback (most recent call last):
  File "ROOT/test_a.py", line 3
    def f(
SyntaxError: '(' was never closed
`, []string{"test_a.py:3 test_a (unittest.loader._FailedTest): SyntaxError: '(' was never closed build"}},
		{"jest", []string{"src/a.test.js", "src/a.js", "node_modules/x/i.js"}, ".", parseNode, `FAIL src/a.test.js
  ● adds › two

    expect(received).toBe(expected)

      at Object.toBe (src/a.test.js:8:13)
      at new Promise (<anonymous>)

  ● adds › three

    TypeError: no

      at x (node_modules/x/i.js:1:1)
      at f (src/a.js:2:9)
      at Object.<anonymous> (src/a.test.js:12:5)
`, []string{"src/a.test.js:8 a.test.js: expect(received).toBe(expected)", "src/a.test.js:12 a.test.js: TypeError: no"}},
		{"spec reporter", []string{"test/a.mjs"}, ".", parseNode, `✖ failing tests:

test at test/a.mjs:4:1
✖ x (1ms)
  Error: no
      at TestContext.<anonymous> (file://ROOT/test/a.mjs:5:9)
      at Test.run (node:internal/test_runner/test:1:1)
`, []string{"test/a.mjs:5 a.mjs: Error: no"}},
		{"TAP", []string{"a.test.js", "package.json"}, ".", parseNode, `TAP version 13
# Subtest: outer
    # Subtest: inner
    not ok 1 - inner
      ---
      location: 'ROOT/a.test.js:4:3'
      failureType: 'testTimeoutFailure'
      error: |-
        too slow
      ...
    1..1
not ok 1 - outer
  ---
  failureType: 'subtestsFailed'
  ...
not ok 2 - later # TODO
  ---
  ...
not ok 3 - nowhere
  ---
  error: 'lost'
  ...
`, []string{"a.test.js:4 inner: too slow", "package.json:1 nowhere: lost"}},
		{"file that throws", []string{"a.test.js", "lib.js"}, ".", parseNode, `# ROOT/lib.js:3
# const a = ;
#           ^
# SyntaxError: Unexpected token ';'
#     at wrapSafe (node:internal/modules/cjs/loader:1:1)
# Subtest: ROOT/a.test.js
not ok 1 - ROOT/a.test.js
  ---
  failureType: 'testCodeFailure'
  error: 'test failed'
  ...
`, []string{"lib.js:3 a.test.js: SyntaxError: Unexpected token ';' build"}},
		{"cargo", []string{"src/lib.rs", "tests/t.rs"}, ".", parseCargo, `error[E0425]: cannot find value
 --> src/lib.rs:4:5
---- tests::one stdout ----

thread 'tests::one' (12) panicked at src/lib.rs:9:9:
assertion failed
---- two stdout ----
thread 'two' panicked at 'no', tests/t.rs:3:5
`, []string{"src/lib.rs:4 : cannot find value build", "src/lib.rs:9 tests::one: ", "tests/t.rs:3 two: "}},
		{"go", []string{"m/go.mod=module host.invalid/m\n", "m/a/a_test.go=func TestQuiet(t *testing.T) {}\n", "m/a/help.go", "m/b/b.go"}, "m", parseGo, `--- FAIL: TestA (0.00s)
    help.go:7: first
    a_test.go:9: second
--- FAIL: TestQuiet (0.00s)
--- FAIL: TestP (0.00s)
panic: boom [recovered]
	panic: boom

goroutine 7 [running]:
testing.tRunner.func1.2({0x1, 0x2})
	/usr/lib/go/src/testing/testing.go:1 +0x1
host.invalid/m/b.F(...)
	ROOT/m/b/b.go:3
host.invalid/m/a.TestP(0x1)
	ROOT/m/a/a_test.go:20 +0x1d
FAIL	host.invalid/m/a	0.01s
# host.invalid/m/b
b/b.go:5:2: undefined: x
FAIL	host.invalid/m/b [build failed]
ok  	host.invalid/m/c	0.01s
FAIL
`, []string{"m/a/help.go:7 TestA: first", "m/a/a_test.go:1 TestQuiet: ", "m/a/a_test.go:20 TestP: panic: boom [recovered]", "m/b/b.go:5 : undefined: x build"}},
		{"nothing", nil, ".", parseGo, "signal: killed\n", nil},
		{"places outside", []string{"a_test.py"}, ".", parsePython, "======================================================================\nFAIL: x\n  File \"/etc/passwd\", line 3, in x\n  File \"ROOT/../a_test.py\", line 4, in x\n", []string{"a_test.py:1 x: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := folder(t, tt.files...)
			root := filepath.Join(t.TempDir(), "copy")
			var got []string
			for _, x := range tt.parse(places{f: f, root: root, dir: tt.dir}, strings.ReplaceAll(tt.out, "ROOT", root)) {
				line := fmt.Sprintf("%s:%d %s: %s", x.path, x.line, x.name, x.message)
				if x.build {
					line += " build"
				}
				got = append(got, line)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name   string
		files  []string
		pytest bool
		want   []string // command lines, or the beginning of the note
		needs  string
	}{
		{"nothing", []string{"a.txt"}, false, nil, ""},
		{"go without tests", []string{"go.mod", "a.go"}, false, nil, ""},
		{"go with tests in testdata only", []string{"go.mod", "testdata/a_test.go"}, false, nil, ""},
		{"go", []string{"go.mod", "a/a_test.go"}, false, []string{". go test ./..."}, "go"},
		{"node without a test", []string{`package.json={"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`}, false, nil, ""},
		{"node script", []string{`package.json={"scripts":{"test":"x"}}`}, false, []string{". npm test --silent"}, "npm"},
		{"node files", []string{"package.json={}", "a.test.js"}, false, []string{". node --test"}, "node"},
		{"node without its dependencies", []string{`package.json={"dependencies":{"x":"1"}}`, "a.test.js"}, false,
			[]string{"The tests of `package.json` were not run: its dependencies are not installed (npm install)."}, "node"},
		{"node with its dependencies", []string{`package.json={"dependencies":{"x":"1"}}`, "a.test.js", "node_modules/x/index.js"}, false, []string{". node --test"}, "node"},
		{"broken manifest", []string{"package.json={", "a.test.js"}, false, []string{"The tests of `package.json` were not run: the file is not valid JSON."}, ""},
		{"pytest", []string{"pyproject.toml", "tests/test_a.py"}, true, []string{". python3 -m pytest -q"}, "python3"},
		{"unittest", []string{"test_a.py"}, false, []string{". python3 -m unittest"}, "python3"},
		{"unittest in a folder", []string{"setup.py", "tests/test_a.py"}, false, []string{". python3 -m unittest discover -s tests"}, "python3"},
		{"unittest in a package", []string{"setup.py", "tests/__init__.py", "tests/test_a.py"}, false, []string{". python3 -m unittest"}, "python3"},
		{"cargo without tests", []string{"Cargo.toml", "src/lib.rs"}, false, nil, ""},
		{"cargo", []string{"Cargo.toml", "src/lib.rs=#[test]"}, false, []string{". cargo test"}, "cargo"},
		{"make", []string{"Makefile=all: x\n\ncheck test: all\n\ttrue\n"}, false, []string{". make test"}, "make"},
		{"make without one", []string{"Makefile=all: x\n\ttest -e x\ntested:\n"}, false, nil, ""},
		{"make comes last", []string{"Makefile=test:\n", "go.mod", "a_test.go"}, false, []string{". go test ./..."}, "go"},
		{"two at the top", []string{"go.mod", "a_test.go", "package.json={}", "a.test.js"}, false, []string{". go test ./...", ". node --test"}, "go"},
		{"below the top", []string{"x/go.mod", "x/a_test.go", "y/z/package.json={}", "y/z/a.test.js", "a/b/c/go.mod", "a/b/c/c_test.go"}, false,
			[]string{"x go test ./...", "y/z node --test"}, "go"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.needs != "" && work.Find(tt.needs) == "" {
				tt.want = nil // then the note says what is missing, which is tested below
			}
			suites, notes := find(folder(t, tt.files...), func(...string) bool { return tt.pytest })
			var got []string
			for _, s := range suites {
				got = append(got, s.dir+" "+s.shown)
			}
			if tt.needs != "" && work.Find(tt.needs) == "" {
				if len(notes) != 1 || !strings.Contains(notes[0], "not installed") {
					t.Errorf("notes %q", notes)
				}
				return
			}
			if got = append(got, notes...); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMissingTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, notes := find(folder(t, "go.mod", "a_test.go", "package.json={}", "a.test.js", "setup.py", "test_a.py", "Cargo.toml", "src/lib.rs=#[test]"), nil)
	if len(notes) != 4 {
		t.Fatalf("notes %q", notes)
	}
	for i, tool := range []string{"Go", "node", "Python", "Cargo"} {
		if !strings.Contains(notes[i], "need "+tool+", which is not installed") {
			t.Errorf("%s: %q", tool, notes[i])
		}
	}
}

func TestScrub(t *testing.T) {
	c := &copied{base: "/state/runner-1", root: "/state/runner-1/copy"}
	for in, want := range map[string]string{
		"/state/runner-1/copy/a_test.go:3":                 "a_test.go:3",
		"cd /state/runner-1/copy && x /state/runner-1/tmp": "cd . && x …/tmp",
		"--- FAIL: TestA (0.01s)":                          "--- FAIL: TestA (_)",
		"ok  \thost.invalid/m\t1.234s":                     "ok   host.invalid/m _",
		"Ran 3 tests in 0.001s":                            "Ran 3 tests in _",
		"  duration_ms: 12.5":                              "  duration_ms: _",
		"# duration_ms 66.369757":                          "# duration_ms _",
		"x +0x1d at 0xc000123456":                          "x +0x1d at 0x_",
		"\x1b[31mred":                                      `\x1b[31mred`,
		"took 3s":                                          "took 3s",
	} {
		if got := c.scrub(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
