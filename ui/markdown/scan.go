package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// scan colours code in one pass: what it does not know stays plain, and no input
// takes it longer than its length. A comment or string that does not end reaches to
// the end.
func scan(l language, src string) []Token {
	s := scanner{language: l, src: src}
	for s.at < len(src) {
		s.step()
	}
	return s.out
}

type scanner struct {
	language
	src string
	at  int
	out []Token
}

// take gives the next n bytes a class.
func (s *scanner) take(n int, c Class) {
	text := s.src[s.at : s.at+n]
	s.at += n
	if k := len(s.out) - 1; k >= 0 && s.out[k].Class == c {
		// The pieces of one class lie side by side in the source.
		s.out[k].Text = s.src[s.at-n-len(s.out[k].Text) : s.at]
		return
	}
	s.out = append(s.out, Token{Text: text, Class: c})
}

func (s *scanner) step() {
	rest := s.src[s.at:]
	if s.block[0] != "" && strings.HasPrefix(rest, s.block[0]) {
		s.take(upTo(rest, s.block[0], s.block[1]), Comment)
		return
	}
	for _, mark := range s.line {
		if strings.HasPrefix(rest, mark) && s.comment(mark) {
			s.take(lineEnd(rest), Comment)
			return
		}
	}
	for _, q := range s.long {
		if strings.HasPrefix(rest, q[0]) {
			s.take(upTo(rest, q[0], q[1]), String)
			return
		}
	}
	r, n := utf8.DecodeRuneInString(rest)
	switch {
	case r < utf8.RuneSelf && strings.ContainsRune(s.quotes, r):
		n = quoted(rest, byte(r))
		s.take(n, s.value(n))
	case r >= '0' && r <= '9':
		s.take(number(rest), Number)
	case s.tags && (r == '<' || r == '>'):
		s.take(tag(rest), Keyword)
	case letter(r):
		s.word(rest)
	default:
		s.take(n, Plain)
	}
}

// comment says whether a mark of one sign begins a comment where it stands: in a
// word, as in a#b, it does not.
func (s *scanner) comment(mark string) bool {
	return len(mark) > 1 || s.at == 0 || strings.ContainsRune(" \t\n;(", rune(s.src[s.at-1]))
}

// value is the class of a string: one before a colon is the name of a value.
func (s *scanner) value(n int) Class {
	if s.keys && strings.HasPrefix(strings.TrimLeft(s.src[s.at+n:min(s.at+n+8, len(s.src))], " "), ":") {
		return Name
	}
	return String
}

func (s *scanner) word(rest string) {
	n := 0
	for n < len(rest) {
		r, w := utf8.DecodeRuneInString(rest[n:])
		if !letter(r) && !unicode.IsDigit(r) && !(s.keys && r == '-') {
			break
		}
		n += w
	}
	w := rest[:n]
	if s.fold {
		w = strings.ToLower(w)
	}
	after := strings.TrimLeft(rest[n:min(n+8, len(rest))], " ")
	switch {
	case s.keywords[w]:
		s.take(n, Keyword)
	case s.types[w]:
		s.take(n, Type)
	case s.keys && (strings.HasPrefix(after, ":") || strings.HasPrefix(after, "=")):
		s.take(n, Name)
	case !s.keys && !s.tags && strings.HasPrefix(rest[n:], "("):
		s.take(n, Name)
	default:
		s.take(n, Plain)
	}
}

func letter(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// upTo is the length of what begins with open and reaches behind end.
func upTo(s, open, end string) int {
	if i := strings.Index(s[len(open):], end); i >= 0 {
		return len(open) + i + len(end)
	}
	return len(s)
}

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// quoted is the length of a string on one line, with escapes.
func quoted(s string, quote byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		case '\n':
			return i
		}
	}
	return len(s)
}

func number(s string) int {
	n := 1
	for n < len(s) && (s[n] == '.' || s[n] == '_' || s[n] >= '0' && s[n] <= '9' || s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z') {
		n++
	}
	return n
}

// tag is the length of a bracket with the name of its tag.
func tag(s string) int {
	n := 1
	if s[0] == '<' {
		for n < len(s) && (s[n] == '/' || s[n] == '!' || s[n] == '?' || s[n] == '-' || s[n] >= '0' && s[n] <= '9' || s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z') {
			n++
		}
	}
	return n
}
