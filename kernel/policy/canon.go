package policy

import "strings"

// canonical is a command as a list that spacing, quoting and an outer shell that
// only runs it do not change.
func canonical(text string) []string {
	for range maxDepth {
		c := scan(text, 0)
		if script, ok := c.onlyScript(); ok {
			text = script
			continue
		}
		if strings.Contains(text, "<<") { // the text below is data, and its spacing counts
			return []string{strings.TrimSpace(text)}
		}
		return c.tokens
	}
	return []string{strings.TrimSpace(text)}
}

// onlyScript finds the script of a command that is one shell and its script.
func (c *scanner) onlyScript() (string, bool) {
	if c.odd || len(c.segs) != 1 || len(c.tokens) != 3 {
		return "", false
	}
	w := c.segs[0].words
	if len(w) == 3 && w[0].literal() && isShell(base(w[0].text)) && (w[1].text == "-c" || w[1].text == "-lc") && w[2].literal() {
		return w[2].text, true
	}
	return "", false
}

// Join writes words as one line that a shell splits into the same words.
func Join(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n\\'\"`$;&|<>()*?[]{}~#!") || i == 0 && strings.Contains(w, "=") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
