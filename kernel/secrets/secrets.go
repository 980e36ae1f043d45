// Package secrets finds strings that look like credentials, so that they are
// refused in receipts and left out of evidence, exports and logs. It errs on
// the side of known formats: a finding is a reason to look, a miss is possible.
package secrets

import (
	"math"
	"regexp"
	"strings"
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
	entropy float64 // least bits per character of the group; 0 = not asked
}

var patterns = []pattern{
	{kind: "private key", hint: "PRIVATE KEY-----", re: regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----`)},
	{kind: "aws access key", hint: "A", re: regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{kind: "github token", hint: "gh", re: regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,255}\b`)},
	{kind: "github token", hint: "github_pat_", re: regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{60,255}\b`)},
	{kind: "gitlab token", hint: "glpat-", re: regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}\b`)},
	{kind: "slack token", hint: "xox", re: regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}\b`)},
	{kind: "google api key", hint: "AIza", re: regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}\b`)},
	{kind: "stripe key", hint: "_live_", re: regexp.MustCompile(`\b[rs]k_live_[A-Za-z0-9]{20,}\b`)},
	{kind: "model provider key", hint: "sk-", re: regexp.MustCompile(`\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}\b`), entropy: 3.5},
	{kind: "npm token", hint: "npm_", re: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
	{kind: "json web token", hint: "eyJ", re: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,}\b`)},
	{kind: "assigned secret", hint: "", re: regexp.MustCompile(`(?i)(?:api[_-]?key|secret|token|passwd|password)["']?\s*[:=]\s*["']?([A-Za-z0-9+/_=-]{24,})`), group: 1, entropy: 4},
}

// Find returns the secret-like strings of text, in order of the patterns.
func Find(text string) []Match {
	var out []Match
	for _, p := range patterns {
		if p.hint != "" && !strings.Contains(text, p.hint) {
			continue
		}
		for _, m := range p.re.FindAllStringSubmatchIndex(text, -1) {
			s, e := m[2*p.group], m[2*p.group+1]
			if p.entropy == 0 || entropy(text[s:e]) >= p.entropy {
				out = append(out, Match{p.kind, s, e})
			}
		}
	}
	return out
}

// Redact replaces every secret-like string by its kind.
func Redact(text string) string {
	ms := Find(text)
	if len(ms) == 0 {
		return text
	}
	hide := make([]string, len(text))
	for _, m := range ms {
		for i := m.Start; i < m.End; i++ {
			hide[i] = m.Kind
		}
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if hide[i] == "" {
			b.WriteByte(text[i])
		} else if i == 0 || hide[i-1] == "" {
			b.WriteString("[" + hide[i] + "]")
		}
	}
	return b.String()
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
