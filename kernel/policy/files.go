package policy

import (
	"regexp"
	"slices"
	"strings"
)

const (
	destructive = "destructive_command"
	privileged  = "privileged_command"
	publishes   = "publishes"
	installs    = "installs_packages"
	remote      = "remote_system"
)

// readers only read. Those of readerOptions have options that do more.
var readers = []string{"ls", "cat", "head", "tail", "wc", "sort", "uniq", "cut", "tr", "diff", "cmp", "comm", "file", "stat", "du", "df", "pwd", "echo", "printf",
	"true", "false", "test", "[", ":", "date", "whoami", "id", "uname", "which", "type", "basename", "dirname", "realpath", "readlink", "sha1sum",
	"sha256sum", "sha512sum", "md5sum", "cksum", "b2sum", "nl", "tac", "rev", "fold", "column", "paste", "join", "seq", "sleep", "tree", "grep", "egrep",
	"fgrep", "rg", "fd", "strings", "od", "hexdump", "jq", "cal", "nproc", "uptime", "free", "sed", "awk"}

type unsafeOptions struct {
	short string
	long  []string
}

var readerOptions = map[string]unsafeOptions{
	"sort": {"oT", []string{"--output", "--compress-program", "--temporary-directory"}},
	"rg":   {"", []string{"--pre", "--hostname-bin"}},
	"fd":   {"xX", []string{"--exec", "--exec-batch"}},
	"tree": {"oR", []string{"--output"}},
	"date": {"sf", []string{"--set", "--file"}},
	"file": {"C", []string{"--compile"}},
}

// data are readers whose operands are no paths.
var data = []string{"echo", "printf", "true", "false", ":", "seq", "sleep", "basename", "dirname", "whoami", "id", "uname", "which", "type", "tr", "cal", "nproc", "uptime", "free", "date", "pwd"}

// patternFirst are readers whose first operand is a pattern or a script.
var patternFirst = []string{"grep", "egrep", "fgrep", "rg", "fd", "sed", "awk", "jq"}

// plainVars are variables that hold nothing worth hiding.
var plainVars = regexp.MustCompile(`\$\{?(PATH|HOME|PWD|OLDPWD|USER|SHELL|LANG|TERM|TMPDIR|GOPATH|GOROOT|VIRTUAL_ENV|\?|#)\}?`)

func (l *line) reader(name string, args []word) {
	unsafe := readerOptions[name]
	for _, a := range args {
		if option(a.text, unsafe.short, unsafe.long...) {
			l.doubt(notUnderstood)
		}
	}
	switch {
	case slices.Contains(data, name):
		for _, a := range args {
			if a.glob && couldBeSecret(a.text) {
				l.where.raise(doubtful, sensitive, a.text)
			}
			if l.feeds { // its words may become somebody's operands
				l.operands([]word{{text: a.text}}, reads)
			}
			if a.vars && strings.Contains(plainVars.ReplaceAllString(a.text, ""), "$") {
				l.doubt("shows_environment")
			}
		}
		return
	case name == "uniq" && len(plainOperands(args)) > 1:
		l.what.raise(changes, "", "")
		l.operands(args, writes) // the second is written
		return
	case name == "jq" && slices.ContainsFunc(args, func(a word) bool { return strings.Contains(strings.ToLower(a.text), "env") }):
		l.doubt("shows_environment")
	case name == "sed" || name == "awk":
		if l.editor(name, args) {
			return
		}
	}
	l.operands(l.withoutPattern(name, args), reads)
}

// withoutPattern drops the pattern, unless an option may have given it.
func (l *line) withoutPattern(name string, args []word) []word {
	if !slices.Contains(patternFirst, name) {
		return args
	}
	for _, a := range args {
		if option(a.text, "ef", "--regexp", "--file", "--files", "--expression", "--from-file") {
			return args
		}
	}
	for i, a := range args {
		if !strings.HasPrefix(a.text, "-") {
			if a.vars {
				l.doubt(notUnderstood)
			}
			return slices.Concat(args[:i], args[i+1:])
		}
	}
	return args
}

func plainOperands(args []word) []word {
	var out []word
	for _, a := range args {
		if !strings.HasPrefix(a.text, "-") {
			out = append(out, a)
		}
	}
	return out
}

// Scripts that only print or replace. Others may write files and run programs.
var (
	sedScript  = regexp.MustCompile(`^([0-9$]+(,[0-9$+]+)?|/[^/\\]*/)?(!?[pdq=]|s(/[^/\n]*/[^/\n]*/|\|[^|\n]*\|[^|\n]*\||#[^#\n]*#[^#\n]*#)[gpiI0-9]*)$`)
	awkReaches = regexp.MustCompile(`system|getline|ENVIRON|ARGV`)
	awkScript  = regexp.MustCompile(`^[^|>@"]*("[^"|>@]*"[^|>@"]*)*$`)
)

