package policy

import (
	"path"
	"slices"
	"strings"
)

// line is a command line under examination.
type line struct {
	*operation
	dirs  []string // where it may be: a cd that fails leaves it where it was
	depth int
}

// command examines a whole command: each of its parts has to be allowed.
func (o *operation) command(text string) {
	text = text[:min(len(text), maxExamined)]
	o.feeds = strings.Contains(text, "xargs")
	dir := o.r.Workspace
	if o.r.Op.Dir != "" {
		dir = o.abs(o.r.Op.Dir, o.r.Workspace)
		o.touch(dir, reads)
	}
	(&line{operation: o, dirs: []string{dir}}).read(text)
}

const (
	notUnderstood = "not_understood"
	maxScripts    = 64             // inside of one command
	maxExamined   = 2 * maxCommand // of a command that is too long anyway
)

func (l *line) doubt(why string) { l.what.raise(doubtful, why, "") }

func (l *line) read(text string) {
	c := scan(text, l.depth)
	if c.odd || l.depth > maxDepth {
		l.doubt(notUnderstood)
	}
	for _, s := range c.segs {
		l.segment(s)
	}
	if len(c.segs) == 0 && !c.odd {
		l.doubt("unknown_target")
	}
}

func (l *line) segment(s segment) {
	for _, r := range s.redirects {
		switch {
		case !r.to.literal():
			l.doubt(notUnderstood)
			l.path(r.to.text, writes)
		case strings.HasSuffix(r.op, "<"):
			l.path(r.to.text, reads)
		default:
			if r.to.text != "/dev/null" {
				l.what.raise(changes, "", "")
			}
			l.path(r.to.text, writes)
		}
	}
	for _, w := range s.assigns {
		l.assign(w)
	}
	if len(s.words) > 0 {
		l.run(s.words, s.piped)
	}
}

// safeVars change how tools talk, not what they run.
var safeVars = []string{"CI", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM", "COLUMNS", "LANG", "TZ", "DEBUG", "VERBOSE", "RUST_BACKTRACE", "RUST_LOG",
	"CGO_ENABLED", "GOOS", "GOARCH", "GOMAXPROCS", "NODE_ENV", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}

func (l *line) assign(w word) {
	name, value, _ := strings.Cut(w.text, "=")
	if !w.literal() || !slices.Contains(safeVars, name) && !strings.HasPrefix(name, "LC_") {
		l.doubt("changes_environment")
	}
	l.path(value, reads)
}

// path examines one path of the line, wherever the line may be by then.
func (l *line) path(p string, how use) {
	for _, dir := range l.dirs {
		l.touch(l.abs(p, dir), how)
	}
}

func base(name string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/"))), ".exe")
}

var binFolders = []string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}

// run examines one program and its arguments. piped: it reads what another one
// writes.
func (l *line) run(words []word, piped bool) {
	first, args := words[0], words[1:]
	name := base(first.text)
	l.record(words)
	if !first.literal() || first.text == "" {
		l.doubt(notUnderstood)
		l.hunt(words)
		if first.vars && len(args) > 0 && args[0].text == "commit" { // $(which git) commit
			l.what.raise(commits, agentsCommit, "")
		}
		return
	}
	if dir := path.Dir(first.text); strings.Contains(first.text, "/") && !slices.Contains(binFolders, dir) {
		l.script(first.text, args)
		if name == "git" {
			l.hunt(words)
		}
		if name != "gradlew" && name != "mvnw" {
			return
		}
	}
	if _, ok := wrappers[name]; ok {
		l.wrapped(name, args, piped)
		return
	}
	if why, ok := risky[name]; ok {
		l.doubt(why)
		l.hunt(args)
		return
	}
	if f := special(name); f != nil {
		f(l, args, piped)
		return
	}
	if t, ok := tools[name]; ok {
		l.tool(t, args)
		return
	}
	if slices.Contains(readers, name) {
		l.reader(name, args)
		return
	}
	l.doubt("unknown_command")
	l.hunt(args)
}

// record keeps a program and its arguments for the deny rules.
func (l *line) record(words []word) []string {
	run := make([]string, len(words))
	for i, w := range words {
		run[i] = w.text
	}
	l.runs = append(l.runs, run)
	return run
}

// hunt looks for forbidden commands among words whose use is not known.
func (l *line) hunt(words []word) {
	texts := l.record(words)
	for i := range texts {
		run := texts[i:]
		if i > 0 {
			l.runs = append(l.runs, run)
		}
		subs, rest := committers[base(run[0])], run[1:]
		if base(run[0]) == "git" {
			rest = skipGlobals(rest)
		}
		if len(rest) > 0 && slices.Contains(subs, rest[0]) {
			l.what.raise(commits, agentsCommit, "")
		}
		if strings.ContainsAny(run[0], " \t\n;") {
			l.nested(run[0])
		}
	}
}

// nested examines a script inside of a command.
func (l *line) nested(text string) {
	if l.scripts++; l.depth >= maxDepth || l.scripts > maxScripts {
		l.doubt(notUnderstood)
		return
	}
	in := &line{operation: l.operation, dirs: l.dirs, depth: l.depth + 1}
	in.read(text)
	l.dirs = in.dirs
}

// script is a program of the project, or one that nobody knows.
func (l *line) script(name string, args []word) {
	known := false
	for _, dir := range l.dirs {
		p := l.abs(name, dir)
		known = inside(p, l.r.Workspace)
		l.touch(p, reads)
		if !known {
			break
		}
	}
	if !known {
		l.doubt("unknown_command")
		l.hunt(args)
		return
	}
	l.what.raise(changes, "", "")
	l.operands(args, writes)
}

// operands examines everything in the arguments that may be a path.
func (l *line) operands(args []word, how use) {
	for _, a := range args {
		if a.vars {
			l.doubt(notUnderstood)
		}
		if a.glob && couldBeSecret(a.text) {
			l.where.raise(doubtful, sensitive, a.text)
		}
		for _, p := range candidates(a.text) {
			l.path(p, how)
		}
	}
}

// candidates are the paths that an argument may hold: itself, and the parts of
// an option, a revision or a list that look like one.
func candidates(s string) []string {
	if strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") || s == "" {
		return nil
	}
	var out []string
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("=:,@", r) })
	if !strings.HasPrefix(s, "-") {
		out = append(out, s)
	} else if len(s) > 2 && s[1] != '-' {
		parts = append(parts, s[2:])
	}
	for _, p := range parts {
		if p != s && p != "" && (strings.ContainsAny(p, "/.~") || secret(p)) && !strings.HasPrefix(p, "-") {
			out = append(out, p)
		}
	}
	return out
}

// cd changes where the line may be from here on.
func cd(l *line, args []word, _ bool) {
	if len(args) != 1 || !args[0].literal() || strings.HasPrefix(args[0].text, "-") || len(l.dirs) > 4 {
		l.doubt(notUnderstood)
		return
	}
	for _, dir := range slices.Clone(l.dirs) {
		to := l.abs(args[0].text, dir)
		l.touch(to, reads)
		if l.system && !inside(to, l.r.Workspace) {
			l.where.raise(doubtful, outside, to)
		}
		if !slices.Contains(l.dirs, to) && isAbs(to) {
			l.dirs = append(l.dirs, to)
		}
	}
}
