package window

import (
	"image"
	"strings"

	"gioui.org/font"
	"gioui.org/op"
	"gioui.org/unit"

	"witan/ui/markdown"
	"witan/ui/rich"
	"witan/ui/theme"
)

// body is the text of a message, parsed and laid out for one width. A text that
// grows is parsed again from its last block on; blocks before keep their layout.
type body struct {
	text   string
	width  int
	stream markdown.Stream
	blocks []placed
	paras  []placedPara // of all blocks, in reading order
	size   image.Point

	ops   *op.Ops // what was drawn, replayed while nothing changes
	call  op.CallOp
	drawn bool
	since int    // frame in which ops was filled
	used  int    // frame in which it was last asked for
	label string // what it says, for readers of the window
}

// placed is a block with its place.
type placed struct {
	block markdown.Block
	rect  image.Rectangle
	paras []placedPara // relative to rect.Min
	cells []image.Rectangle
}

type placedPara struct {
	pos  image.Point
	para *rich.Para
}

// bodyCache keeps the bodies that were drawn lately.
type bodyCache struct {
	of    map[string]*body
	frame int
}

// keepBodies bounds the cache: about three screens of short messages.
const keepBodies = 160

func (c *bodyCache) init()  { c.of = map[string]*body{} }
func (c *bodyCache) drop()  { clear(c.of) }
func (c *bodyCache) begin() { c.frame++ }

// end forgets what was not drawn for longest once there is too much.
func (c *bodyCache) end() {
	for age := 64; len(c.of) > keepBodies && age >= 0; age /= 2 {
		for k, b := range c.of {
			if c.frame-b.used > age {
				delete(c.of, k)
			}
		}
		if age == 0 {
			return
		}
	}
}

// body returns the laid out text of a key.
func (u *UI) body(gtx C, key, src string, width int) *body {
	b := u.bodies.of[key]
	if b == nil {
		b = &body{}
		u.bodies.of[key] = b
	}
	b.used = u.bodies.frame
	if b.width == width && b.text == src && b.blocks != nil {
		return b
	}
	u.reflow(gtx, b, src, width)
	return b
}

func (u *UI) reflow(gtx C, b *body, src string, width int) {
	blocks := b.stream.Update(src)
	keep := 0
	if b.width == width {
		for keep < len(b.blocks)-1 && keep < len(blocks)-1 && keep < b.stream.Kept() {
			keep++
		}
	}
	b.text, b.width, b.drawn = src, width, false
	b.blocks = b.blocks[:keep]
	y := 0
	if keep > 0 {
		y = b.blocks[keep-1].rect.Max.Y
	}
	for i := keep; i < len(blocks); i++ {
		gap := 0
		if i > 0 {
			gap = gtx.Dp(blockGap(blocks[i-1], blocks[i]))
		}
		p := u.place(gtx, blocks[i], width)
		p.rect = p.rect.Add(image.Pt(0, y+gap))
		y = p.rect.Max.Y
		b.blocks = append(b.blocks, p)
	}
	b.paras, b.size = b.paras[:0], image.Pt(width, y)
	for _, p := range b.blocks {
		for _, q := range p.paras {
			b.paras = append(b.paras, placedPara{p.rect.Min.Add(q.pos), q.para})
		}
	}
	b.label = b.words()
	if len(b.label) > maxLabel {
		b.label = strings.ToValidUTF8(b.label[:maxLabel], "") + "…"
	}
}

// maxLabel bounds what a reader of the window is told of one message.
const maxLabel = 8 << 10

// blockGap is the room between two blocks.
func blockGap(before, after markdown.Block) unit.Dp {
	switch {
	case after.Tight && after.Kind == markdown.Paragraph && before.Kind == markdown.Paragraph:
		return 1
	case after.Kind == markdown.Heading:
		return 14
	case before.Kind == markdown.Heading:
		return 4
	case after.Depth > 0 && before.Depth == 0 && before.Kind == markdown.Paragraph:
		return 4
	}
	return 8
}

// place lays a block out with its left top corner at the origin of its column.
func (u *UI) place(gtx C, b markdown.Block, width int) placed {
	left := gtx.Dp(unit.Dp(18*b.Depth)) + gtx.Dp(unit.Dp(14*b.Quote))
	left = min(left, width/2)
	p := placed{block: b}
	inner := width - left
	switch b.Kind {
	case markdown.Rule:
		p.rect = image.Rect(left, 0, width, gtx.Dp(17))
	case markdown.Code:
		px, py := gtx.Dp(12), gtx.Dp(8)
		para := rich.Layout(u.shaper, gtx.Metric, u.codeSpans(b), inner-2*px)
		p.paras = []placedPara{{image.Pt(px, py), para}}
		p.rect = image.Rect(left, 0, width, para.Size.Y+2*py)
	case markdown.Table:
		u.placeTable(gtx, &p, inner)
		p.rect = p.rect.Add(image.Pt(left, 0))
	default:
		para := rich.Layout(u.shaper, gtx.Metric, u.spans(b), inner)
		p.paras = []placedPara{{image.Point{}, para}}
		p.rect = image.Rect(left, 0, width, para.Size.Y)
	}
	return p
}

