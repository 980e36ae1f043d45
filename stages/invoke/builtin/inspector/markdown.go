package inspector

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
)

func isMarkdown(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".md" || ext == ".markdown"
}

// document is a Markdown file as far as links are concerned.
type document struct {
	text    []byte          // the file with code and comments blanked, offsets kept
	anchors map[string]bool // headings and named elements, see fold
	links   []mdLink
	ends    lineEnds
}

type mdLink struct {
	dest     string
	line     int
	from, to int // the destination as written, without angle brackets
}

var (
	mdFence   = regexp.MustCompile("^ {0,3}(?:[-*+>] +|\\d+[.)] +)*\\s*(`{3,}|~{3,})(.*)$")
	mdList    = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,9}[.)])(?:\s|$)`)
	mdHeading = regexp.MustCompile(`^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$`)
	mdDef     = regexp.MustCompile(`(?m)^ {0,3}\[([^\]\n^][^\]\n]*)\]:[ \t]*(<[^>\n]*>|\S+)`)
	mdNamed   = regexp.MustCompile(`(?i)<[a-z][a-z0-9]*\b[^>]*?\b(?:id|name)\s*=\s*["']?([^"'\s>]+)`)
	mdHTML    = regexp.MustCompile(`(?is)<h[1-6][^>]*>(.*?)</h[1-6]>`)
	mdCustom  = regexp.MustCompile(`\{\s*#([^\s}]+)[^}]*\}\s*$`)
	mdInside  = regexp.MustCompile(`!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])`)
	htmlTag   = regexp.MustCompile(`<[^>]*>`)
	htmlBlock = regexp.MustCompile(`(?is)<!--.*?-->|<(pre|script|style|code)\b[^>]*>.*?</(?:pre|script|style|code)>`)
)

func parseMarkdown(b []byte) *document {
	d := &document{text: bytes.Clone(b), anchors: map[string]bool{}, ends: indexLines(b)}
	d.headings(blankBlocks(d.text))
	blankSpans(d.text)
	d.inline()
	for _, m := range mdDef.FindAllSubmatchIndex(d.text, -1) {
		d.link(string(d.text[m[4]:m[5]]), m[4])
	}
	return d
}

