package inspector

import (
	"bytes"
	"math"
	"path"
	"regexp"
	"strings"
)

// form is a kind of key that can be told by how it is written. group is the
// part of the match that is the secret. A file without any of the hints, in
// lower case, holds none.
type form struct {
	name  string
	re    *regexp.Regexp
	group int
	hints []string
}

var forms = []form{
	{"AWS access key", regexp.MustCompile(`\b((?:AKIA|ASIA)[A-Z2-7]{16})\b`), 1, []string{"akia", "asia"}},
	{"GitHub token", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})\b`), 1, []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}},
	{"GitLab token", regexp.MustCompile(`\b(glpat-[A-Za-z0-9_-]{20,})`), 1, []string{"glpat-"}},
	{"Slack token", regexp.MustCompile(`\b(xox[abeoprs]-[A-Za-z0-9-]{20,})`), 1, []string{"xox"}},
	{"Stripe live key", regexp.MustCompile(`\b([rs]k_live_[A-Za-z0-9]{20,})\b`), 1, []string{"k_live_"}},
	{"Google API key", regexp.MustCompile(`\b(AIza[A-Za-z0-9_-]{35})`), 1, []string{"aiza"}},
	{"model provider key", regexp.MustCompile(`\b(sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{32,})`), 1, []string{"sk-"}},
	{"npm token", regexp.MustCompile(`\b(npm_[A-Za-z0-9]{36})\b`), 1, []string{"npm_"}},
	{"PyPI token", regexp.MustCompile(`\b(pypi-[A-Za-z0-9_-]{50,})`), 1, []string{"pypi-"}},
	assigned, exported,
}

// Two forms are told by the name that the value is given to. The second is for
// files that assign without quotes.
var (
	words    = []string{"secret", "passw", "key", "token"}
	assigned = form{"secret", regexp.MustCompile(`(?i)(?:^|[^:])\b[a-z0-9_.-]*(?:secret|passw(?:or)?d|api[_-]?key|secret[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key)["']?\s*(?::=|=>|:|=)\s*["']([A-Za-z0-9+/=_.!@#%^&*-]{16,120})["']`), 1, words}
	exported = form{"secret", regexp.MustCompile(`(?i)^\s*(?:export\s+|ENV\s+)?[A-Z0-9_.-]*(?:SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|TOKEN)\s*[=:]\s*([A-Za-z0-9+/=_.-]{20,120})\s*$`), 1, words}
)

var (
	keyBegin = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`)
	keyBody  = regexp.MustCompile(`[A-Za-z0-9+/=]{12,}`)
	keyLine  = regexp.MustCompile(`^[\s"'+]*([A-Za-z0-9+/=]{12,})[\s"'+,;.)\\nr]*$`)
)

// secrets reports each line that holds a key.
func (s *scan) secrets(name string, b []byte) {
	if lockFile(name) {
		return
	}
	low := bytes.ToLower(b)
	var try []form
	for _, f := range forms {
		if f.re == exported.re && !unquoted(name) {
			continue
		}
		for _, h := range f.hints {
			if bytes.Contains(low, []byte(h)) {
				try = append(try, f)
				break
			}
		}
	}
	pem := bytes.Contains(b, []byte("PRIVATE KEY"))
	if len(try) == 0 && !pem {
		return
	}
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		what := ""
		if len(l) <= 4096 { // longer ones are minified code and data
			what = secretIn(l, try)
		}
		if at := keyBegin.FindStringIndex(l); pem && at != nil && what == "" && keyFollows(l[at[1]:], lines[i+1:]) {
			what = "private key"
		}
		if what != "" {
			s.add(issue{check: "secret", severity: "high", title: what + " in the clear",
				detail: "Take it out, and replace it where it is used: it is in the history.", path: name, line: i + 1})
		}
	}
}

func secretIn(line string, try []form) string {
	for _, f := range try {
		if m := f.re.FindStringSubmatch(line); m != nil && serious(f, m[f.group]) {
			return f.name
		}
	}
	return ""
}

// keyFollows tells a key from a mention of one: what comes after its first line
// looks like one.
func keyFollows(rest string, next []string) bool {
	body := keyBody.FindString(strings.TrimLeft(rest, `\nr`))
	for _, l := range next[:min(4, len(next))] {
		// Headers of an encrypted key stand in between.
		if m := keyLine.FindStringSubmatch(l); body == "" && m != nil {
			body = m[1]
		}
	}
	return body != "" && entropy(body) >= 2.5
}

// unquoted reports whether files of this name assign values without quotes.
func unquoted(name string) bool {
	base := strings.ToLower(path.Base(name))
	switch path.Ext(base) {
	case ".env", ".sh", ".bash", ".properties", ".ini", ".cfg", ".conf", ".yaml", ".yml", ".envrc", ".npmrc", ".tfvars", ".txt":
		return true
	}
	return strings.HasPrefix(base, ".env") || strings.HasPrefix(base, "dockerfile") || base == "credentials"
}

// serious tells a key from an example or a placeholder of one.
func serious(f form, value string) bool {
	low := strings.ToLower(value)
	for _, word := range []string{"example", "placeholder", "changeme", "your", "xxxx", "dummy", "sample", "redacted", "1234567890", "abcdefgh", "test", "fake"} {
		if strings.Contains(low, word) {
			return false
		}
	}
	if f.name != "secret" {
		return entropy(value) >= 2.5
	}
	return entropy(value) >= 3.2 && strings.ContainsAny(value, "0123456789") && strings.ContainsAny(low, "abcdefghijklmnopqrstuvwxyz") &&
		!strings.Contains(value, "..") && !strings.HasPrefix(low, "sha") && !strings.HasPrefix(low, "http") && !namesFile.MatchString(low)
}

var namesFile = regexp.MustCompile(`\.(json|ya?ml|toml|pem|key|crt|txt|js|ts|py|go|md|html)$`)

// masked is a line of evidence without what could be a secret in it. It hides
// more than is reported: also what is only likely, and the lines of a key.
func masked(pem bool) func(string) string {
	return func(line string) string {
		for _, f := range forms {
			for _, m := range f.re.FindAllStringSubmatch(line, -1) {
				line = strings.ReplaceAll(line, m[f.group], hidden(m[f.group]))
			}
		}
		if pem {
			line = keyBody.ReplaceAllStringFunc(line, hidden)
		}
		return line
	}
}

// hidden keeps as much of a secret as is needed to recognise its kind.
func hidden(s string) string { return s[:min(4, len(s)/4)] + "…[hidden]" }

// entropy is Shannon's, in bits for each character.
func entropy(s string) float64 {
	count := map[rune]int{}
	n := 0
	for _, r := range s {
		count[r]++
		n++
	}
	var h float64
	for _, c := range count {
		p := float64(c) / float64(n)
		h -= p * math.Log2(p)
	}
	return h
}

func lockFile(name string) bool {
	base := name[strings.LastIndex(name, "/")+1:]
	switch base {
	case "go.sum", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "Cargo.lock", "poetry.lock", "uv.lock", "Pipfile.lock", "composer.lock", "Gemfile.lock":
		return true
	}
	return false
}
