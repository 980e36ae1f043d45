package inspector

import (
	"bytes"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"witan/kernel/secrets"
)

// Values are told by the name that they are given to: quoted anywhere, bare in
// files that assign without quotes. Keys of known form are kernel/secrets' to find.
var (
	assigned = regexp.MustCompile(`(?i)(?:^|[^:])\b[a-z0-9_.-]*(?:secret|passw(?:or)?d|api[_-]?key|secret[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key)["']?\s*(?::=|=>|:|=)\s*["']([A-Za-z0-9+/=_.!@#%^&*-]{16,120})["']`)
	exported = regexp.MustCompile(`(?i)^\s*(?:export\s+|ENV\s+)?[A-Z0-9_.-]*(?:SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|TOKEN)\s*[=:]\s*([A-Za-z0-9+/=_.-]{20,120})\s*$`)
	named    = [][]byte{[]byte("secret"), []byte("passw"), []byte("key"), []byte("token")}
)

var (
	keyBegin = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`)
	keyBody  = regexp.MustCompile(`[A-Za-z0-9+/=]{12,}`)
	keyLine  = regexp.MustCompile(`^[\s"'+]*([A-Za-z0-9+/=]{12,})[\s"'+,;.)\\nr]*$`)
)

// longestLine is what a person writes; longer lines are minified code and data.
const longestLine = 4096

// secrets reports each line that holds a key.
func (s *scan) secrets(name string, b []byte) {
	if lockFile(name) {
		return
	}
	found := map[int]string{} // kind by line
	ends := indexLines(b)
	for _, m := range secrets.Find(string(b)) {
		value := string(b[m.Start:m.End])
		// These two kinds say too little for a finding; they are looked at below.
		if m.Kind != "assigned secret" && m.Kind != "private key" && !placeholder(value) && entropy(value) >= 2.5 &&
			(m.Kind != "json web token" || !prose(name)) {
			found[ends.line(m.Start)] = m.Kind
		}
	}
	low := bytes.ToLower(b)
	names := slices.ContainsFunc(named, func(w []byte) bool { return bytes.Contains(low, w) })
	if !names && len(found) == 0 {
		return
	}
	bare := unquoted(name)
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		if len(l) > longestLine {
			continue
		}
		what := found[i+1]
		if what == "" && (random(assigned, l) || bare && random(exported, l)) {
			what = "secret"
		}
		if at := keyBegin.FindStringIndex(l); at != nil && what == "" && keyFollows(l[at[1]:], lines[i+1:]) {
			what = "private key"
		}
		if what != "" {
			s.add(issue{check: "secret", severity: "high", title: what + " in the clear",
				detail: "Take it out, and replace it where it is used: it is in the history.", path: name, line: i + 1})
		}
	}
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

// prose reports whether a file explains, where tokens are mostly examples.
func prose(name string) bool {
	return isMarkdown(name) || slices.Contains([]string{".rst", ".adoc", ".html", ".txt"}, strings.ToLower(path.Ext(name)))
}

// placeholder tells the example of a key from a key.
func placeholder(value string) bool {
	low := strings.ToLower(value)
	return slices.ContainsFunc([]string{"example", "placeholder", "changeme", "your", "xxxx", "dummy", "sample", "redacted", "1234567890", "abcdefgh", "test", "fake"},
		func(word string) bool { return strings.Contains(low, word) })
}

// random reports whether the line gives a value that looks random.
func random(form *regexp.Regexp, line string) bool {
	m := form.FindStringSubmatch(line)
	if m == nil || placeholder(m[1]) {
		return false
	}
	value, low := m[1], strings.ToLower(m[1])
	return entropy(value) >= 3.2 && strings.ContainsAny(value, "0123456789") && strings.ContainsAny(low, "abcdefghijklmnopqrstuvwxyz") &&
		!strings.Contains(value, "..") && !strings.HasPrefix(low, "sha") && !strings.HasPrefix(low, "http") && !namesFile.MatchString(low)
}

var namesFile = regexp.MustCompile(`\.(json|ya?ml|toml|pem|key|crt|txt|js|ts|py|go|md|html)$`)

// masked is a line of evidence without what could be a secret in it. It hides
// more than is reported: also what is only likely, and the lines of a key.
func masked(pem bool) func(string) string {
	return func(line string) string {
		line = secrets.Redact(line)
		for _, form := range []*regexp.Regexp{assigned, exported} {
			if m := form.FindStringSubmatch(line); m != nil {
				line = strings.ReplaceAll(line, m[1], "[secret]")
			}
		}
		if pem {
			line = keyBody.ReplaceAllString(line, "[key]")
		}
		return line
	}
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