// blankBlocks blanks front matter, fenced and indented code and returns the
// lines that remain, so that headings are read before their code spans go.
func blankBlocks(b []byte) []string {
	var out []string
	fence, list, gap, front := "", false, true, false
	offset, n := 0, 0
	for l := range bytes.Lines(b) {
		n++
		line := strings.TrimRight(string(l), "\r\n")
		start, end := offset, offset+len(line)
		offset += len(l)
		trimmed := strings.TrimSpace(line)
		indented := (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")) && trimmed != ""
		code := false
		switch m := mdFence.FindStringSubmatch(line); {
		case n == 1 && trimmed == "---" && bytes.Contains(b[offset:], []byte("\n---")):
			front, code = true, true
		case front:
			code = true
			front = trimmed != "---"
		case fence != "":
			code = true
			if inner := strings.TrimLeft(trimmed, "> "); strings.HasPrefix(inner, fence) && strings.Trim(inner, fence[:1]) == "" {
				fence = ""
			}
		case m != nil && (m[1][0] == '~' || !strings.Contains(m[2], "`")):
			fence, code = m[1], true
		case indented && gap && !list:
			code = true
		}
		if code {
			blank(b, start, end)
			line = ""
		}
		if !code && mdList.MatchString(line) {
			list = true
		} else if !code && trimmed != "" && line[0] != ' ' && line[0] != '\t' && gap {
			list = false
		}
		gap = trimmed == "" || code && fence == ""
		out = append(out, line)
	}
	return out
}

// blankSpans blanks HTML comments, HTML code and code spans. A span of
// backticks ends at a run of the same length in the same paragraph.
func blankSpans(b []byte) {
	for _, m := range htmlBlock.FindAllIndex(b, -1) {
		blank(b, m[0], m[1])
	}
	const longest = 64        // backticks of a span
	var none [longest + 1]int // no run of that length before this offset
	for i := 0; i < len(b); {
		if b[i] == '\\' {
			i += 2
			continue
		}
		if b[i] != '`' {
			i++
			continue
		}
		n := run(b, i)
		if n > longest || i < none[n] {
			i += n
			continue
		}
		end, found := closing(b, i+n, n)
		if found {
			blank(b, i, end)
		} else {
			none[n] = end
			end = i + n
		}
		i = end
	}
}

// closing finds the end of the run of n backticks at or after i; if there is
// none in the paragraph, the end of that.
func closing(b []byte, i, n int) (end int, found bool) {
	for i < len(b) {
		switch {
		case b[i] == '\n' && (i+1 == len(b) || b[i+1] == '\n' || b[i+1] == '\r'):
			return i, false
		case b[i] != '`':
			i++
		default:
			k := run(b, i)
			if i += k; k == n {
				return i, true
			}
		}
	}
	return i, false
}

func run(b []byte, i int) int {
	n := 0
	for i+n < len(b) && b[i+n] == '`' {
		n++
	}
	return n
}

func blank(b []byte, from, to int) {
	for i := from; i < to; i++ {
		if b[i] != '\n' && b[i] != '\r' {
			b[i] = ' '
		}
	}
}

// headings collects every anchor the document offers.
func (d *document) headings(lines []string) {
	count := map[string]int{}
	put := func(text string) {
		if m := mdCustom.FindStringSubmatch(text); m != nil {
			d.anchors[fold(m[1])] = true
			text = strings.TrimSuffix(text, m[0])
		}
		slug := fold(plainHeading(text))
		if n := count[slug]; n > 0 {
			d.anchors[fmt.Sprintf("%s%d", slug, n)] = true
		} else {
			d.anchors[slug] = true
		}
		count[slug]++
	}
	for i, l := range lines {
		if m := mdHeading.FindStringSubmatch(l); m != nil {
			put(m[2])
		} else if t := strings.TrimSpace(l); i > 0 && t != "" && (strings.Trim(t, "=") == "" || strings.Trim(t, "-") == "") && strings.TrimSpace(lines[i-1]) != "" {
			put(lines[i-1])
		}
	}
	all := strings.Join(lines, "\n")
	for _, m := range mdHTML.FindAllStringSubmatch(all, -1) {
		put(m[1])
	}
	for _, m := range mdNamed.FindAllStringSubmatch(all, -1) {
		d.anchors[fold(m[1])] = true
	}
}

// plainHeading is a heading without links and tags. Brackets in code are no
// links; fold would drop them in any case.
func plainHeading(text string) string {
	parts := strings.Split(text, "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("[", "", "]", "", "(", "", ")", "", "<", "", ">", "").Replace(parts[i])
	}
	return htmlTag.ReplaceAllString(mdInside.ReplaceAllString(strings.Join(parts, ""), "$1"), "")
}

// fold reduces a heading or an anchor to its letters and digits. Renderers
// disagree about everything else; a heading that is missing differs in these.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// inline collects links and pictures of the form [text](destination "title").
func (d *document) inline() {
	b := d.text
	for i := 0; ; {
		k := bytes.Index(b[i:], []byte("]("))
		if k < 0 {
			return
		}
		at := i + k
		i = at + 2
		if at > 0 && b[at-1] == '\\' || !opened(b, at) {
			continue
		}
		if dest, from, ok := destination(b, i); ok {
			d.link(dest, from)
		}
	}
}

// longestLink bounds the text and the destination of a link, in bytes.
const longestLink = 2000

// opened reports whether a bracket of the same paragraph matches the closing
// one at end.
func opened(b []byte, end int) bool {
	depth := 1
	for i := end - 1; i >= max(0, end-longestLink); i-- {
		if b[i] == '\n' && i > 0 && b[i-1] == '\n' {
			return false
		}
		if i > 0 && b[i-1] == '\\' {
			continue
		}
		switch b[i] {
		case ']':
			depth++
		case '[':
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// destination reads what stands in the parentheses that open before i.
func destination(b []byte, i int) (dest string, from int, ok bool) {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n') {
		i++
	}
	from = i
	if i < len(b) && b[i] == '<' {
		end := bytes.IndexAny(b[i:], ">\n")
		if end < 0 || b[i+end] != '>' {
			return "", 0, false
		}
		i += end + 1
	} else {
		for depth := 0; i < len(b) && b[i] > ' ' && i-from < longestLink; i++ {
			if b[i] == '\\' && i+1 < len(b) {
				i++
			} else if b[i] == '(' {
				depth++
			} else if b[i] == ')' {
				if depth == 0 {
					break
				}
				depth--
			}
		}
	}
	if i > len(b) {
		return "", 0, false
	}
	dest = string(b[from:i])
	rest := bytes.TrimLeft(b[i:], " \t\r\n")
	if len(rest) == 0 || dest == "" || !bytes.ContainsAny(rest[:1], `)"'(`) {
		return "", 0, false
	}
	return dest, from, true
}

var mdEscape = regexp.MustCompile(`\\([!-/:-@\[-` + "`" + `{-~])`)

func (d *document) link(dest string, at int) {
	line := d.ends.line(at)
	if strings.HasPrefix(dest, "<") {
		dest = strings.TrimSuffix(dest[1:], ">")
		at++
	}
	if dest == "" {
		return
	}
	d.links = append(d.links, mdLink{dest: mdEscape.ReplaceAllString(dest, "$1"), line: line, from: at, to: at + len(dest)})
}
