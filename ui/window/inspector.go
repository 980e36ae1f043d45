package window

import (
	"fmt"
	"image"

	"gioui.org/io/semantic"
	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/op/clip"
	"gioui.org/unit"

	"witan/ui/model"
	"witan/ui/theme"
)

// layoutInspector draws the four tabs and the one that is shown.
func (u *UI) layoutInspector(gtx C) D {
	size := gtx.Constraints.Max
	fill(gtx.Ops, image.Rectangle{Max: size}, u.pal.Background)
	head, hair := gtx.Dp(theme.HeaderHeight), max(gtx.Dp(1), 1)
	at(sized(gtx, size.X, head), 0, 0, u.tabBar)
	fill(gtx.Ops, image.Rect(0, head-hair, size.X, head), u.pal.Line)
	r := u.shownRun()
	foot := 0
	if r != nil {
		foot = gtx.Dp(38)
	}
	cards := u.cards(r)
	at(sized(gtx, size.X, size.Y-head-foot), 0, head, func(gtx C) D {
		defer clip.Rect{Max: gtx.Constraints.Max}.Push(gtx.Ops).Pop()
		return u.inspector[u.route.Tab].Layout(gtx, len(cards), func(gtx C, i int) D {
			top, bottom := unit.Dp(0), unit.Dp(12)
			if i == 0 {
				top = 12
			}
			return padded(gtx, top, 16, bottom, 16, func(gtx C) D { return u.card(gtx, cards[i]) })
		})
	})
	if r != nil {
		at(sized(gtx, size.X, foot), 0, size.Y-foot, func(gtx C) D { return u.statusLine(gtx, r) })
	}
	return D{Size: size}
}

// statusLine says how far the record goes.
func (u *UI) statusLine(gtx C, r *model.Run) D {
	size := gtx.Constraints.Max
	fill(gtx.Ops, image.Rect(0, 0, size.X, max(gtx.Dp(1), 1)), u.pal.Line)
	t := u.thread()
	right := ""
	if t != nil && t.Epoch != "" {
		right = fmt.Sprintf("epoch %s · rev %d", short(t.Epoch), t.Revision)
	}
	return padded(gtx, 11, 20, 0, 20, func(gtx C) D {
		return u.ends(gtx, func(gtx C) D { return u.label(gtx, theme.Label, u.pal.Third, fmt.Sprintf(u.words.Records, r.Records)) }, theme.Label, right)
	})
}

func (u *UI) tabBar(gtx C) D {
	names := []string{u.words.TabRun, u.words.TabContext, u.words.TabFindings, u.words.TabFiles}
	r := u.shownRun()
	if r != nil {
		if n := len(r.Findings); n > 0 {
			names[2] = fmt.Sprintf("%s %d", names[2], n)
		}
		if n := len(r.Artifacts); n > 0 {
			names[3] = fmt.Sprintf("%s %d", names[3], n)
		}
	}
	x, h := gtx.Dp(12), gtx.Constraints.Max.Y
	for i, name := range names {
		d := at(loose(gtx, gtx.Constraints.Max.X, h), x, 0, func(gtx C) D { return u.tab(gtx, Tab(i), name, h) })
		x += d.Size.X
	}
	if !u.roomInspect {
		at(gtx, gtx.Constraints.Max.X-gtx.Dp(44), (h-gtx.Dp(28))/2, func(gtx C) D {
			return u.iconButton(gtx, "inspect/close", u.words.CloseSheet, iconClose, func() { u.sheet = false })
		})
	}
	return D{Size: gtx.Constraints.Max}
}

func (u *UI) tab(gtx C, t Tab, name string, h int) D {
	return u.press(gtx, "tab/"+tabNames[t], name, func(gtx C, hot bool) D {
		st, ink := theme.Control, u.pal.Second
		if hot {
			ink = u.pal.Ink
		}
		bold := theme.Name
		w := u.width(gtx, bold, name)
		if u.route.Tab == t {
			st, ink = bold, u.pal.Ink
			semantic.SelectedOp(true).Add(gtx.Ops)
		}
		pad := gtx.Dp(8)
		at(loose(gtx, w+2, h), pad, (h-gtx.Sp(st.Line))/2, func(gtx C) D { return u.label(gtx, st, ink, name) })
		return D{Size: image.Pt(w+2*pad+gtx.Dp(4), h)}
	}, func() { u.route.Tab = t })
}

// card is a box of the inspector: a heading, a fact at its right, and a body.
type card struct {
	title string
	ink   colour // of a word before the title
	tag   string
	fact  string
	body  layout.Widget
}

func (u *UI) card(gtx C, c card) D {
	pad := gtx.Dp(12)
	width := gtx.Constraints.Max.X
	call, d := measured(loose(gtx, width-2*pad, 1<<24), func(gtx C) D {
		return column(gtx, 10, func(gtx C) D {
			if c.title == "" && c.tag == "" {
				return D{}
			}
			return u.ends(gtx, func(gtx C) D {
				x := 0
				if c.tag != "" {
					x = u.label(gtx, theme.Style{Font: theme.Name.Font, Size: 12, Line: 20}, c.ink, c.tag).Size.X + gtx.Dp(6)
				}
				e := at(loose(gtx, gtx.Constraints.Max.X-x, gtx.Constraints.Max.Y), x, 0, func(gtx C) D {
					return u.label(gtx, theme.Style{Font: theme.Name.Font, Size: 12, Line: 20}, u.pal.Ink, c.title)
				})
				return D{Size: image.Pt(x+e.Size.X, e.Size.Y)}
			}, theme.Meta, c.fact)
		}, c.body)
	})
	size := image.Pt(width, d.Size.Y+2*pad)
	box(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusCard), u.pal.Panel, u.pal.Line)
	t := op.Offset(image.Pt(pad, pad)).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	return D{Size: size}
}

// cards are what the shown tab has to say about a run.
func (u *UI) cards(r *model.Run) []card {
	if r == nil {
		return []card{u.note(u.words.NoRun)}
	}
	switch u.route.Tab {
	case TabContext:
		return u.contextCards(r)
	case TabFindings:
		return u.findingCards(r)
	case TabFiles:
		return u.fileCards(r)
	}
	return u.runCards(r)
}

// note is a card with nothing but a sentence.
func (u *UI) note(s string) card {
	return card{body: func(gtx C) D { return u.paragraph(gtx, theme.Meta, u.pal.Third, s) }}
}
