package window

import (
	"fmt"
	"image"

	"gioui.org/op"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// layoutTools folds the tool calls of an attempt to one line with a count.
func (u *UI) layoutTools(gtx C, a *model.Attempt, x, y, width int) int {
	if len(a.Tools) == 0 {
		return 0
	}
	key := "tools/" + a.ID
	open := u.folded[key]
	gap := gtx.Dp(6)
	in := width - x - gtx.Dp(12)
	call, d := measured(loose(gtx, in, 1<<20), func(gtx C) D {
		name := u.words.ToolCalls.Of(len(a.Tools))
		return u.press(gtx, key, name, func(gtx C, hot bool) D {
			if open {
				return u.toolList(gtx, a)
			}
			return u.toolLine(gtx, a, hot)
		}, func() { u.folded[key] = !open })
	})
	fill(gtx.Ops, image.Rect(x, y+gap, x+gtx.Dp(2), y+gap+d.Size.Y), u.pal.Strong)
	t := op.Offset(image.Pt(x+gtx.Dp(12), y+gap)).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	return d.Size.Y + gap
}

// toolLine shows the first calls that fit and counts the rest.
func (u *UI) toolLine(gtx C, a *model.Attempt, hot bool) D {
	maxX, x, shown := gtx.Constraints.Max.X-gtx.Dp(36), 0, 0
	ink := u.pal.Second
	if hot {
		ink = u.pal.Ink
	}
	for _, t := range a.Tools {
		title := oneLine(t.Title)
		kind := u.width(gtx, theme.Meta, t.Kind)
		w := min(u.width(gtx, theme.Code12, title), gtx.Dp(220))
		if shown > 0 && x+kind+gtx.Dp(4)+w > maxX || shown == 2 {
			break
		}
		w = min(w, max(maxX-x-kind-gtx.Dp(4), 0))
		at(loose(gtx, kind+1, gtx.Dp(20)), x, gtx.Dp(1), func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Second, t.Kind) })
		x += kind + gtx.Dp(4)
		at(loose(gtx, w, gtx.Dp(20)), x, 0, func(gtx C) D { return u.label(gtx, theme.Code12, ink, title) })
		x += w + gtx.Dp(9)
		shown++
	}
	if n := len(a.Tools) - shown; n > 0 {
		d := at(gtx, x, gtx.Dp(1), func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Third, fmt.Sprintf("+%d", n)) })
		x += d.Size.X
	}
	return D{Size: image.Pt(x, gtx.Dp(20))}
}

func (u *UI) toolList(gtx C, a *model.Attempt) D {
	h, y := gtx.Dp(20), 0
	for _, t := range a.Tools {
		kind := at(loose(gtx, gtx.Dp(72), h), 0, y+gtx.Dp(1), func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Second, t.Kind) })
		x := max(kind.Size.X+gtx.Dp(8), gtx.Dp(56))
		st := ""
		ink := u.pal.Third
		if t.Status != "completed" {
			st = text.Word(u.words.Statuses, t.Status)
			if t.Status == "failed" {
				ink = u.pal.Bad
			}
		}
		w := u.width(gtx, theme.Meta, st)
		at(loose(gtx, w+1, h), gtx.Constraints.Max.X-w, y+gtx.Dp(1), func(gtx C) D { return u.label(gtx, theme.Meta, ink, st) })
		at(loose(gtx, gtx.Constraints.Max.X-x-w-gtx.Dp(8), h), x, y, func(gtx C) D { return u.label(gtx, theme.Code12, u.pal.Ink, oneLine(t.Title)) })
		y += h
	}
	return D{Size: image.Pt(gtx.Constraints.Max.X, y)}
}
