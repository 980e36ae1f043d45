package window

import (
	"image"
	"image/color"
	"strings"

	"gioui.org/f32"
	"gioui.org/io/event"
	"gioui.org/io/pointer"
	"gioui.org/io/semantic"
	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/op/clip"
	"gioui.org/op/paint"
	"gioui.org/unit"
	"gioui.org/widget"

	"witan/kernel/plaintext"
	"witan/ui/theme"
)

type (
	colour = color.NRGBA

	// C is what a widget is laid out with.
	C = layout.Context
	// D is what became of it.
	D = layout.Dimensions
)

// fill paints a rectangle.
func fill(ops *op.Ops, r image.Rectangle, c color.NRGBA) {
	defer clip.Rect(r).Push(ops).Pop()
	paint.Fill(ops, c)
}

// fillRound paints a rectangle with round corners.
func fillRound(ops *op.Ops, r image.Rectangle, radius int, c color.NRGBA) {
	defer clip.UniformRRect(r, radius).Push(ops).Pop()
	paint.Fill(ops, c)
}

// box paints a rectangle with round corners and a border one pixel wide inside it.
func box(ops *op.Ops, r image.Rectangle, radius int, inside, border color.NRGBA) {
	fillRound(ops, r, radius, border)
	fillRound(ops, r.Inset(1), max(radius-1, 0), inside)
}

// disc paints a circle.
func disc(ops *op.Ops, center image.Point, diameter int, c color.NRGBA) {
	r := image.Rectangle{Min: center.Sub(image.Pt(diameter/2, diameter/2))}
	r.Max = r.Min.Add(image.Pt(diameter, diameter))
	defer clip.Ellipse(r).Push(ops).Pop()
	paint.Fill(ops, c)
}

// stroke paints a line through points.
func stroke(ops *op.Ops, width float32, c color.NRGBA, pts ...f32.Point) {
	var p clip.Path
	p.Begin(ops)
	p.MoveTo(pts[0])
	for _, pt := range pts[1:] {
		p.LineTo(pt)
	}
	defer clip.Stroke{Path: p.End(), Width: width}.Op().Push(ops).Pop()
	paint.Fill(ops, c)
}

// at lays w out with its corner at a point.
func at(gtx C, x, y int, w layout.Widget) D {
	defer op.Offset(image.Pt(x, y)).Push(gtx.Ops).Pop()
	return w(gtx)
}

// sized returns gtx with constraints for exactly a size.
func sized(gtx C, w, h int) C {
	gtx.Constraints = layout.Exact(image.Pt(max(w, 0), max(h, 0)))
	return gtx
}

// loose returns gtx with constraints up to a size.
func loose(gtx C, w, h int) C {
	gtx.Constraints = layout.Constraints{Max: image.Pt(max(w, 0), max(h, 0))}
	return gtx
}

// measured lays w out without drawing it yet.
func measured(gtx C, w layout.Widget) (op.CallOp, D) {
	m := op.Record(gtx.Ops)
	d := w(gtx)
	return m.Stop(), d
}

// label draws one line of text without what could deceive, cut with an ellipsis at the width there is. Its
// height is the line height of the style.
func (u *UI) label(gtx C, st theme.Style, c color.NRGBA, s string) D {
	s = plaintext.Clean(head(s, maxLine))
	h := gtx.Sp(st.Line)
	gtx.Constraints = layout.Constraints{Max: image.Pt(gtx.Constraints.Max.X, h*2)}
	call, d := measured(gtx, func(gtx C) D {
		return widget.Label{MaxLines: 1}.Layout(gtx, u.shaper, u.pal.Font(st), st.Size, s, u.ink(gtx, c))
	})
	defer op.Offset(image.Pt(0, (h-d.Size.Y)/2)).Push(gtx.Ops).Pop()
	call.Add(gtx.Ops)
	return D{Size: image.Pt(d.Size.X, h)}
}

// What is shown of one line and of one paragraph at most: shaping takes time with
// the length, also of what is out of sight.
const (
	maxLine      = 512
	maxParagraph = 16 << 10
)

