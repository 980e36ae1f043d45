package policy

import "strings"

// word is one word of a shell command.
type word struct {
	text  string // as the program would get it, if nothing is expanded
	canon string // the same for every way to quote it
	glob  bool   // has a pattern that the shell expands
	vars  bool   // has a variable
	tilde bool   // starts with an unquoted ~

	assign bool // NAME=value
}

// literal reports whether the program gets the text as it is.
func (w word) literal() bool { return !w.glob && !w.vars && !w.tilde }

type redirect struct {
	op string
	to word
}

// segment is one simple command.
type segment struct {
	assigns, words []word
	redirects      []redirect
	piped          bool // reads another one's output
}

// scanner splits a line as a POSIX shell does, as far as it is sure. What it is
// not sure of makes the line odd; it goes on all the same, so that a forbidden
// command is found inside of it too.
type scanner struct {
	s      string
	at     int
	depth  int
	odd    bool
	segs   []segment
	cur    segment
	tokens []string // what the line is, whatever its spacing
}

const maxDepth = 4

func scan(s string, depth int) *scanner {
	c := &scanner{s: s, depth: depth}
	if depth > maxDepth {
		c.odd = true
		return c
	}
	for c.at < len(c.s) {
		c.step()
	}
	c.end(";")
	if n := len(c.tokens); n > 0 && c.tokens[n-1] == "\x01;" {
		c.tokens = c.tokens[:n-1]
	}
	return c
}

func (c *scanner) peek(prefix string) bool { return strings.HasPrefix(c.s[c.at:], prefix) }

func (c *scanner) step() {
	switch b := c.s[c.at]; {
	case b == ' ' || b == '\t':
		c.at++
	case c.peek("\\\n"):
		// Right after something else it would join what is read apart here.
		c.odd = c.odd || c.at > 0 && strings.IndexByte(" \t\n", c.s[c.at-1]) < 0
		c.at += 2
	case b == '#':
		c.comment()
	case c.peek("&>"):
		c.redirect("&")
	case strings.IndexByte("\n;&|()", b) >= 0:
		c.operator()
	case b == '<' || b == '>':
		c.redirect("")
	case b >= '0' && b <= '9' && c.number() != "":
		n := c.number()
		c.at += len(n)
		c.redirect(n)
	default:
		c.add(c.word())
	}
}

// number is the descriptor in front of a redirection.
func (c *scanner) number() string {
	i := c.at
	for i < len(c.s) && c.s[i] >= '0' && c.s[i] <= '9' {
		i++
	}
	if i < len(c.s) && (c.s[i] == '<' || c.s[i] == '>') {
		return c.s[c.at:i]
	}
	return ""
}

func (c *scanner) operator() {
	op := c.s[c.at : c.at+1]
	for _, long := range []string{"&&", "||", "|&", ";;"} {
		if c.peek(long) {
			op = long
		}
	}
	c.at += len(op)
	switch op {
	case "\n":
		op = ";"
	case ";;", "(", ")":
		c.odd = true
	}
	c.end(op)
}

// end closes a simple command.
func (c *scanner) end(op string) {
	empty := len(c.cur.words)+len(c.cur.assigns)+len(c.cur.redirects) == 0
	if !empty {
		c.segs = append(c.segs, c.cur)
	}
	c.cur = segment{piped: op == "|" || op == "|&"}
	if op != ";" || !empty {
		c.tokens = append(c.tokens, "\x01"+op)
	}
}

func (c *scanner) add(w word) {
	c.tokens = append(c.tokens, w.canon)
	if len(c.cur.words) == 0 && w.assign {
		c.cur.assigns = append(c.cur.assigns, w)
		return
	}
	c.cur.words = append(c.cur.words, w)
}

func isName(s string) bool {
	for i := range len(s) {
		if !nameByte(s[i]) || i == 0 && s[i] <= '9' {
			return false
		}
	}
	return s != ""
}

func nameByte(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// comment skips one. Not every shell knows comments, so one that would be more
// than plain words elsewhere makes the line odd.
func (c *scanner) comment() {
	if c.odd {
		c.at++
		return
	}
	line, _, _ := strings.Cut(c.s[c.at:], "\n")
	if strings.ContainsAny(line, "'\"`$;&|<>()\\{}") {
		c.odd = true
		c.at++ // what follows is examined as if it ran
		return
	}
	c.at += len(line)
}

func (c *scanner) redirect(fd string) {
	op := ""
	if fd == "&" {
		c.at++
	}
	for _, o := range []string{"<<<", "<<-", "<<", "<&", "<>", "<(", ">>", ">&", ">|", ">(", "<", ">"} {
		if c.peek(o) {
			op = o
			break
		}
	}
	c.at += len(op)
	switch op {
	case "<<<", "<<-", "<<", "<(", ">(":
		c.odd = true
		c.tokens = append(c.tokens, "\x01"+op)
		if op[1] == '(' {
			c.end(";")
		}
		return
	}
	for c.at < len(c.s) && (c.s[c.at] == ' ' || c.s[c.at] == '\t') {
		c.at++
	}
	if c.at >= len(c.s) || strings.IndexByte("\n;&|()<>", c.s[c.at]) >= 0 {
		c.odd = true
		return
	}
	to := c.word()
	c.tokens = append(c.tokens, "\x01"+fd+op, to.canon)
	if (op == ">&" || op == "<&") && to.literal() && (to.text == "-" || strings.Trim(to.text, "0123456789") == "") {
		return // a copy of a descriptor
	}
	c.cur.redirects = append(c.cur.redirects, redirect{fd + op, to})
}
