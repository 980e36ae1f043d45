package window

import (
	"image"
	"io"
	"strings"

	"gioui.org/io/clipboard"
	"gioui.org/io/event"
	"gioui.org/io/key"
	"gioui.org/io/pointer"
	"gioui.org/io/semantic"
	"gioui.org/op/clip"

	"witan/ui/model"
)

// selectable draws a body that text can be selected in, across rows: the row in
// which the pointer went down gets its moves, wherever they go.
func (u *UI) selectable(gtx C, c *convView, b *body, x, y int) D {
	r := &c.rows[len(c.rows)-1]
	r.body, r.pos = b, image.Pt(x, y)
	row := *r
	for {
		e, ok := gtx.Event(pointer.Filter{Target: b, Kinds: pointer.Press | pointer.Drag | pointer.Release | pointer.Cancel})
		if !ok {
			break
		}
		if p, ok := e.(pointer.Event); ok {
			u.selectBy(gtx, c, row, p)
		}
	}
	area := clip.Rect{Max: b.size}.Push(gtx.Ops)
	semantic.LabelOp(b.label).Add(gtx.Ops)
	pointer.CursorText.Add(gtx.Ops)
	event.Op(gtx.Ops, b)
	if c.sel.on {
		from, to := c.sel.ordered()
		if r.index >= from.index && r.index <= to.index {
			lo, hi := textPos{}, b.end()
			if r.index == from.index {
				lo = from.at
			}
			if r.index == to.index {
				hi = to.at
			}
			b.paintSelection(gtx, lo, hi, u.pal.Select)
		}
	}
	d := u.paintBody(gtx, b)
	area.Pop()
	return d
}

func (u *UI) selectBy(gtx C, c *convView, row seenRow, p pointer.Event) {
	pt := p.Position.Round()
	switch p.Kind {
	case pointer.Press:
		if p.Buttons != pointer.ButtonPrimary {
			return
		}
		at := selPos{row.index, row.body.hit(pt)}
		if p.Modifiers.Contain(key.ModShift) && c.sel.on {
			c.sel.head = at
			return
		}
		c.sel = selection{anchor: at, head: at, drag: true}
		gtx.Execute(key.FocusCmd{Tag: &c.sel})
	case pointer.Drag:
		if c.sel.drag {
			c.sel.head = c.posAt(row, pt)
			c.sel.on = c.sel.head != c.sel.anchor
		}
	default:
		c.sel.drag = false
	}
}

// posAt finds the place in the text at a point that is given in the coordinates of
// one row's body, from where the rows were in the frame before.
func (c *convView) posAt(from seenRow, pt image.Point) selPos {
	origin := image.Point{}
	for _, r := range c.rows0 {
		if r.index == from.index {
			origin = r.pos.Add(image.Pt(0, r.y))
		}
	}
	abs := pt.Add(origin)
	best, dist := selPos{from.index, from.body.hit(pt)}, 1<<30
	for _, r := range c.rows0 {
		if r.body == nil {
			continue
		}
		top := r.y + r.pos.Y
		d := max(top-abs.Y, abs.Y-(top+r.body.size.Y), 0)
		if d < dist {
			best, dist = selPos{r.index, r.body.hit(abs.Sub(r.pos).Sub(image.Pt(0, r.y)))}, d
		}
	}
	return best
}

// selectKeys copies what is selected, and selects everything.
func (u *UI) selectKeys(gtx C, c *convView, t *model.Thread) {
	event.Op(gtx.Ops, &c.sel)
	for {
		e, ok := gtx.Event(
			key.FocusFilter{Target: &c.sel},
			key.Filter{Focus: &c.sel, Name: "C", Required: key.ModShortcut},
			key.Filter{Focus: &c.sel, Name: "A", Required: key.ModShortcut},
		)
		if !ok {
			return
		}
		k, ok := e.(key.Event)
		if !ok || k.State != key.Press {
			continue
		}
		switch k.Name {
		case "A":
			c.sel.on = true
			c.sel.anchor, c.sel.head = selPos{}, selPos{t.Len(), textPos{}}
		case "C":
			u.copyText(gtx, u.selected(gtx, c, t))
		}
	}
}

func (u *UI) copyText(gtx C, s string) {
	if s != "" {
		gtx.Execute(clipboard.WriteCmd{Type: "application/text", Data: io.NopCloser(strings.NewReader(s))})
	}
}

// selected is the marked text, also of rows that are out of sight.
func (u *UI) selected(gtx C, c *convView, t *model.Thread) string {
	if !c.sel.on {
		return ""
	}
	from, to := c.sel.ordered()
	var out []string
	for i := from.index; i <= to.index && i < t.Len(); i++ {
		item := t.At(i)
		src := itemText(item)
		if src == "" {
			continue
		}
		b := u.body(gtx, "body/"+item.Key, src, u.bodyWidth(item.Key))
		lo, hi := textPos{}, b.end()
		if i == from.index {
			lo = from.at
		}
		if i == to.index {
			hi = to.at
		}
		out = append(out, b.between(lo, hi))
	}
	return strings.Join(out, "\n\n")
}

// bodyWidth is the width for which a row was laid out last.
func (u *UI) bodyWidth(key string) int {
	if b := u.bodies.of["body/"+key]; b != nil {
		return b.width
	}
	return 640
}