// head is the beginning of a text, at most n bytes.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// paragraph draws text on as many lines as it needs.
func (u *UI) paragraph(gtx C, st theme.Style, c color.NRGBA, s string) D {
	return widget.Label{LineHeight: st.Line, LineHeightScale: 1}.Layout(gtx, u.shaper, u.pal.Font(st), st.Size, flat(plaintext.Clean(head(s, maxParagraph))), u.ink(gtx, c))
}

// width measures one line of text.
func (u *UI) width(gtx C, st theme.Style, s string) int {
	m := op.Record(gtx.Ops)
	d := u.label(loose(gtx, 1<<20, 1<<20), st, color.NRGBA{}, s)
	m.Stop()
	return d.Size.X
}

// ink records a colour as what text is painted with.
func (u *UI) ink(gtx C, c color.NRGBA) op.CallOp {
	m := op.Record(gtx.Ops)
	paint.ColorOp{Color: c}.Add(gtx.Ops)
	return m.Stop()
}

// control is a button, with the frame in which it was last there.
type control struct {
	widget.Clickable
	used int
}

// keepControls bounds the controls that are remembered: those of rows that were
// scrolled away long ago are forgotten.
const keepControls = 1024

// click returns the control of a name; it is made when it is first asked for.
func (u *UI) click(name string) *widget.Clickable {
	c := u.clicks[name]
	if c == nil {
		c = new(control)
		u.clicks[name] = c
	}
	c.used = u.bodies.frame
	return &c.Clickable
}

// forget lets go of controls that were not there for a while, once there are many.
func (u *UI) forget() {
	if len(u.clicks) <= keepControls {
		return
	}
	for name, c := range u.clicks {
		if u.bodies.frame-c.used > 16 {
			delete(u.clicks, name)
		}
	}
}

// press makes an area of a size a button that tests and screen readers know as
// name, draws it with w and calls do when it is pressed.
func (u *UI) press(gtx C, id, name string, w func(gtx C, hot bool) D, do func()) D {
	b := u.click(id)
	for b.Clicked(gtx) {
		if do != nil && gtx.Enabled() {
			u.later = append(u.later, do)
		}
	}
	return b.Layout(gtx, func(gtx C) D {
		// Without a clip of their own these belong to the button's area.
		semantic.Button.Add(gtx.Ops)
		semantic.DescriptionOp(plaintext.Clean(head(name, maxLine))).Add(gtx.Ops)
		d := w(gtx, b.Hovered())
		if gtx.Focused(b) {
			u.ring(gtx, d.Size)
		}
		return d
	})
}

// ring shows where the keyboard is.
func (u *UI) ring(gtx C, size image.Point) {
	r := clip.UniformRRect(image.Rectangle{Max: size}.Inset(1), gtx.Dp(theme.RadiusRow))
	defer clip.Stroke{Path: r.Path(gtx.Ops), Width: float32(gtx.Dp(2))}.Op().Push(gtx.Ops).Pop()
	paint.Fill(gtx.Ops, u.pal.Accent)
}

// look is how a button is drawn.
type look int

const (
	lookPlain  look = iota // a border
	lookStrong             // filled with ink
	lookPill               // a round border, for what is chosen or shown
	lookOn                 // a pill that is on
	lookAsks               // a pill that waits for the person
)