// editor examines sed and awk. done: it edits files, which are examined.
func (l *line) editor(name string, args []word) (done bool) {
	ops, edits := plainOperands(args), false
	for _, a := range args {
		t := a.text
		switch {
		case !strings.HasPrefix(t, "-"):
		case name == "sed" && (t == "-i" || t == "--in-place"):
			edits = true
		case slices.Contains([]string{"-n", "-E", "-r", "-s", "--quiet", "--regexp-extended"}, t) || name == "awk" && strings.HasPrefix(t, "-F") && len(t) < 5:
		default:
			l.doubt(notUnderstood)
		}
	}
	if len(ops) == 0 || !ops[0].literal() {
		l.doubt(notUnderstood)
		return false
	}
	script := ops[0].text
	if name == "sed" && !sedScript.MatchString(script) || name == "awk" && (!awkScript.MatchString(script) || awkReaches.MatchString(script)) {
		l.doubt(notUnderstood)
	}
	if edits {
		l.what.raise(changes, "", "")
		l.operands(ops[1:], writes)
	}
	return edits
}

// edit is for programs that change the files they are given.
func edit(l *line, args []word, _ bool) {
	l.what.raise(changes, "", "")
	l.operands(args, writes)
}

// remove is rm and its kind, and what moves files away.
func remove(l *line, args []word, _ bool) {
	l.what.raise(changes, "", "")
	recursive := slices.ContainsFunc(args, func(a word) bool { return option(a.text, "rR", "--recursive") })
	for _, a := range args {
		if a.glob && recursive {
			l.doubt(destructive)
		}
	}
	l.bareGlob(args)
	l.operands(args, removes)
}

// bareGlob doubts a pattern that stands for a whole folder.
func (l *line) bareGlob(args []word) {
	for _, a := range args {
		name := a.text[strings.LastIndexByte(a.text, '/')+1:]
		if a.glob && (strings.Trim(name, "*?.") == "" || strings.Contains(name, "[")) {
			l.doubt(destructive)
		}
	}
}

func move(l *line, args []word, _ bool) {
	l.what.raise(changes, "", "")
	ops := plainOperands(args)
	for _, a := range args {
		if option(a.text, "tS", "--target-directory", "--suffix") {
			l.doubt(notUnderstood)
		}
	}
	if len(ops) > 0 {
		l.operands(ops[:len(ops)-1], removes)
		l.operands(ops[len(ops)-1:], writes)
	}
}

func chmod(l *line, args []word, _ bool) {
	ops := plainOperands(args)
	if len(ops) != len(args) || len(ops) < 2 || !slices.Contains([]string{"+x", "u+x", "a+x", "755", "644", "u+w", "+w", "+r", "700", "600"}, ops[0].text) {
		l.doubt(destructive)
		return
	}
	edit(l, ops[1:], false)
}

// archive is tar: letters that only pack, unpack and list.
func archive(l *line, args []word, _ bool) {
	l.what.raise(changes, "", "")
	for i, a := range args {
		letters := strings.TrimPrefix(a.text, "-")
		if (i == 0 || strings.HasPrefix(a.text, "-")) && a.text != "-C" && strings.Trim(letters, "txcfvzjJ") != "" {
			l.doubt(notUnderstood)
		}
	}
	if len(args) > 0 {
		l.operands(args[1:], writes)
	}
}

// download is curl and wget: getting is reading, all else is publishing.
func download(l *line, args []word, _ bool) {
	for i := 0; i < len(args); i++ {
		t := args[i].text
		next := func() (w word) {
			if i++; i < len(args) {
				w = args[i]
			}
			return w
		}
		switch {
		case !args[i].literal():
			l.doubt(notUnderstood)
		case strings.HasPrefix(t, "https://") || strings.HasPrefix(t, "http://"):
		case t == "-o" || t == "--output" || t == "--output-document":
			l.what.raise(changes, "", "")
			l.operands([]word{next()}, writes)
		case t == "-m" || t == "--max-time" || t == "--connect-timeout" || t == "--retry":
			next()
		case slices.Contains([]string{"--silent", "--show-error", "--fail", "--location", "--head", "--include", "--compressed", "--quiet"}, t):
		case len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.Trim(t[1:], "sSfLIivq") == "":
		default:
			if option(t, "dFTX", "--data", "--form", "--upload-file", "--request", "--json", "--post-data", "--post-file", "--method", "--body-data") {
				l.doubt(publishes)
			}
			l.doubt(notUnderstood)
			l.hunt(args[i:])
			return
		}
	}
}

func wget(l *line, args []word, piped bool) {
	l.what.raise(changes, "", "") // it saves in the folder where it runs
	for _, dir := range l.dirs {
		l.touch(dir, writes)
	}
	download(l, args, piped)
}
