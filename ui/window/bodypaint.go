package window

import (
	"image"
	"strings"
	"unicode/utf8"

	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/unit"

	"witan/ui/markdown"
	"witan/ui/theme"
)

// paint draws the body; what did not change is replayed.
func (u *UI) paintBody(gtx C, b *body) D {
	if !b.drawn {
		if b.ops == nil || b.since == u.bodies.frame {
			b.ops = new(op.Ops) // this frame has a call of the old ones
		}
		b.since = u.bodies.frame
		b.ops.Reset()
		m := op.Record(b.ops)
		in := gtx
		in.Ops = b.ops
		for i := range b.blocks {
			u.paintBlock(in, &b.blocks[i])
		}
		b.call, b.drawn = m.Stop(), true
	}
	b.call.Add(gtx.Ops)
	return D{Size: b.size}
}

func (u *UI) paintBlock(gtx C, p *placed) {
	b, ops := &p.block, gtx.Ops
	for q := range b.Quote {
		x := gtx.Dp(unit.Dp(14 * q))
		fillRound(ops, image.Rect(x, p.rect.Min.Y, x+gtx.Dp(3), p.rect.Max.Y), gtx.Dp(1), u.pal.Strong)
	}
	switch b.Kind {
	case markdown.Rule:
		mid := (p.rect.Min.Y + p.rect.Max.Y) / 2
		fill(ops, image.Rect(p.rect.Min.X, mid, p.rect.Max.X, mid+1), u.pal.Line)
	case markdown.Code:
		box(ops, p.rect, gtx.Dp(theme.RadiusRow), u.pal.Background, u.pal.Line)
		u.changes(gtx, p)
	case markdown.Table:
		for i, c := range p.cells {
			c = c.Add(p.rect.Min)
			if i < len(b.Rows[0]) {
				fill(ops, c, u.pal.Background)
			}
			fill(ops, image.Rect(c.Min.X, c.Max.Y-1, c.Max.X, c.Max.Y), u.pal.Line)
		}
	}
	u.marker(gtx, p)
	for _, q := range p.paras {
		t := op.Offset(p.rect.Min.Add(q.pos)).Push(ops)
		q.para.Paint(ops, u.shaper)
		t.Pop()
	}
}

// changes draws the grounds of added and removed lines over the whole width.
func (u *UI) changes(gtx C, p *placed) {
	at := 0
	for _, l := range p.block.Lines {
		n := 1 // the line feed
		for _, t := range l {
			n += utf8.RuneCountInString(t.Text)
		}
		if len(l) > 0 && (l[0].Class == markdown.Added || l[0].Class == markdown.Removed) {
			ground := u.pal.OkSoft
			if l[0].Class == markdown.Removed {
				ground = u.pal.BadSoft
			}
			for _, r := range p.paras[0].para.Rects(at, at+n-1) {
				r = r.Add(p.rect.Min.Add(p.paras[0].pos))
				fill(gtx.Ops, image.Rect(p.rect.Min.X+1, r.Min.Y, p.rect.Max.X-1, r.Max.Y), ground)
			}
		}
		at += n
	}
}

// marker draws what stands before a list item.
func (u *UI) marker(gtx C, p *placed) {
	b := &p.block
	if b.Marker == "" {
		return
	}
	x, y := p.rect.Min.X-gtx.Dp(12), p.rect.Min.Y+gtx.Sp(theme.Body.Line)/2
	switch {
	case b.Task != markdown.NoTask:
		r := image.Rect(0, 0, gtx.Dp(12), gtx.Dp(12)).Add(image.Pt(x-gtx.Dp(3), y-gtx.Dp(6)))
		if b.Task == markdown.Done {
			fillRound(gtx.Ops, r, gtx.Dp(3), u.pal.Ok)
			u.tick(gtx, r.Min, u.pal.Panel)
		} else {
			box(gtx.Ops, r, gtx.Dp(3), u.pal.Panel, u.pal.Third)
		}
	case b.Marker == "•":
		disc(gtx.Ops, image.Pt(x+gtx.Dp(2), y), gtx.Dp(5), u.pal.Ink)
	default:
		w := u.width(gtx, theme.Body, b.Marker)
		at(layout.Context{Ops: gtx.Ops, Metric: gtx.Metric, Constraints: layout.Constraints{Max: image.Pt(w+2, 100)}}, p.rect.Min.X-w-gtx.Dp(5), p.rect.Min.Y, func(gtx C) D {
			return u.label(gtx, theme.Body, u.pal.Second, b.Marker)
		})
	}
}

// hit finds the place in the text that is nearest to a point.
func (b *body) hit(pt image.Point) textPos {
	best, at := 0, 1<<30
	for i, p := range b.paras {
		r := image.Rectangle{Min: p.pos, Max: p.pos.Add(p.para.Size)}
		dy := max(r.Min.Y-pt.Y, pt.Y-r.Max.Y+1, 0)
		dx := max(r.Min.X-pt.X, pt.X-r.Max.X, 0)
		if d := dy*4 + dx; d < at {
			best, at = i, d
		}
	}
	if len(b.paras) == 0 {
		return textPos{}
	}
	p := b.paras[best]
	return textPos{para: best, rune: p.para.Hit(pt.Sub(p.pos))}
}

// textPos is a place between two characters of a body.
type textPos struct{ para, rune int }

func (p textPos) before(q textPos) bool {
	return p.para < q.para || p.para == q.para && p.rune < q.rune
}

// end is the place after the last character.
func (b *body) end() textPos {
	if len(b.paras) == 0 {
		return textPos{}
	}
	k := len(b.paras) - 1
	return textPos{para: k, rune: b.paras[k].para.Runes()}
}

// paintSelection draws what lies behind the characters between two places.
func (b *body) paintSelection(gtx C, from, to textPos, c colour) {
	for i := from.para; i <= to.para && i < len(b.paras); i++ {
		p, lo, hi := b.paras[i], 0, b.paras[i].para.Runes()
		if i == from.para {
			lo = from.rune
		}
		if i == to.para {
			hi = to.rune
		}
		t := op.Offset(p.pos).Push(gtx.Ops)
		p.para.Select(gtx.Ops, lo, hi, c)
		t.Pop()
	}
}

// between is the text between two places; paragraphs are on lines of their own.
func (b *body) between(from, to textPos) string {
	var out strings.Builder
	for i := from.para; i <= to.para && i < len(b.paras); i++ {
		r := []rune(b.paras[i].para.Text())
		lo, hi := 0, len(r)
		if i == from.para {
			lo = min(from.rune, hi)
		}
		if i == to.para {
			hi = min(to.rune, hi)
		}
		if i > from.para {
			out.WriteByte('\n')
		}
		out.WriteString(string(r[lo:max(hi, lo)]))
	}
	return out.String()
}

// words is all text of the body.
func (b *body) words() string { return b.between(textPos{}, b.end()) }
