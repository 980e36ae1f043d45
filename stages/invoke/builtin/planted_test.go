package builtin_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "which faults are planted")

// fault is something wrong that plant puts into a repository; it returns where
// it must be found. needs is a program without which nobody can find it.
type fault struct {
	name  string
	agent string // who finds it
	needs string
	plant func(r *repo, rnd *rand.Rand) string
}

// key is made at run time, so that no key stands in this file.
func key(rnd *rand.Rand, prefix, alphabet string, n int) string {
	b := []byte(prefix)
	for range n {
		b = append(b, alphabet[rnd.IntN(len(alphabet))])
	}
	return string(b)
}

const alnum = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"

// anywhere are faults of every repository. Each has files of its own, so that
// any set of them can be planted.
var anywhere = []fault{
	{"conflict", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		n := 1 + rnd.IntN(6)
		r.insert("notes.txt", n, "<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> topic")
		return fmt.Sprintf("notes.txt:%d", n)
	}},
	{"conflict of three", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.insert("docs/guide.md", 3, "<<<<<<< ours\na\n||||||| base\nb\n=======\nc\n>>>>>>> theirs")
		return "docs/guide.md:3"
	}},
	{"GitHub token", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		n := 1 + rnd.IntN(3)
		r.insert("deploy.env", n, "UPLOAD="+key(rnd, "gh"+"p_", alnum, 36))
		return fmt.Sprintf("deploy.env:%d", n)
	}},
	{"AWS key", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("infra/main.tf", "provider \"aws\" {\n  access_key = \""+key(rnd, "AK"+"IA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)+"\"\n}\n")
		return "infra/main.tf:2"
	}},
	{"private key", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("certs/server.pem", "-----BEGIN RSA "+"PRIVATE KEY-----\n"+key(rnd, "", alnum, 64)+"\n-----END RSA "+"PRIVATE KEY-----\n")
		return "certs/server.pem:1"
	}},
	{"broken link", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		n := 3 + rnd.IntN(3)
		r.insert("README.md", n, fmt.Sprintf("See [the design](docs/missing-%d.md \"title\").", rnd.IntN(100)))
		return fmt.Sprintf("README.md:%d", n)
	}},
	{"broken anchor", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("docs/more.md", "# More\n\nText.\n\nBack to [the guide](guide.md#no-such-part).\n")
		return "docs/more.md:5"
	}},
	{"broken picture", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("docs/pictures.md", "# Pictures\n\n![a picture](img/none.png)\n")
		return "docs/pictures.md:3"
	}},
	{"broken reference", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("docs/refs.md", "# Refs\n\nA [word][w].\n\n[w]: ../gone/file.txt\n")
		return "docs/refs.md:5"
	}},
	{"JSON", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("config/app.json", "{\n  \"a\": 1,\n  \"b\": [1, 2,],\n  \"c\": 3\n}\n")
		return "config/app.json:3"
	}},
	{"cut JSON", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("config/cut.json", "{\n  \"a\": 1,\n  \"b\": {\n")
		return "config/cut.json:3"
	}},
	{"YAML", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("config/ci.yaml", "on: push\njobs:\n  build:\n    steps:\n      - run: a\n     - run: b\n")
		return "config/ci.yaml:6"
	}},
	{"YAML tab", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("config/tab.yml", "a: 1\nb:\n\tc: 2\n")
		return "config/tab.yml:3"
	}},
	{"YAML duplicate", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("config/twice.yml", "name: a\nother: b\nname: c\n")
		return "config/twice.yml:3"
	}},
	{"TOML", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("config/app.toml", "title = \"x\"\n\n[server]\nport = 80 80\n")
		return "config/app.toml:4"
	}},
	{"oversized", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("data/big.csv", strings.Repeat("1,2,3\n", 5<<20/6+1+rnd.IntN(1000)))
		return "data/big.csv:1"
	}},
	{"binary", "inspector", "", func(r *repo, rnd *rand.Rand) string {
		r.write("tools/helper", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		return "tools/helper:1"
	}},
}