// spans gives a block's text its styles.
func (u *UI) spans(b markdown.Block) []rich.Span {
	base, ink := theme.Body, u.pal.Ink
	if b.Kind == markdown.Heading {
		base = []theme.Style{theme.Heading1, theme.Heading2, theme.Heading3}[min(max(b.Level, 1), 3)-1]
	}
	if b.Quote > 0 {
		ink = u.pal.Second
	}
	if b.Task == markdown.Done {
		ink = u.pal.Third
	}
	out := u.inline(b.Spans, base, ink)
	if b.Cut > 0 {
		out = append(out, rich.Span{Text: cutNote(b.Cut), Style: theme.Meta, Color: u.pal.Third})
	}
	return out
}

func (u *UI) inline(spans []markdown.Span, base theme.Style, ink colour) []rich.Span {
	out := make([]rich.Span, 0, len(spans))
	for _, s := range spans {
		r := rich.Span{Text: flat(s.Text), Style: base, Color: ink, Strike: s.Strike}
		switch {
		case s.Code:
			r.Style = theme.Style{Font: theme.Code12.Font, Size: base.Size * 12.5 / 14, Line: base.Line}
			r.Chip = u.pal.Sunken
		case s.Strong:
			r.Style.Font.Weight = font.SemiBold
		case s.Emph:
			r.Style.Font.Style = font.Italic
		}
		if s.Link != "" {
			r.Link, r.Color, r.Underline = s.Link, u.pal.Accent, true
		}
		r.Style.Font = u.pal.Font(r.Style)
		if s.NewLine {
			r.Text = strings.TrimRight(r.Text, " ") + "\n"
		}
		out = append(out, r)
	}
	return out
}

// flat keeps tabs out of text: they have no glyph.
func flat(s string) string { return strings.ReplaceAll(s, "\t", "    ") }

func (u *UI) codeSpans(b markdown.Block) []rich.Span {
	var out []rich.Span
	for i, l := range b.Lines {
		if i > 0 {
			out = append(out, rich.Span{Text: "\n", Style: theme.Code12, Color: u.pal.Ink})
		}
		for _, t := range l {
			out = append(out, rich.Span{Text: t.Text, Style: theme.Code12, Color: u.codeInk(t.Class)})
		}
	}
	if b.Cut > 0 {
		out = append(out, rich.Span{Text: "\n" + cutNote(b.Cut), Style: theme.Code12, Color: u.pal.Third})
	}
	if len(out) == 0 {
		out = []rich.Span{{Text: " ", Style: theme.Code12, Color: u.pal.Ink}}
	}
	return out
}

func (u *UI) codeInk(c markdown.Class) colour {
	switch c {
	case markdown.Keyword:
		return u.pal.Code.Keyword
	case markdown.String:
		return u.pal.Code.String
	case markdown.Number:
		return u.pal.Code.Number
	case markdown.Comment, markdown.Hunk:
		return u.pal.Code.Comment
	case markdown.Name:
		return u.pal.Code.Name
	case markdown.Type:
		return u.pal.Code.Type
	}
	return u.pal.Ink
}

// placeTable gives each column the width of its widest cell, or where that is too
// much a share of what there is.
func (u *UI) placeTable(gtx C, p *placed, width int) {
	rows := p.block.Rows
	if len(rows) == 0 {
		return
	}
	cols := len(rows[0])
	natural := make([]int, cols)
	padX, padY := gtx.Dp(10), gtx.Dp(5)
	style := func(r int) theme.Style {
		if r == 0 {
			return theme.Style{Font: theme.Name.Font, Size: 13, Line: 20}
		}
		return theme.Style{Font: theme.Body.Font, Size: 13, Line: 20}
	}
	for r, row := range rows[:min(len(rows), 60)] {
		for c := range min(len(row), cols) {
			para := rich.Layout(u.shaper, gtx.Metric, u.inline(row[c].Spans, style(r), u.pal.Ink), 1<<16)
			natural[c] = max(natural[c], para.Size.X+2*padX+2)
		}
	}
	widths := share(natural, width, gtx.Dp(48))
	y := 0
	for r, row := range rows {
		x, high := 0, 0
		for c := range min(len(row), cols) {
			para := rich.Layout(u.shaper, gtx.Metric, u.inline(row[c].Spans, style(r), u.pal.Ink), max(widths[c]-2*padX, 1))
			dx := padX
			switch row[c].Align {
			case markdown.Right:
				dx = widths[c] - padX - para.Size.X
			case markdown.Center:
				dx = (widths[c] - para.Size.X) / 2
			}
			p.paras = append(p.paras, placedPara{image.Pt(x+dx, y+padY), para})
			high = max(high, para.Size.Y+2*padY)
			x += widths[c]
		}
		for c, cx := 0, 0; c < cols; c++ {
			p.cells = append(p.cells, image.Rect(cx, y, cx+widths[c], y+high))
			cx += widths[c]
		}
		y += high
	}
	total := 0
	for _, w := range widths {
		total += w
	}
	p.rect = image.Rect(0, 0, total, y+1)
}

// share cuts widths down to a total: narrow columns keep theirs, wide ones give.
func share(natural []int, total, least int) []int {
	out := make([]int, len(natural))
	copy(out, natural)
	sum := 0
	for _, w := range out {
		sum += w
	}
	for sum > total {
		wide, next := 0, 0
		for _, w := range out {
			wide = max(wide, w)
		}
		n := 0
		for _, w := range out {
			if w == wide {
				n++
			} else {
				next = max(next, w)
			}
		}
		to := max(next, wide-(sum-total+n-1)/n, least)
		if to >= wide {
			break // as narrow as they get
		}
		for i, w := range out {
			if w == wide {
				out[i] = to
			}
		}
		sum -= n * (wide - to)
	}
	return out
}
