// Package rich lays out and paints paragraphs of text in several styles, with
// places between characters that can be found from a point and drawn as a
// selection. Gio's own labels have one style each and cannot be selected across.
//
// A paragraph that was laid out is a value: it may be painted as often as needed,
// by the goroutine that owns the shaper that made it.
package rich

import (
	"image"
	"image/color"
	"unicode"
	"unicode/utf8"

	"gioui.org/font"
	"gioui.org/text"
	"gioui.org/unit"
	"golang.org/x/image/math/fixed"

	"witan/ui/theme"
)

// Span is a piece of text in one style. A line feed in it begins a new line.
type Span struct {
	Text      string
	Style     theme.Style
	Color     color.NRGBA
	Chip      color.NRGBA // behind the text, if not transparent; with room at both ends
	Underline bool
	Strike    bool
	Link      string
}

// Para is a paragraph that was laid out for a width.
type Para struct {
	Size     image.Point
	Baseline int // of the first line, from the top
	spans    []Span
	lines    []line
	runes    int
	text     string
}

// line is one line of clusters, drawn as runs of glyphs.
type line struct {
	top, height, baseline int
	clusters              []cluster
	runs                  []run
	first                 int // rune at which the line begins
}

// cluster is what the caret cannot enter.
type cluster struct {
	x, advance fixed.Int26_6
	lead       fixed.Int26_6 // room before the glyphs, part of the advance
	glyphs     []text.Glyph
	span       int
	runes      int
	space      bool
	feed       bool // a line feed
	breakAfter bool // a line may end after it
}

// run is a sequence of glyphs of one span on one line.
type run struct {
	span   int
	x, end fixed.Int26_6
	glyphs []text.Glyph
}

// Text is the paragraph's text.
func (p *Para) Text() string { return p.text }

// Runes counts its characters.
func (p *Para) Runes() int { return p.runes }

// Lines counts its lines.
func (p *Para) Lines() int { return len(p.lines) }

// Layout breaks spans into lines that are no wider than width pixels. The line
// height is that of the largest style.
func Layout(sh *text.Shaper, m unit.Metric, spans []Span, width int) *Para {
	p := &Para{spans: spans}
	for _, s := range spans {
		p.text += s.Text
	}
	if rtl(p.text) && len(spans) > 1 {
		// Runs of both directions are ordered by the shaper, which knows one style.
		one := spans[0]
		one.Text, one.Chip, one.Link = p.text, color.NRGBA{}, ""
		p.spans = []Span{one}
	}
	var all []cluster
	height := 0
	for i, s := range p.spans {
		all = append(all, shape(sh, m, s, i)...)
		height = max(height, m.Sp(s.Style.Line))
	}
	markBreaks(all, p.text)
	p.wrap(all, fixed.I(max(width, 1)), height)
	return p
}

func rtl(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r >= 0x0590 && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko) {
			return true
		}
		i += n
	}
	return false
}

// shape turns a span into clusters on one endless line per line feed.
func shape(sh *text.Shaper, m unit.Metric, s Span, index int) []cluster {
	var out []cluster
	size, pad := fixed.I(m.Sp(s.Style.Size)), fixed.I(m.Dp(4))
	rest := s.Text
	for {
		part, tail, feed := cutLine(rest)
		if part != "" {
			line := shapeLine(sh, s.Style.Font, size, part, index)
			if s.Chip.A != 0 && len(line) > 0 {
				line[0].lead = pad
				line[0].advance += pad
				line[len(line)-1].advance += pad
			}
			out = append(out, line...)
		}
		if !feed {
			return out
		}
		out = append(out, cluster{span: index, runes: 1, feed: true})
		rest = tail
	}
}