// common are files of every repository: clean, and full of what is nearly wrong.
var common = map[string]string{
	"README.md": "A Title\n=======\n\nSee [guide](docs/guide.md), [part](docs/guide.md#second-part), [here](#a-title),\n[web](https://host.invalid/x), ![logo](docs/logo.svg), `[code](nowhere.md)`.\n\n" +
		"```\n[in a block](nowhere.md)\n<<<<<<< HEAD\n=======\n>>>>>>> x\n```\n\n    [indented](nowhere.md)\n\n<!-- [comment](nowhere.md) -->\n\\[not a link](nowhere.md)\n[mail](mailto:a@host.invalid) [outside](../../issues) [generated](docs/guide) [query](docs/guide.md?raw=1)\n",
	"docs/guide.md":         "# Guide\n\nText.\n\n## Second part\n\nUnderlined\n-------\n\n[up](../README.md#a-title) [self](#underlined) <a name=\"x-1\"></a> [named](#x-1)\n\n- item\n\n      [in an item's block is fine](../README.md)\n",
	"docs/logo.svg":         "<svg/>\n",
	"notes.txt":             "one\ntwo\n=======\nthree\n<<<<<<< not the start of one\nfour\nfive\n",
	"deploy.env":            "# TOKEN=your-token-here\nAPI_KEY=changeme\nPASSWORD=${PASSWORD}\nREGION=eu\n",
	"config/ok.json":        "{\"a\": [1, 2.5e3], \"b\": null}\n",
	"config/lines.json":     "{\"a\": 1}\n{\"a\": 2}\n",
	"tsconfig.json":         "{\n  // comments are fine here\n  \"compilerOptions\": {\"strict\": true,},\n}\n",
	"config/ok.yaml":        "a: &x {b: 1}\nc: *x\n---\nd: |\n  text\n",
	"charts/deploy.yaml":    "{{- if .Values.on }}\nkind: {{ .Values.kind }}\n{{- end }}\n",
	"config/ok.toml":        "a = 1\n[b]\nc = \"x\"\n",
	"testdata/bad.json":     "{",
	"testdata/conflict.txt": "<<<<<<< a\n=======\n>>>>>>> b\n",
	".gitignore":            "ignored/\n",
	"ignored/bad.json":      "{",
}

var goFiles = map[string]string{
	"go.mod":           "module host.invalid/plant\n\ngo 1.22\n",
	"main.go":          "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(Add(1, 2))\n}\n",
	"add.go":           "package main\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n",
	"add_test.go":      "package main\n\nimport \"testing\"\n\nconst merge = `\n<<<<<<< HEAD\n=======\n>>>>>>> x\n`\n\nfunc TestAdd(t *testing.T) {\n\tt.Log(len(merge))\n\tif Add(1, 2) != 3 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
	"sub/sub.go":       "package sub\n\n// N is a number.\nconst N = 1\n",
	"sub/sub_test.go":  "package sub\n\nimport \"testing\"\n\nfunc TestN(t *testing.T) {\n\tif N != 1 {\n\t\tt.Fatal(N)\n\t}\n}\n",
	"cmd/tool/main.go": "package main\n\nfunc main() {}\n",
}

var goFaults = []fault{
	{"vet", "inspector", "go", func(r *repo, rnd *rand.Rand) string {
		r.write("printing/p.go", "package printing\n\nimport \"fmt\"\n\n// P prints.\nfunc P(s string) {\n\tfmt.Printf(\"%d\\n\", s)\n}\n")
		return "printing/p.go:7"
	}},
	{"build", "inspector", "go", func(r *repo, rnd *rand.Rand) string {
		r.write("broken/b.go", "package broken\n\n// B is wrong.\nfunc B() int {\n\treturn missing\n}\n")
		return "broken/b.go:5"
	}},
	{"failing test", "runner", "go", func(r *repo, rnd *rand.Rand) string {
		r.write("one/one_test.go", "package one\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tt.Log(\"before\")\n\tt.Errorf(\"got %d\", 1)\n}\n")
		return "one/one_test.go:7"
	}},
	{"failing subtest", "runner", "go", func(r *repo, rnd *rand.Rand) string {
		r.write("two/two_test.go", "package two\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tt.Run(\"good\", func(t *testing.T) {})\n\tt.Run(\"bad\", func(t *testing.T) {\n\t\tt.Fatal(\"no\")\n\t})\n}\n")
		return "two/two_test.go:8"
	}},
	{"panicking test", "runner", "go", func(r *repo, rnd *rand.Rand) string {
		r.write("three/three_test.go", "package three\n\nimport \"testing\"\n\nfunc TestThree(t *testing.T) {\n\tvar m map[string]int\n\tm[t.Name()] = 1\n}\n")
		return "three/three_test.go:7"
	}},
}

var nodeFiles = map[string]string{
	"package.json":     "{\n  \"name\": \"plant\",\n  \"version\": \"1.0.0\",\n  \"main\": \"index.js\",\n  \"scripts\": {\"test\": \"node --test\"}\n}\n",
	"index.js":         "#!/usr/bin/env node\nconst fs = require('fs');\nmodule.exports = (a, b) => a + b;\nreturn;\n",
	"lib/mod.mjs":      "import fs from 'node:fs';\nexport default await Promise.resolve(fs ? 1 : 2);\n",
	"lib/esm.js":       "export const a = 1;\n",
	"lib/text.js":      "module.exports = `\n<<<<<<< HEAD\n=======\n>>>>>>> x\n`;\n",
	"test/add.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\nconst add = require('../index.js');\n\ntest('adds', () => {\n  assert.strictEqual(add(1, 2), 3);\n});\n",
}

