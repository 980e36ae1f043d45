package rich

import (
	"image"
	"image/color"

	"gioui.org/f32"
	"gioui.org/op"
	"gioui.org/op/clip"
	"gioui.org/op/paint"
	"gioui.org/text"
	"golang.org/x/image/math/fixed"
)

func float(v fixed.Int26_6) float32 { return float32(v) / 64 }

// Paint draws the paragraph at the origin.
func (p *Para) Paint(ops *op.Ops, sh *text.Shaper) {
	for i := range p.lines {
		l := &p.lines[i]
		for _, r := range l.runs {
			p.chip(ops, l, r)
		}
		for _, r := range l.runs {
			p.run(ops, sh, l, r)
		}
	}
}

// chip draws what lies behind a run.
func (p *Para) chip(ops *op.Ops, l *line, r run) {
	s := p.spans[r.span]
	if s.Chip.A == 0 {
		return
	}
	box := image.Rect(r.x.Floor(), l.top+1, r.end.Ceil(), l.top+l.height-1)
	defer clip.UniformRRect(box, 4).Push(ops).Pop()
	paint.Fill(ops, s.Chip)
}

func (p *Para) run(ops *op.Ops, sh *text.Shaper, l *line, r run) {
	s := p.spans[r.span]
	base := l.top + l.baseline
	defer op.Affine(f32.AffineId().Offset(f32.Pt(float(r.glyphs[0].X), float32(base)))).Push(ops).Pop()
	outline := clip.Outline{Path: sh.Shape(r.glyphs)}.Op().Push(ops)
	paint.Fill(ops, s.Color)
	outline.Pop()
	if call := sh.Bitmaps(r.glyphs); call != (op.CallOp{}) {
		call.Add(ops)
	}
	w := (r.end - r.x).Round()
	if s.Underline {
		bar(ops, image.Rect(0, 2, w, 3), s.Color)
	}
	if s.Strike {
		bar(ops, image.Rect(0, -5, w, -4), s.Color)
	}
}

func bar(ops *op.Ops, r image.Rectangle, c color.NRGBA) {
	defer clip.Rect(r).Push(ops).Pop()
	paint.Fill(ops, c)
}

// Select draws what lies behind the characters from one place to another.
func (p *Para) Select(ops *op.Ops, from, to int, c color.NRGBA) {
	for _, r := range p.Rects(from, to) {
		bar(ops, r, c)
	}
}

// Rects are the boxes of the characters from one place to another, one a line.
func (p *Para) Rects(from, to int) []image.Rectangle {
	var out []image.Rectangle
	for _, l := range p.lines {
		at := l.first
		box := image.Rectangle{}
		for _, c := range l.clusters {
			if at < to && at+c.runes > from {
				r := image.Rect(c.x.Floor(), l.top, max((c.x+c.advance).Ceil(), c.x.Floor()+3), l.top+l.height)
				if box.Empty() {
					box = r
				}
				box = box.Union(r)
			}
			at += c.runes
		}
		if !box.Empty() {
			out = append(out, box)
		}
	}
	return out
}

// Hit is the place between characters that is nearest to a point.
func (p *Para) Hit(pt image.Point) int {
	i := 0
	for i < len(p.lines)-1 && pt.Y >= p.lines[i].top+p.lines[i].height {
		i++
	}
	l := p.lines[i]
	at := l.first
	for _, c := range l.clusters {
		if c.feed || fixed.I(pt.X) < c.x+c.advance/2 {
			return at
		}
		at += c.runes
	}
	if i < len(p.lines)-1 && at > l.first && len(l.clusters) > 0 && l.clusters[len(l.clusters)-1].space {
		at-- // the space at which the line was broken
	}
	return at
}

// Link is where the text at a point leads, "" if nowhere.
func (p *Para) Link(pt image.Point) string {
	for _, l := range p.lines {
		if pt.Y < l.top || pt.Y >= l.top+l.height {
			continue
		}
		for _, r := range l.runs {
			if fixed.I(pt.X) >= r.x && fixed.I(pt.X) < r.end {
				return p.spans[r.span].Link
			}
		}
	}
	return ""
}

// HasLinks reports whether any of its text leads anywhere.
func (p *Para) HasLinks() bool {
	for _, s := range p.spans {
		if s.Link != "" {
			return true
		}
	}
	return false
}
