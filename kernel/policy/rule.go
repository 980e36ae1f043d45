package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"witan/kernel"
)

// Rule denies operations: of a kind, and of the paths or commands of a pattern.
// Without a pattern it denies the whole kind.
type Rule struct {
	Kind    string // one of the kinds, or "*" for each
	Path    string
	Command string // of an execute
}

// ParseRule reads "kind", "kind:pattern" or "*:path pattern".
//
// A path pattern is relative to the workspace, or starts with "/", "~/" or "**/"
// (anywhere at all). "*" and "?" stay within a name, "**" stands for any number of
// folders; a folder's pattern covers what is in it. A command pattern is words;
// "*" and "?" stay within a word, and further words are covered too.
func ParseRule(s string) (Rule, error) {
	fail := func(what string, args ...any) (Rule, error) {
		return Rule{}, kernel.E("policy.rule", kernel.Invalid, nil, what, args...).
			WithNext(`write a rule such as "execute:git push *", "edit:**/*.pem" or "fetch"`)
	}
	kind, pattern, has := strings.Cut(s, ":")
	kind, pattern = strings.TrimSpace(kind), squeeze(pattern)
	switch {
	case tricky(s, false):
		return fail("a deny rule has a character that cannot be seen")
	case kind != "*" && kind != "other" && !slices.Contains(kinds, kind):
		return fail("%q is not a kind of operation; kinds are %s, other and *", kind, strings.Join(kinds, ", "))
	case !has && kind == "*":
		return fail("a deny rule without a pattern would deny everything")
	case has && pattern == "":
		return fail("the deny rule %q has no pattern after the colon", s)
	case !has || pattern == "*" && kind != "*":
		return Rule{Kind: kind}, nil
	case kind == "think" || kind == "fetch" || kind == "other":
		return fail("an operation of the kind %s has nothing a pattern could match", kind)
	case kind == "execute":
		if strings.HasPrefix(pattern, "*") {
			return fail("the pattern %q does not say which command", pattern)
		}
		return Rule{Kind: kind, Command: pattern}, nil
	}
	pattern = path.Clean(filepath.ToSlash(pattern))
	for _, part := range strings.Split(pattern, "/") {
		_, err := path.Match(part, "")
		switch {
		case err != nil:
			return fail("the pattern %q has an unfinished bracket", pattern)
		case part == "..":
			return fail("the pattern %q leads out of the workspace; write the whole path", pattern)
		case strings.Contains(part, "**") && part != "**":
			return fail("in the pattern %q, ** has to stand alone between slashes", pattern)
		}
	}
	return Rule{Kind: kind, Path: pattern}, nil
}

func (o *operation) denied() bool { return slices.ContainsFunc(o.r.Deny, o.denies) }

func (o *operation) denies(r Rule) bool {
	kind := r.Kind
	switch {
	case r.Command != "":
		return o.runsAny(strings.Fields(r.Command))
	case r.Path != "":
		return slices.ContainsFunc(o.seen, func(t touched) bool {
			return o.covers(kind, t.use) && (o.matches(r.Path, t.path) || t.use == removes && o.holds(t.path, r.Path))
		})
	case kind == "execute":
		return o.kind == kind || o.r.Op.Command != ""
	}
	if kind == "edit" || kind == "delete" || kind == "move" {
		return kind == o.kind || slices.ContainsFunc(o.seen, func(t touched) bool { return o.covers(kind, t.use) })
	}
	return kind == o.kind
}

// covers reports whether a rule of a kind is about a use of a path. What an agent
// calls its operation does not get it around a rule: reading is part of every
// use, and whatever writes counts as an edit.
func (o *operation) covers(kind string, how use) bool {
	switch kind {
	case "*", "read", "search":
		return true
	case "edit":
		return how != reads
	case "delete", "move":
		return o.kind == kind || how == removes && o.kind != "delete" && o.kind != "move"
	}
	return false
}

// matches reports whether a path is, or is in, what a pattern stands for.
func (o *operation) matches(pattern, p string) bool {
	switch {
	case strings.HasPrefix(pattern, "~"):
		pattern = o.abs(pattern, "")
	case !isAbs(pattern) && !strings.HasPrefix(pattern, "**"):
		rel, ok := within(p, o.r.Workspace)
		if !ok {
			return false
		}
		p = rel
	}
	return matchParts(parts(pattern), parts(p))
}

// holds reports whether a folder holds what a pattern names, as far as the
// pattern says where that is.
func (o *operation) holds(folder, pattern string) bool {
	if strings.HasPrefix(pattern, "**") {
		return false
	}
	at := o.abs(pattern, o.r.Workspace)
	for strings.ContainsAny(at, "*?[") {
		at = path.Dir(at)
	}
	return inside(at, folder)
}

func parts(p string) []string { return strings.Split(strings.Trim(strings.ToLower(p), "/"), "/") }

// matchParts keeps the set of places in the pattern that the names so far reach,
// so that its time is bounded by both lengths.
func matchParts(pattern, names []string) bool {
	at := map[int]bool{0: true}
	for _, name := range names {
		next := map[int]bool{}
		for i := range at {
			for ; i < len(pattern) && pattern[i] == "**"; i++ {
				next[i] = true
			}
			if i == len(pattern) {
				return true // it is inside of what matched
			}
			if ok, err := path.Match(pattern[i], name); ok && err == nil {
				next[i+1] = true
			}
		}
		at = next
	}
	for i := range at {
		for ; i < len(pattern) && pattern[i] == "**"; i++ {
		}
		if i == len(pattern) {
			return true
		}
	}
	return false
}

// runsAny reports whether the pattern's words begin any of the programs found,
// with their options or without.
func (o *operation) runsAny(pattern []string) bool {
	if n := len(pattern); n > 1 && pattern[n-1] == "*" {
		pattern = pattern[:n-1]
	}
	return slices.ContainsFunc(o.runs, func(run []string) bool {
		if len(run) == 0 {
			return false
		}
		args := run[1:]
		if base(run[0]) == "git" {
			args = skipGlobals(args)
		}
		return begins(pattern, run[0], args, false) || begins(pattern, run[0], args, true)
	})
}

// begins compares a pattern with a program and its arguments; bare leaves the
// options out.
func begins(pattern []string, name string, args []string, bare bool) bool {
	if !wild(strings.ToLower(pattern[0]), base(name)) {
		return false
	}
	pattern = pattern[1:]
	for _, a := range args {
		if len(pattern) == 0 {
			return true
		}
		if bare && strings.HasPrefix(a, "-") {
			continue
		}
		if !wild(pattern[0], a) {
			return false
		}
		pattern = pattern[1:]
	}
	return len(pattern) == 0
}

// wild matches a word with * (anything) and ? (any byte).
func wild(pattern, s string) bool {
	star, back := -1, 0
	i, k := 0, 0
	for k < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, back = i, k
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[k]):
			i, k = i+1, k+1
		case star >= 0:
			back++
			i, k = star+1, back
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
