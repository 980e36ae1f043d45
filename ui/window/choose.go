package window

import (
	"image"
	"slices"

	"gioui.org/io/semantic"
	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/op/clip"

	"witan/ui/text"
	"witan/ui/theme"
)

// planSwitch shows all plans side by side, the chosen one marked.
func (u *UI) planSwitch(gtx C, c *convView, plan string) D {
	h, pad := gtx.Dp(26), gtx.Dp(10)
	x := 0
	type seg struct {
		call op.CallOp
		x, w int
	}
	var segs []seg
	for _, p := range plans {
		word := text.Word(u.words.Plans, p)
		call, d := measured(gtx, func(gtx C) D {
			return u.press(gtx, "plan/"+p, word, func(gtx C, hot bool) D {
				ink, st := u.pal.Second, theme.Meta
				if hot {
					ink = u.pal.Ink
				}
				w := u.width(gtx, theme.Style{Font: theme.Name.Font, Size: 12, Line: 18}, word) + 2*pad
				if p == plan {
					ink, st = u.pal.Accent, theme.Style{Font: theme.Name.Font, Size: 12, Line: 18}
					semantic.SelectedOp(true).Add(gtx.Ops)
					fill(gtx.Ops, image.Rect(1, 1, w-1, h-1), u.pal.AccentSoft)
				}
				tw := u.width(gtx, st, word)
				at(loose(gtx, tw+1, h), (w-tw)/2, gtx.Dp(4), func(gtx C) D { return u.label(gtx, st, ink, word) })
				return D{Size: image.Pt(w, h)}
			}, func() { c.plan = p })
		})
		segs = append(segs, seg{call, x, d.Size.X})
		x += d.Size.X
	}
	size := image.Pt(x, h)
	box(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusRow), u.pal.Panel, u.pal.Line)
	defer clip.UniformRRect(image.Rectangle{Max: size}.Inset(1), gtx.Dp(5)).Push(gtx.Ops).Pop()
	for i, s := range segs {
		t := op.Offset(image.Pt(s.x, 0)).Push(gtx.Ops)
		s.call.Add(gtx.Ops)
		t.Pop()
		if i > 0 {
			fill(gtx.Ops, image.Rect(s.x, 0, s.x+1, h), u.pal.Line)
		}
	}
	return D{Size: size}
}

// agentChip counts who will answer, with their colours.
func (u *UI) agentChip(gtx C, c *convView, members []string) D {
	word := u.words.AgentsChosen.Of(len(members))
	return u.press(gtx, "agents", word, func(gtx C, hot bool) D {
		h, pad := gtx.Dp(26), gtx.Dp(9)
		shown := members[:min(len(members), 5)]
		x := pad + len(shown)*gtx.Dp(13)
		call, d := measured(gtx, func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Second, word) })
		size := image.Pt(x+gtx.Dp(3)+d.Size.X+pad, h)
		inside := u.pal.Panel
		if hot || c.choosing == "agents" {
			inside = u.pal.Background
		}
		box(gtx.Ops, image.Rectangle{Max: size}, h/2, inside, u.pal.Line)
		for i, a := range shown {
			disc(gtx.Ops, image.Pt(pad+gtx.Dp(4)+i*gtx.Dp(13), h/2), gtx.Dp(8), u.hue(a))
		}
		defer op.Offset(image.Pt(x+gtx.Dp(3), (h-d.Size.Y)/2)).Push(gtx.Ops).Pop()
		call.Add(gtx.Ops)
		return D{Size: size}
	}, func() { c.choose("agents") })
}

// choose shows what there is to choose from, or puts it away.
func (c *convView) choose(what string) {
	if c.choosing == what {
		what = ""
	}
	c.choosing = what
}

// modes are the permission modes, from the strictest on.
var modes = []string{"read-only", "ask", "auto", "full"}

// modeOf is the permission mode of the next message.
func (u *UI) modeOf(c *convView) string {
	if c.mode != "" {
		return c.mode
	}
	if t := u.thread(); t != nil && t.Conversation.Permission != "" {
		return t.Conversation.Permission
	}
	return modes[0]
}

func (u *UI) modeChip(gtx C, c *convView) D {
	how := lookPill
	if c.choosing == "mode" {
		how = lookOn
	}
	return u.button(gtx, "mode", text.Word(u.words.Modes, u.modeOf(c)), how, func() { c.choose("mode") })
}

// modeChips let the person choose what agents may do without asking.
func (u *UI) modeChips(gtx C, c *convView) D {
	var ws []layout.Widget
	for _, m := range modes {
		how := lookPill
		if m == u.modeOf(c) {
			how = lookOn
		}
		ws = append(ws, func(gtx C) D {
			return u.button(gtx, "mode/"+m, u.words.Permission+": "+text.Word(u.words.Permissions, m), how, func() { c.mode, c.choosing = m, "" })
		})
	}
	return row(gtx, 6, ws...)
}

// agentChips let the person choose who answers.
func (u *UI) agentChips(gtx C, c *convView, members []string) D {
	var ws []layout.Widget
	for _, a := range u.state.Agents {
		on := slices.Contains(members, a.ID)
		how, name := lookPill, a.ID
		if on {
			how = lookOn
		}
		if !a.Ready() {
			name = dots(a.ID, text.Word(u.words.Readiness, a.Status))
		}
		ws = append(ws, func(gtx C) D {
			if !a.Ready() && !on {
				gtx = gtx.Disabled()
			}
			return u.button(gtx, "member/"+a.ID, name, how, func() { u.toggleMember(c, a.ID, members) })
		})
	}
	return row(gtx, 6, ws...)
}

// toggleMember adds or removes an agent, keeping the order of the list of agents.
func (u *UI) toggleMember(c *convView, id string, members []string) {
	var next []string
	for _, a := range u.state.Agents {
		if slices.Contains(members, a.ID) != (a.ID == id) {
			next = append(next, a.ID)
		}
	}
	c.agents, c.picked = next, true
}