var nodeFaults = []fault{
	{"syntax", "inspector", "node", func(r *repo, rnd *rand.Rand) string {
		r.write("lib/broken.js", "const a = 1;\n\nfunction f( {\n  return a;\n}\n")
		return "lib/broken.js:4"
	}},
	{"module syntax", "inspector", "node", func(r *repo, rnd *rand.Rand) string {
		r.write("lib/broken.mjs", "export const a = 1;\nexport const a = 2;\n")
		return "lib/broken.mjs:2"
	}},
	{"failing test", "runner", "npm", func(r *repo, rnd *rand.Rand) string {
		r.write("test/one.test.js", "const test = require('node:test');\nconst assert = require('node:assert');\n\ntest('one', () => {\n  assert.strictEqual(1, 2);\n});\n")
		return "test/one.test.js:5"
	}},
	{"failing nested test", "runner", "npm", func(r *repo, rnd *rand.Rand) string {
		r.write("test/two.test.mjs", "import { describe, it } from 'node:test';\n\ndescribe('two', () => {\n  it('good', () => {});\n  it('bad', async () => {\n    await Promise.resolve();\n    throw new Error('no');\n  });\n});\n")
		return "test/two.test.mjs:7"
	}},
}

var pythonFiles = map[string]string{
	"pyproject.toml":    "[project]\nname = \"plant\"\nversion = \"1.0\"\nrequires-python = \">=3.8\"\n",
	"plant/__init__.py": "",
	"plant/add.py":      "def add(a, b):\n    return a + b\n\n\nTEXT = \"\"\"\n<<<<<<< HEAD\n=======\n>>>>>>> x\n\"\"\"\n",
	"tests/test_add.py": "import unittest\n\nfrom plant.add import add\n\n\nclass AddTest(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
	"main.py":           "from plant.add import add\n\nif __name__ == \"__main__\":\n    print(add(1, 2))\n",
}

var pythonFaults = []fault{
	{"syntax", "inspector", "python3", func(r *repo, rnd *rand.Rand) string {
		r.write("plant/broken.py", "def f():\n    return 1\n\n\ndef g(:\n    return 2\n")
		return "plant/broken.py:5"
	}},
	{"failing test", "runner", "python3", func(r *repo, rnd *rand.Rand) string {
		r.write("tests/test_one.py", "import unittest\n\n\nclass OneTest(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(1, 2)\n")
		return "tests/test_one.py:6"
	}},
	{"test with an error", "runner", "python3", func(r *repo, rnd *rand.Rand) string {
		r.write("tests/test_two.py", "import unittest\n\nfrom plant.add import add\n\n\nclass TwoTest(unittest.TestCase):\n    def test_two(self):\n        add(1, None)\n")
		return "tests/test_two.py:8"
	}},
}

// TestPlantedFaults plants a random set of faults and expects the findings of
// all agents together to be that set, with nothing on the clean repository.
func TestPlantedFaults(t *testing.T) {
	t.Logf("to plant the same: -seed %d", *seed)
	for i, kind := range []struct {
		name   string
		files  map[string]string
		faults []fault
	}{{"go", goFiles, goFaults}, {"node", nodeFiles, nodeFaults}, {"python", pythonFiles, pythonFaults}} {
		for _, clean := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/clean=%v", kind.name, clean), func(t *testing.T) {
				r := newRepo(t, common)
				for name, text := range kind.files {
					r.write(name, text)
				}
				want := []string{}
				if !clean {
					want = plant(r, rand.New(rand.NewPCG(*seed, uint64(i))), append(slices.Clone(anywhere), kind.faults...))
				}
				r.commit()
				before := r.state()
				got := []string{}
				for _, id := range []string{"scout", "inspector", "runner"} {
					out := r.run(kernel.AgentID(id))
					got = append(got, out.findings()...)
					t.Logf("%s\n%s", id, out.report.Text)
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("found %v\nplanted %v", got, want)
				}
				if r.state() != before {
					t.Error("the workspace changed")
				}
			})
		}
	}
}

// plant puts each fault in with even chance, at least three of them.
func plant(r *repo, rnd *rand.Rand, faults []fault) []string {
	var want []string
	rnd.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for i, f := range faults {
		if i >= 3 && rnd.IntN(2) == 0 {
			continue
		}
		if f.needs != "" && work.Find(f.needs) == "" {
			r.t.Logf("%s is not here, so %q is not planted", f.needs, f.name)
			continue
		}
		place := f.plant(r, rnd)
		r.t.Logf("planted %s at %s", f.name, place)
		want = append(want, place)
	}
	slices.Sort(want)
	return want
}
