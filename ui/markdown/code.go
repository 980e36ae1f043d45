package markdown

import "strings"

// tab is how wide a tab is drawn: a label has no tab stops.
const tab = 4

// codeBlock makes a block of code, coloured if the language is known.
func codeBlock(lang, src string) Block {
	src = strings.TrimRight(src, "\n")
	b := Block{Kind: Code, Lang: lang}
	if len(src) > MaxCodeBytes {
		keep := strings.ToValidUTF8(src[:MaxCodeBytes], "")
		b.Cut, src = len(src)-len(keep), keep
	}
	b.Lines = Highlight(lang, src)
	if len(b.Lines) > MaxCodeLines {
		for _, l := range b.Lines[MaxCodeLines:] {
			for _, t := range l {
				b.Cut += len(t.Text)
			}
			b.Cut++
		}
		b.Lines = b.Lines[:MaxCodeLines]
	}
	return b
}

// maxHighlight bounds what is coloured.
const maxHighlight = 128 << 10

// Highlight splits code into lines of coloured pieces. Tabs become spaces up to
// the next stop.
func Highlight(lang, src string) [][]Token {
	name, _, _ := strings.Cut(lang, " ")
	if name == "diff" || name == "patch" {
		return diff(src)
	}
	if l, ok := languageOf(name); ok && len(src) <= maxHighlight {
		return split(scan(l, src))
	}
	return split([]Token{{Text: src}})
}

// diff colours lines by their first sign.
func diff(src string) [][]Token {
	lines := split([]Token{{Text: src}})
	for i, l := range lines {
		if len(l) == 0 || l[0].Text == "" {
			continue
		}
		switch t := l[0].Text; {
		case strings.HasPrefix(t, "@@"), strings.HasPrefix(t, "diff "), strings.HasPrefix(t, "+++"), strings.HasPrefix(t, "---"), strings.HasPrefix(t, "index "):
			lines[i][0].Class = Hunk
		case t[0] == '+':
			lines[i][0].Class = Added
		case t[0] == '-':
			lines[i][0].Class = Removed
		}
	}
	return lines
}

// split cuts tokens at line feeds and expands tabs.
func split(all []Token) [][]Token {
	lines, col := [][]Token{nil}, 0
	for _, t := range all {
		for i, part := range strings.Split(t.Text, "\n") {
			if i > 0 {
				lines, col = append(lines, nil), 0
			}
			if part == "" {
				continue
			}
			part, col = expand(strings.TrimSuffix(part, "\r"), col)
			k := len(lines) - 1
			lines[k] = append(lines[k], Token{Text: part, Class: t.Class})
		}
	}
	return lines
}

func expand(s string, col int) (string, int) {
	if !strings.Contains(s, "\t") {
		return s, col + len([]rune(s))
	}
	var b strings.Builder
	for _, r := range s {
		if r != '\t' {
			b.WriteRune(r)
			col++
			continue
		}
		n := tab - col%tab
		b.WriteString(strings.Repeat(" ", n))
		col += n
	}
	return b.String(), col
}