func cutLine(s string) (line, rest string, feed bool) {
	for i := range len(s) {
		if s[i] == '\n' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func shapeLine(sh *text.Shaper, f font.Font, size fixed.Int26_6, s string, index int) []cluster {
	sh.LayoutString(text.Parameters{Font: f, PxPerEm: size, MaxWidth: 1 << 24, DisableSpaceTrim: true}, s)
	out := make([]cluster, 0, len(s))
	var c cluster
	backing := make([]text.Glyph, 0, len(s))
	for g, ok := sh.NextGlyph(); ok; g, ok = sh.NextGlyph() {
		if len(c.glyphs) == 0 {
			c.x = g.X
		}
		c.x = min(c.x, g.X)
		n := len(backing)
		backing = append(backing, g)
		if len(c.glyphs) == 0 {
			c.glyphs = backing[n : n+1 : n+1]
		} else {
			c.glyphs = append(c.glyphs, g)
		}
		c.advance += g.Advance
		if g.Flags&text.FlagClusterBreak != 0 {
			c.runes, c.span = int(g.Runes), index
			out = append(out, c)
			c = cluster{}
		}
	}
	return out
}

// markBreaks says after which clusters a line may end.
func markBreaks(all []cluster, s string) {
	at := 0
	next := func(n int) (first, last rune) {
		for i := range n {
			r, w := utf8.DecodeRuneInString(s[at:])
			if i == 0 {
				first = r
			}
			last, at = r, at+w
		}
		return first, last
	}
	var prev rune
	for i := range all {
		first, last := next(all[i].runes)
		all[i].space = first == ' ' || first == '\u3000'
		if i > 0 && mayBreak(prev, first) {
			all[i-1].breakAfter = true
		}
		prev = last
	}
}

// mayBreak reports whether a line may end between two characters.
func mayBreak(a, b rune) bool {
	switch {
	case b == ' ':
		return false
	case a == ' ' || a == '\u3000':
		return true
	case closes(b) || opens(a):
		return false
	case wide(a) || wide(b):
		return true
	case a == '-' || a == '/' || a == '–' || a == '—':
		return unicode.IsLetter(b)
	}
	return false
}

// wide characters may stand at either end of a line.
func wide(r rune) bool {
	return r >= 0x2E80 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo) || r >= 0x3000 && r <= 0x303F || r >= 0xFF00 && r <= 0xFFEF || r >= 0x1F000)
}

// closes and opens are the signs that never begin, and never end, a line.
func closes(r rune) bool {
	switch r {
	case '，', '。', '、', '；', '：', '？', '！', '）', '」', '』', '】', '》', '”', '’', '…', '·', ',', '.', ';', ':', '?', '!', ')', ']', '}', '%':
		return true
	}
	return false
}

func opens(r rune) bool {
	switch r {
	case '（', '「', '『', '【', '《', '“', '‘', '(', '[', '{':
		return true
	}
	return false
}

// wrap puts clusters on lines.
func (p *Para) wrap(all []cluster, width fixed.Int26_6, height int) {
	rune0 := 0
	for from := 0; from < len(all); {
		to, feed := fit(all[from:], width)
		l := line{top: len(p.lines) * height, height: height, first: rune0}
		var x fixed.Int26_6
		for _, c := range all[from : from+to] {
			c.x, x = x, x+c.advance
			l.clusters = append(l.clusters, c)
			rune0 += c.runes
		}
		p.finish(&l)
		p.lines = append(p.lines, l)
		from += to
		if feed && from == len(all) {
			p.lines = append(p.lines, line{top: len(p.lines) * height, height: height, first: rune0})
		}
	}
	if len(p.lines) == 0 {
		p.lines = []line{{height: height}}
	}
	p.runes = rune0
	p.Size.Y = len(p.lines) * height
	p.Baseline = p.lines[0].baseline
}

// fit is how many clusters go on one line, and whether a line feed ended it.
func fit(all []cluster, width fixed.Int26_6) (n int, feed bool) {
	var x fixed.Int26_6
	last := 0 // after the last place where a line may end
	for i, c := range all {
		if c.feed {
			return i + 1, true
		}
		if x+c.advance > width && !c.space && i > 0 {
			if last > 0 {
				return last, false
			}
			return i, false
		}
		x += c.advance
		if c.breakAfter {
			last = i + 1
		}
	}
	return len(all), false
}

// finish makes the runs of a line and its metrics.
func (p *Para) finish(l *line) {
	var ascent, descent fixed.Int26_6
	for _, c := range l.clusters {
		if len(c.glyphs) == 0 {
			continue
		}
		k := len(l.runs) - 1
		if k < 0 || l.runs[k].span != c.span {
			l.runs = append(l.runs, run{span: c.span, x: c.x})
			k++
		}
		r := &l.runs[k]
		shift := c.x + c.lead - c.glyphs[0].X
		if len(c.glyphs) > 1 {
			low := c.glyphs[0].X
			for _, g := range c.glyphs {
				low = min(low, g.X)
			}
			shift = c.x + c.lead - low
		}
		for _, g := range c.glyphs {
			g.X += shift
			r.glyphs = append(r.glyphs, g)
			ascent, descent = max(ascent, g.Ascent), max(descent, g.Descent)
		}
		if !c.space || k >= 0 {
			r.end = c.x + c.advance
		}
		if !c.space {
			p.Size.X = max(p.Size.X, (c.x + c.advance).Ceil())
		}
	}
	l.baseline = (l.height-(ascent+descent).Round())/2 + ascent.Round()
}
