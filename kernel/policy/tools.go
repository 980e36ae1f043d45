package policy

import (
	"slices"
	"strings"
)

// tool is a program that builds, tests or checks a project.
type tool struct {
	subs    []string // the first operands it may have; nil = any that is no refused word
	refuse  []string // options that make it run or load something else
	refuses string   // why, when a subcommand is not among subs
}

// words of targets, goals and scripts that reach further than the workspace.
var farWords = map[string]string{
	"publish": publishes, "deploy": publishes, "release": publishes, "upload": publishes, "push": publishes, "ship": publishes,
	"install": installs, "uninstall": installs, "commit": "unknown_command",
}

var anyTool = tool{}

var tools = map[string]tool{
	"go": {subs: []string{"build", "test", "vet", "run", "generate", "fmt", "list", "version", "doc", "mod", "env", "tool", "fix", "help", "clean"},
		refuse: []string{"-toolexec", "-exec", "-overlay", "-vettool", "-modcache", "-w", "-u"}, refuses: installs},
	"cargo": {subs: []string{"build", "b", "test", "t", "check", "c", "clippy", "fmt", "run", "r", "doc", "bench", "tree", "metadata", "version", "nextest", "clean"},
		refuse: []string{"--config"}, refuses: installs},
	"npm":  {subs: nodeSubs, refuse: nodeRefuse, refuses: installs},
	"pnpm": {subs: nodeSubs, refuse: nodeRefuse, refuses: installs},
	"yarn": {subs: nodeSubs, refuse: nodeRefuse, refuses: installs},
	"bun":  {subs: nodeSubs, refuse: nodeRefuse, refuses: installs},
	"make": make_, "gmake": make_, "ninja": anyTool, "just": anyTool, "task": anyTool, "cmake": anyTool, "ctest": anyTool, "meson": anyTool,
	"mvn": anyTool, "mvnw": anyTool, "gradle": anyTool, "gradlew": anyTool, "sbt": anyTool,
	"dotnet": {subs: []string{"build", "test", "run", "format", "clean", "--version", "--info"}, refuses: installs},
	"swift":  {subs: []string{"build", "test", "run"}, refuses: installs},
	"zig":    {subs: []string{"build", "test", "fmt", "version"}, refuses: installs},
	"bazel":  {subs: []string{"build", "test", "query"}, refuses: "unknown_command"},
	"rake":   anyTool, "mix": {subs: []string{"compile", "test", "format"}, refuses: installs},
	"pytest": anyTool, "tox": anyTool, "nox": anyTool, "mypy": anyTool, "ruff": anyTool, "black": anyTool, "flake8": anyTool, "pylint": anyTool,
	"isort": anyTool, "coverage": anyTool, "pyright": anyTool, "jest": anyTool, "vitest": anyTool, "mocha": anyTool, "tsc": anyTool, "eslint": anyTool,
	"prettier": anyTool, "rustc": anyTool, "rustfmt": anyTool, "gofmt": anyTool, "goimports": anyTool, "staticcheck": anyTool, "golangci-lint": anyTool,
	"gcc": cc, "g++": cc, "cc": cc, "c++": cc, "clang": cc, "clang++": cc, "clang-format": anyTool, "ar": anyTool, "javac": anyTool,
	"shellcheck": anyTool, "shfmt": anyTool, "phpunit": anyTool, "rspec": anyTool, "rubocop": anyTool,
}

var (
	nodeSubs   = []string{"test", "t", "run", "run-script", "start", "build", "lint", "ls", "list", "--version", "-v"}
	nodeRefuse = []string{"--prefix", "--script-shell", "--node-options", "--globalconfig", "--userconfig", "-g", "--global"}
	make_      = tool{refuse: []string{"--eval", "-E"}}
	cc         = tool{refuse: []string{"-wrapper", "-fplugin", "-specs"}}
)

// local are the tools that npx finds in the project.
var local = []string{"tsc", "eslint", "jest", "vitest", "mocha", "prettier"}

func (l *line) tool(t tool, args []word) {
	l.what.raise(changes, "", "")
	ops := plainOperands(args)
	if t.subs != nil && (len(args) == 0 || !slices.Contains(t.subs, args[0].text)) {
		l.doubt(t.refuses)
		l.hunt(args)
	}
	if len(ops) > 1 && (ops[0].text == "run" || ops[0].text == "tool") && slices.ContainsFunc(ops[1:], func(a word) bool { return strings.Contains(a.text, "@") }) {
		l.doubt(installs) // a version: it is downloaded first
	}
	for _, a := range args {
		l.toolArgument(t, a)
	}
}