// button draws a button with a text.
func (u *UI) button(gtx C, id, text string, how look, do func()) D {
	return u.press(gtx, id, text, func(gtx C, hot bool) D {
		st, h, pad, radius := theme.Control, gtx.Dp(28), gtx.Dp(12), gtx.Dp(theme.RadiusRow)
		ink, inside, border := u.pal.Ink, u.pal.Panel, u.pal.Strong
		switch how {
		case lookStrong:
			st, ink, inside, border = theme.Name, u.pal.Panel, u.pal.Ink, u.pal.Ink
		case lookPill:
			h, pad, radius, ink, border = gtx.Dp(24), gtx.Dp(9), gtx.Dp(12), u.pal.Second, u.pal.Line
			st = theme.Meta
		case lookOn:
			h, pad, radius, ink, inside, border = gtx.Dp(24), gtx.Dp(9), gtx.Dp(12), u.pal.Accent, u.pal.AccentSoft, u.pal.AccentSoft
			st = theme.Meta
		case lookAsks:
			h, pad, radius, ink, inside, border = gtx.Dp(24), gtx.Dp(9), gtx.Dp(12), u.pal.Warn, u.pal.WarnSoft, u.pal.WarnSoft
			st = theme.Meta
		}
		if hot && how != lookStrong && how != lookAsks {
			inside = u.pal.Background
			if how == lookOn {
				inside = u.pal.AccentSoft
			}
		}
		call, d := measured(loose(gtx, gtx.Constraints.Max.X-2*pad, h), func(gtx C) D { return u.label(gtx, st, ink, text) })
		size := image.Pt(d.Size.X+2*pad, h)
		box(gtx.Ops, image.Rectangle{Max: size}, radius, inside, border)
		defer op.Offset(image.Pt(pad, (h-d.Size.Y)/2)).Push(gtx.Ops).Pop()
		call.Add(gtx.Ops)
		return D{Size: size}
	}, do)
}

// row lays widgets out from left to right with a gap, centred on one line, and
// wraps to further lines when there is no room.
func row(gtx C, gap unit.Dp, ws ...layout.Widget) D {
	x, y, high, wide, g := 0, 0, 0, 0, gtx.Dp(gap)
	type placed struct {
		call op.CallOp
		pos  image.Point
		h    int
	}
	var line []placed
	flush := func() {
		for _, p := range line {
			t := op.Offset(image.Pt(p.pos.X, y+(high-p.h)/2)).Push(gtx.Ops)
			p.call.Add(gtx.Ops)
			t.Pop()
		}
		line = line[:0]
	}
	for _, w := range ws {
		call, d := measured(loose(gtx, gtx.Constraints.Max.X, gtx.Constraints.Max.Y), w)
		if d.Size.X == 0 {
			continue
		}
		if x > 0 && x+d.Size.X > gtx.Constraints.Max.X {
			flush()
			y, x, high = y+high+g, 0, 0
		}
		line = append(line, placed{call, image.Pt(x, 0), d.Size.Y})
		high = max(high, d.Size.Y)
		x += d.Size.X
		wide = max(wide, x)
		x += g
	}
	flush()
	return D{Size: image.Pt(wide, y+high)}
}

// column stacks widgets; a gap of dp follows each that has a height.
func column(gtx C, gap unit.Dp, ws ...layout.Widget) D {
	y, wide := 0, 0
	for _, w := range ws {
		t := op.Offset(image.Pt(0, y)).Push(gtx.Ops)
		g := gtx
		g.Constraints.Min.Y = 0
		d := w(g)
		t.Pop()
		if d.Size.Y > 0 {
			y += d.Size.Y + gtx.Dp(gap)
		}
		wide = max(wide, d.Size.X)
	}
	return D{Size: image.Pt(wide, max(y-gtx.Dp(gap), 0))}
}

// padded lays w out with room around it.
func padded(gtx C, top, right, bottom, left unit.Dp, w layout.Widget) D {
	l, t, r, b := gtx.Dp(left), gtx.Dp(top), gtx.Dp(right), gtx.Dp(bottom)
	in := gtx
	in.Constraints.Max = image.Pt(max(gtx.Constraints.Max.X-l-r, 0), max(gtx.Constraints.Max.Y-t-b, 0))
	in.Constraints.Min = image.Pt(max(gtx.Constraints.Min.X-l-r, 0), max(gtx.Constraints.Min.Y-t-b, 0))
	d := at(in, l, t, w)
	return D{Size: d.Size.Add(image.Pt(l+r, t+b))}
}

// pressFilter asks for presses of the pointer on a tag.
func pressFilter(tag event.Tag) pointer.Filter {
	return pointer.Filter{Target: tag, Kinds: pointer.Press}
}
