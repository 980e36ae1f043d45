package secrets

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Match is one secret-like string: the bytes [Start, End) of the text. Kind
// names the format.
type Match struct {
	Kind       string
	Start, End int
}

type pattern struct {
	kind    string
	hint    string // a fixed part, looked for first
	re      *regexp.Regexp
	group   int
	entropy float64 // least bits a character of the group; 0 = not asked
}

var patterns = []pattern{
	{kind: "aws access key", hint: "A", re: regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{kind: "github token", hint: "gh", re: regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,255}\b`)},
	{kind: "github token", hint: "github_pat_", re: regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{60,255}\b`)},
	{kind: "gitlab token", hint: "glpat-", re: regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{kind: "slack token", hint: "xox", re: regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}`)},
	{kind: "slack webhook", hint: "hooks.slack.com", re: regexp.MustCompile(`hooks\.slack\.com/services/[A-Za-z0-9/]{30,}`)},
	{kind: "google api key", hint: "AIza", re: regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`)},
	{kind: "stripe key", hint: "_live_", re: regexp.MustCompile(`\b[rs]k_live_[A-Za-z0-9]{20,}\b`)},
	{kind: "model provider key", hint: "sk-", re: regexp.MustCompile(`\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}`), entropy: 3.5},
	{kind: "npm token", hint: "npm_", re: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
	{kind: "json web token", hint: "eyJ", re: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,}`)},
	{kind: "assigned secret", re: assigned, group: 1, entropy: 3.2},
	{kind: "assigned secret", hint: "earer ", re: regexp.MustCompile(`\b[Bb]earer ([A-Za-z0-9+/=_.~-]{24,})`), group: 1, entropy: 3.2},
}

// assigned is a value given to a name that says it is secret.
var assigned = regexp.MustCompile(`(?i)(?:api[_-]?key|(?:secret|access|private|account|auth)[_-]?key|secret|token|passwd|password|credential)["']?\s*(?::=|=>|[:=])\s*["']?` +
	`([A-Za-z0-9+/=_.~-]{24,})`)

// Find returns the secret-like strings of text, in order of the patterns.
func Find(text string) []Match {
	out := privateKeys(text)
	for _, p := range patterns {
		if p.hint != "" && !strings.Contains(text, p.hint) {
			continue
		}
		for _, m := range p.re.FindAllStringSubmatchIndex(text, -1) {
			s, e := m[2*p.group], m[2*p.group+1]
			if p.entropy == 0 || random(text[s:e], p.entropy) {
				out = append(out, Match{p.kind, s, e})
			}
		}
	}
	return out
}

// Redact replaces every secret-like string by its kind in brackets.
func Redact(text string) string {
	ms := Find(text)
	if len(ms) == 0 {
		return text
	}
	slices.SortStableFunc(ms, func(a, b Match) int { return a.Start - b.Start })
	var b strings.Builder
	at := 0
	for _, m := range ms {
		if m.Start >= at {
			b.WriteString(text[at:m.Start] + "[" + m.Kind + "]")
		}
		at = max(at, m.End)
	}
	b.WriteString(text[at:])
	return b.String()
}

// random tells a value from a name or a sentence: it needs digits and letters
// besides its entropy.
func random(s string, least float64) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, unicode.IsLetter) && entropy(s) >= least
}

// entropy is Shannon's, in bits per byte.
func entropy(s string) float64 {
	var n [256]int
	for i := range len(s) {
		n[s[i]]++
	}
	h := 0.0
	for _, c := range n {
		if c > 0 {
			p := float64(c) / float64(len(s))
			h -= p * math.Log2(p)
		}
	}
	return h
}