func (l *line) toolArgument(t tool, a word) {
	if t.refused(a.text) {
		l.doubt(notUnderstood)
	}
	if !strings.HasPrefix(a.text, "-") {
		if name, _, ok := strings.Cut(a.text, "="); ok && isName(strings.TrimRight(name, ":?+")) {
			l.doubt("changes_environment") // make SHELL=…
		}
		if why := far(a.text); why != "" {
			l.doubt(why)
		}
	}
	how := writes
	if strings.HasPrefix(a.text, "-I/") || strings.HasPrefix(a.text, "-L/") {
		how = reads
	}
	l.operands([]word{a}, how)
}

// refused reports whether an argument is an option of the tool's refused ones.
func (t tool) refused(arg string) bool {
	flag, _, _ := strings.Cut(arg, "=")
	return slices.ContainsFunc(t.refuse, func(r string) bool {
		return flag == r || flag == "-"+r || len(flag) > 3 && strings.HasPrefix(flag, "--") && strings.HasPrefix(r, flag)
	})
}

// far says why a target, goal or script reaches further than the workspace.
func far(name string) string {
	if strings.ContainsAny(name, "/.") {
		return ""
	}
	for _, part := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune(":-_", r) }) {
		if why := farWords[part]; why != "" {
			return why
		}
	}
	return ""
}

// pyModules are what python -m may run.
var pyModules = []string{"pytest", "unittest", "compileall", "py_compile", "mypy", "black", "ruff", "json.tool", "coverage", "flake8", "pylint", "isort", "doctest", "tabnanny"}

// interpreter runs a script of the project; code in the arguments or from a
// pipe is not examined.
func interpreter(l *line, args []word, piped bool) {
	for i, a := range args {
		t := a.text
		switch {
		case !a.literal() || t == "-":
			l.input(piped)
			return
		case slices.Contains([]string{"--version", "-V", "-version"}, t):
			return
		case slices.Contains([]string{"-u", "-B", "-O", "-s", "-w", "--test", "--check"}, t):
		case t == "-m" && i+1 < len(args) && slices.Contains(pyModules, args[i+1].text):
			l.tool(anyTool, args[i+2:])
			return
		case t == "-m" && i+1 < len(args) && args[i+1].text == "pip":
			l.doubt(installs)
			return
		case strings.HasPrefix(t, "-"):
			l.doubt("runs_inline_code")
			l.hunt(args)
			return
		default:
			l.script(t, args[i+1:])
			return
		}
	}
	if slices.ContainsFunc(args, func(a word) bool { return a.text == "--test" }) {
		l.what.raise(changes, "", "")
		return
	}
	l.input(piped)
}

// packages guards package managers, whose subcommand "version" commits.
func packages(name string) func(*line, []word, bool) {
	return func(l *line, args []word, _ bool) {
		if len(args) > 1 && args[0].text == "version" {
			l.what.raise(commits, agentsCommit, "")
		}
		if len(args) > 0 && (args[0].text == "publish" || args[0].text == "deploy") {
			l.doubt(publishes)
		}
		l.tool(tools[name], args)
	}
}

func otherVCS(name string) func(*line, []word, bool) {
	return func(l *line, args []word, _ bool) {
		ops := plainOperands(args)
		if len(ops) > 0 && slices.Contains(committers[name], ops[0].text) {
			l.what.raise(commits, agentsCommit, "")
		}
		l.doubt("unknown_command")
		l.hunt(args)
	}
}

// source runs a script of the project in the same shell.
func source(l *line, args []word, _ bool) {
	if len(args) == 0 || !args[0].literal() {
		l.doubt(notUnderstood)
		return
	}
	l.script(args[0].text, args[1:])
}

func export(l *line, args []word, _ bool) {
	if len(args) == 0 {
		l.doubt("shows_environment")
	}
	for _, a := range args {
		l.assign(a)
	}
}

func tee(l *line, args []word, piped bool) { edit(l, args, piped) }

// special gives the examination of programs that need one of their own, or nil.
func special(name string) func(*line, []word, bool) {
	switch name {
	case "cd":
		return cd
	case "git":
		return git
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "fish":
		return shell
	case "find":
		return find
	case "mkdir", "touch", "cp", "ln", "gzip", "gunzip":
		return edit
	case "tee":
		return tee
	case "rm", "rmdir", "unlink":
		return remove
	case "mv":
		return move
	case "chmod":
		return chmod
	case "tar":
		return archive
	case "curl":
		return download
	case "wget":
		return wget
	case "python", "python3", "node", "ruby", "perl", "php", "lua":
		return interpreter
	case "npm", "pnpm", "yarn", "bun":
		return packages(name)
	case "hg", "svn", "jj", "sl", "fossil":
		return otherVCS(name)
	case "source", ".":
		return source
	case "export":
		return export
	}
	return nil
}
