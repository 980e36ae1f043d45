package policy

import (
	"slices"
	"strings"
)

// wrappers run another program. The value lists their options that take a word.
var wrappers = map[string][]string{
	"command": nil, "exec": nil, "nohup": nil, "time": nil, "nice": {"-n", "--adjustment"}, "stdbuf": {"-i", "-o", "-e"},
	"timeout": {"-s", "-k", "--signal", "--kill-after"}, "env": nil,
	"xargs":  {"-n", "-P", "-L", "-I", "-d", "-s", "-E", "--max-args", "--max-procs", "--max-lines", "--delimiter"},
	"bundle": nil, "npx": nil, "bunx": nil, "uv": nil, "poetry": nil, "pipenv": nil,
}

// flagsOf are the options of wrappers that change nothing that matters here.
var flagsOf = map[string][]string{
	"time": {"-p"}, "timeout": {"--preserve-status", "--foreground", "-v", "--verbose"}, "env": {"-i", "-"},
	"xargs": {"-0", "-r", "-t", "--null", "--no-run-if-empty", "--verbose"},
}

// wrapped examines what a wrapper runs.
func (l *line) wrapped(name string, args []word, piped bool) {
	if l.wraps++; l.wraps > maxScripts {
		l.doubt(notUnderstood)
		l.hunt(args)
		return
	}
	i := 0
	for ; i < len(args); i++ {
		t := args[i].text
		if name == "env" && args[i].assign {
			l.assign(args[i])
			continue
		}
		if name == "command" && (t == "-v" || t == "-V") {
			return // only says where it is
		}
		if !strings.HasPrefix(t, "-") {
			break
		}
		long, _, attached := strings.Cut(t, "=")
		short := t[:min(2, len(t))]
		switch {
		case slices.Contains(flagsOf[name], t):
		case slices.Contains(wrappers[name], t):
			i++
		case slices.Contains(wrappers[name], long) && attached || t != "--" && slices.Contains(wrappers[name], short):
		default:
			l.doubt(notUnderstood)
			l.hunt(args)
			return
		}
	}
	rest := args[min(i, len(args)):]
	switch name {
	case "timeout":
		if len(rest) > 0 {
			rest = rest[1:]
		}
	case "bundle":
		rest = l.after("exec", rest)
	case "uv", "poetry", "pipenv":
		rest = l.after("run", rest)
	case "npx", "bunx":
		// Only what projects have in their own folder: others are downloaded.
		if len(rest) == 0 || !slices.Contains(local, rest[0].text) {
			l.doubt("installs_packages")
			l.hunt(rest)
			return
		}
	case "xargs":
		l.unseen(rest)
		return
	case "env":
		if len(rest) == 0 {
			l.doubt("shows_environment")
		}
	}
	if len(rest) > 0 {
		l.run(rest, piped)
	}
}

// after gives what follows the one subcommand that only runs a program.
func (l *line) after(sub string, args []word) []word {
	if len(args) > 1 && args[0].text == sub && !strings.HasPrefix(args[1].text, "-") {
		return args[1:]
	}
	l.doubt("installs_packages")
	l.hunt(args)
	return nil
}

// unseen examines a program that gets further operands from elsewhere: one that
// only reads may have them.
func (l *line) unseen(words []word) {
	if len(words) == 0 {
		return // xargs alone prints
	}
	if !slices.Contains(readers, base(words[0].text)) {
		l.doubt("unseen_operands")
		if l.wraps++; l.wraps < maxScripts {
			l.run(words, true)
		}
		l.hunt(words)
		return
	}
	l.run(words, true)
}

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"}, name)
}

// shell is sh and its kind: a script of the project, or one in the arguments.
func shell(l *line, args []word, piped bool) {
	for i, a := range args {
		t := a.text
		switch {
		case strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") && strings.HasSuffix(t, "c") && strings.Trim(t[1:], "celux") == "":
			if i+1 >= len(args) || !args[i+1].literal() {
				l.doubt(notUnderstood)
				l.hunt(args[i+1:])
				return
			}
			if len(args) > i+2 {
				l.doubt(notUnderstood) // its own parameters
				l.hunt(args[i+1:])
			}
			l.nested(args[i+1].text)
			return
		case len(t) > 1 && strings.HasPrefix(t, "-") && strings.Trim(t[1:], "eux") == "":
		case strings.HasPrefix(t, "-") || !a.literal():
			l.doubt(notUnderstood)
			l.hunt(args)
			return
		default:
			l.script(t, args[i+1:])
			return
		}
	}
	l.input(piped)
}

// input is an interpreter without a script: it runs what it reads.
func (l *line) input(piped bool) {
	if piped {
		l.doubt("runs_piped_code")
		return
	}
	l.doubt("runs_inline_code")
}

// find may run programs and delete; what it finds is not known here.
func find(l *line, args []word, _ bool) {
	for i := 0; i < len(args); i++ {
		switch t := args[i].text; t {
		case "-delete":
			l.doubt(destructive)
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && args[end].text != ";" && args[end].text != "+" {
				end++
			}
			l.unseen(args[i+1 : end])
			i = end
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			l.doubt(notUnderstood)
		case "-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-wholename":
			if i++; i < len(args) && (secret(args[i].text) || couldBeSecret(args[i].text)) {
				l.where.raise(doubtful, sensitive, args[i].text)
			}
		default:
			l.operands(args[i:i+1], reads)
		}
	}
}
