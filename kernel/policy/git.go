package policy

import (
	"slices"
	"strings"
)

const agentsCommit = "agents_never_commit"

// committers are the programs and subcommands that record a commit.
var committers = map[string][]string{
	"git": {"commit", "ci", "commit-tree", "merge", "cherry-pick", "revert", "rebase", "am", "fast-import", "citool", "gui"},
	"hg":  {"commit", "ci"}, "svn": {"commit", "ci"}, "jj": {"commit", "ci"}, "sl": {"commit"}, "fossil": {"commit", "ci"},
	"npm": {"version"}, "yarn": {"version"}, "pnpm": {"version"}, "bun": {"version"},
}

var gitReads = []string{"status", "log", "diff", "show", "ls-files", "ls-tree", "rev-parse", "blame", "annotate", "grep", "describe", "shortlog",
	"cat-file", "merge-base", "rev-list", "name-rev", "show-ref", "for-each-ref", "whatchanged", "count-objects", "check-ignore", "version", "help",
	"diff-tree", "diff-index", "diff-files", "range-diff", "cherry", "var", "--version", "--help"}

var gitDestroys = []string{"reset", "clean", "checkout", "restore", "switch", "rm", "gc", "prune", "repack", "reflog", "filter-branch", "filter-repo",
	"update-ref", "symbolic-ref", "stash", "worktree", "branch", "tag", "replace", "notes", "submodule", "update-index", "read-tree", "bisect", "pull", "fetch", "apply"}

var gitPublishes = []string{"push", "send-email", "send-pack", "svn", "p4", "daemon", "http-push", "upload-pack", "remote"}

// gitLists are reading when all their arguments are of these.
var gitLists = map[string][]string{
	"branch": {"-a", "-r", "-v", "-vv", "--list", "-l", "--all", "--show-current", "--no-color"},
	"tag":    {"-l", "--list"},
	"remote": {"-v", "show", "get-url", "origin", "upstream"},
	"stash":  {"list", "show", "-p"}, "worktree": {"list", "--porcelain"}, "submodule": {"status"}, "notes": {"list", "show"}, "reflog": {"show"},
	"bisect": {"log"},
}

// skipGlobals drops the options in front of the subcommand.
func skipGlobals(args []string) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--version" && args[0] != "--help" {
		n := 1
		if slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env", "--attr-source"}, args[0]) {
			n = 2
		}
		args = args[min(n, len(args)):]
	}
	return args
}

func git(l *line, args []word, _ bool) {
	args = l.gitGlobals(args)
	if len(args) == 0 {
		l.doubt("unknown_command")
		return
	}
	sub, rest := args[0], args[1:]
	if !sub.literal() {
		l.doubt(notUnderstood)
	}
	if slices.Contains(committers["git"], sub.text) {
		l.gitCommits(rest)
		return
	}
	if lists, ok := gitLists[sub.text]; ok && all(rest, lists) && (sub.text != "reflog" || len(rest) > 0) && (sub.text != "stash" || len(rest) > 0) {
		return
	}
	switch {
	case slices.Contains(gitReads, sub.text):
		for _, a := range rest {
			if option(a.text, "oO", "--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--no-index", "--contents", "--filters") {
				l.doubt(notUnderstood)
			}
		}
		l.operands(rest, reads)
	case sub.text == "add" || sub.text == "mv":
		l.what.raise(changes, "", "")
		l.operands(rest, writes)
	case slices.Contains(gitDestroys, sub.text):
		l.doubt(destructive)
		l.hunt(rest)
	case slices.Contains(gitPublishes, sub.text):
		l.doubt(publishes)
	case sub.text == "config" || sub.text == "hook" || sub.text == "maintenance" || sub.text == "credential":
		l.doubt("changes_environment")
	default:
		l.doubt("unknown_command")
		l.hunt(rest)
	}
}

// gitCommits: all of these record a commit unless they are told not to, and no
// other option can tell them otherwise again.
func (l *line) gitCommits(args []word) {
	if len(args) == 1 && slices.Contains([]string{"--abort", "--quit", "-h", "--help"}, args[0].text) {
		l.doubt(destructive)
		return
	}
	if len(args) > 1 && args[0].text == "--no-commit" && !slices.ContainsFunc(args[1:], func(a word) bool { return !a.literal() || strings.HasPrefix(a.text, "-") }) {
		l.doubt(destructive)
		return
	}
	l.what.raise(commits, agentsCommit, "")
}

// gitGlobals examines the options in front of the subcommand.
func (l *line) gitGlobals(args []word) []word {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") && args[0].text != "--version" && args[0].text != "--help" {
		n := 1
		switch t := args[0].text; {
		case slices.Contains([]string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"}, t):
		case t == "-C" && len(args) > 1:
			cd(l, args[1:2], false)
			n = 2
		case t == "-c" && len(args) > 1:
			l.doubt("changes_environment")
			if v := strings.ToLower(args[1].text); strings.HasPrefix(v, "alias.") && strings.Contains(v, "commit") {
				l.what.raise(commits, agentsCommit, "")
			}
			n = 2
		default:
			l.doubt("changes_environment")
			texts := make([]string, len(args))
			for i, a := range args {
				texts[i] = a.text
			}
			n = len(args) - len(skipGlobals(texts))
		}
		args = args[min(n, len(args)):]
	}
	return args
}

func all(args []word, of []string) bool {
	for _, a := range args {
		if !slices.Contains(of, a.text) {
			return false
		}
	}
	return true
}

// option reports whether s is one of the short options, in a cluster too, or one
// of the long ones, shortened too.
func option(s, short string, long ...string) bool {
	if !strings.HasPrefix(s, "-") {
		return false
	}
	if !strings.HasPrefix(s, "--") {
		return strings.ContainsAny(s[1:], short)
	}
	name, _, _ := strings.Cut(s, "=")
	return len(name) > 2 && slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(l, name) })
}
