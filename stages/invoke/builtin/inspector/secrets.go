package inspector

import (
	"math"
	"regexp"
	"strings"
)

// form is a kind of key that can be told by how it is written. group is the
// part of the match that is the secret.
type form struct {
	name  string
	re    *regexp.Regexp
	group int
}

var forms = []form{
	{"private key", regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`), 0},
	{"AWS access key", regexp.MustCompile(`\b((?:AKIA|ASIA)[A-Z2-7]{16})\b`), 1},
	{"GitHub token", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})\b`), 1},
	{"GitLab token", regexp.MustCompile(`\b(glpat-[A-Za-z0-9_-]{20,})`), 1},
	{"Slack token", regexp.MustCompile(`\b(xox[abeoprs]-[A-Za-z0-9-]{20,})`), 1},
	{"Stripe live key", regexp.MustCompile(`\b([rs]k_live_[A-Za-z0-9]{20,})\b`), 1},
	{"Google API key", regexp.MustCompile(`\b(AIza[A-Za-z0-9_-]{35})`), 1},
	{"model provider key", regexp.MustCompile(`\b(sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{32,})`), 1},
	{"npm token", regexp.MustCompile(`\b(npm_[A-Za-z0-9]{36})\b`), 1},
	{"PyPI token", regexp.MustCompile(`\b(pypi-[A-Za-z0-9_-]{50,})`), 1},
	{"secret", regexp.MustCompile(`(?i)(?:secret|passw(?:or)?d|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key)["']?\s*(?::|=|:=|=>)\s*["']([A-Za-z0-9+/=_.!@#%^&*-]{16,120})["']`), 1},
	{"secret", regexp.MustCompile(`(?i)^\s*(?:export\s+)?[A-Z0-9_]*(?:SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|TOKEN)\s*=\s*([A-Za-z0-9+/=_.-]{20,120})\s*$`), 1},
}

// secrets reports each line that holds a key.
func (s *scan) secrets(name string, b []byte) {
	if lockFile(name) {
		return
	}
	n := 0
	for l := range strings.Lines(string(b)) {
		n++
		if len(l) > 4096 {
			continue // minified code and data
		}
		for _, f := range forms {
			m := f.re.FindStringSubmatch(l)
			if m == nil || !serious(f, m[f.group]) {
				continue
			}
			hide := []string{m[f.group]}
			if f.group == 0 {
				hide = nil // the line says only that a key follows
			}
			s.add(issue{check: "secret", severity: "high", title: f.name + " in the clear",
				detail: "Take it out, and replace it where it is used: it is in the history.", path: name, line: n, hide: hide})
			break
		}
	}
}

// serious tells a key from an example or a placeholder of one.
func serious(f form, value string) bool {
	low := strings.ToLower(value)
	for _, word := range []string{"example", "placeholder", "changeme", "your", "xxxx", "dummy", "sample", "redacted", "1234567890", "abcdefgh", "test", "fake", "${", "{{"} {
		if strings.Contains(low, word) {
			return false
		}
	}
	if f.group == 0 {
		return true
	}
	if f.name != "secret" {
		return entropy(value) >= 2.5
	}
	return entropy(value) >= 3.2 && strings.ContainsAny(value, "0123456789") && strings.ContainsAny(low, "abcdefghijklmnopqrstuvwxyz") &&
		!strings.Contains(value, "..") && !strings.HasPrefix(value, "sha")
}

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
