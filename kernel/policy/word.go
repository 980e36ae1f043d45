package policy

import "strings"

// builder gathers a word.
type builder struct {
	word
	text, canon strings.Builder
}

// quoted adds a character that stands for itself.
func (b *builder) quoted(ch byte) {
	b.text.WriteByte(ch)
	if strings.IndexByte("*?[]~$\\{}`'\"", ch) >= 0 {
		b.canon.WriteByte('\\')
	}
	b.canon.WriteByte(ch)
}

func (b *builder) bare(s string) {
	b.text.WriteString(s)
	b.canon.WriteString(s)
}

// word reads one word; it stands at its first character.
func (c *scanner) word() word {
	var b builder
	start := c.at
	for c.at < len(c.s) && strings.IndexByte(" \t\n;&|()<>", c.s[c.at]) < 0 {
		ch := c.s[c.at]
		switch ch {
		case '\\':
			c.escape(&b)
			continue
		case '\'':
			c.single(&b)
			continue
		case '"':
			c.double(&b)
			continue
		case '$', '`':
			c.expand(&b, false)
			continue
		case '*', '?', '[':
			b.glob = true
		case '=':
			b.assign = b.assign || isName(strings.TrimSuffix(c.s[start:c.at], "+"))
		case '{':
			c.brace()
		case '~':
			prev := byte(0)
			if c.at > start {
				prev = c.s[c.at-1]
			}
			b.tilde = b.tilde || prev == 0 || prev == '=' || prev == ':'
		}
		b.bare(c.s[c.at : c.at+1])
		c.at++
	}
	b.word.text, b.word.canon = b.text.String(), b.canon.String()
	if b.word.text == "[" {
		b.glob = false // the command
	}
	if b.word.canon == "" {
		b.word.canon = `""`
	}
	return b.word
}

func (c *scanner) escape(b *builder) {
	c.at++
	if c.at >= len(c.s) {
		c.odd = true
		return
	}
	ch := c.s[c.at]
	c.at++
	if ch == '\n' { // what it joins may be an expansion
		c.odd = true
		return
	}
	if nameByte(ch) { // needless, or another system's path
		c.odd = true
	}
	b.quoted(ch)
}

func (c *scanner) single(b *builder) {
	c.at++
	n := strings.IndexByte(c.s[c.at:], '\'')
	if n < 0 {
		c.odd = true
		n = len(c.s) - c.at
	}
	for _, ch := range []byte(c.s[c.at : c.at+n]) {
		b.quoted(ch)
	}
	c.at = min(c.at+n+1, len(c.s))
}

func (c *scanner) double(b *builder) {
	c.at++
	for c.at < len(c.s) {
		switch ch := c.s[c.at]; ch {
		case '"':
			c.at++
			return
		case '$', '`':
			c.expand(b, true)
		case '\\':
			c.at++
			if c.at < len(c.s) && strings.IndexByte("$`\"\\\n", c.s[c.at]) >= 0 {
				if c.s[c.at] != '\n' {
					b.quoted(c.s[c.at])
				} else {
					c.odd = true
				}
				c.at++
				continue
			}
			b.quoted('\\')
		default:
			b.quoted(ch)
			c.at++
		}
	}
	c.odd = true
}

// brace looks at what may be several words in one, or a group of commands.
func (c *scanner) brace() {
	rest := c.s[c.at+1:]
	rest = rest[:min(len(rest), maxPath+1)]
	if n := strings.IndexAny(rest, " \t\n;&|"); n >= 0 {
		rest = rest[:n]
	}
	if rest == "" || len(rest) > maxPath || strings.Contains(rest, ",") || strings.Contains(rest, "..") {
		c.odd = true
	}
}

// expand reads a variable or a substitution, whose commands it examines too.
func (c *scanner) expand(b *builder, quoted bool) {
	rest := c.s[c.at:]
	switch {
	case rest[0] == '`':
		c.substitute(b, "`", strings.IndexByte(rest[1:], '`'), 1)
	case strings.HasPrefix(rest, "$("):
		c.substitute(b, "$(", closing(rest[2:], '(', ')'), 2)
	case strings.HasPrefix(rest, "${"):
		n := strings.IndexByte(rest, '}')
		if n < 0 || !isName(rest[2:n]) {
			c.odd = true
		}
		if n < 0 {
			n = 1
		}
		b.vars = true
		b.bare(rest[:n+1])
		c.at += n + 1
	case len(rest) > 1 && (nameByte(rest[1]) || strings.IndexByte("@*#?-$!", rest[1]) >= 0):
		n := 2
		for nameByte(rest[1]) && n < len(rest) && nameByte(rest[n]) {
			n++
		}
		b.vars = true
		if quoted {
			b.canon.WriteByte('"')
		}
		b.bare(rest[:n])
		c.at += n
	default:
		if len(rest) > 1 && (rest[1] == '[' || !quoted && (rest[1] == '\'' || rest[1] == '"')) {
			c.odd = true
		}
		b.quoted('$')
		c.at++
	}
}

// substitute reads a substitution whose body has n bytes, or no end.
func (c *scanner) substitute(b *builder, open string, n, skip int) {
	c.odd, b.vars = true, true
	body := c.s[c.at+skip:]
	if n >= 0 {
		body = body[:n]
	}
	c.at = min(c.at+skip+len(body)+1, len(c.s))
	in := scan(body, c.depth+1)
	c.segs = append(c.segs, in.segs...)
	b.bare(open + strings.Join(in.tokens, "\x00") + ")")
}

// closing finds the end of a bracket by count alone.
func closing(s string, open, shut byte) int {
	level := 0
	for i := range len(s) {
		switch s[i] {
		case open:
			level++
		case shut:
			if level == 0 {
				return i
			}
			level--
		}
	}
	return -1
}
