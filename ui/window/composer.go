package window

import (
	"fmt"
	"image"
	"slices"
	"strings"

	"gioui.org/io/key"
	"gioui.org/io/semantic"
	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/op/clip"
	"gioui.org/widget"

	"witan/ui/model"
	"witan/ui/theme"
)

// editor draws a text that can be edited, with a hint while it is empty. Its text
// is in the semantic tree: Gio's editor puts only the hint there.
func (u *UI) editor(gtx C, e *widget.Editor, st theme.Style, hint string) D {
	area := func(size image.Point) func() {
		c := clip.Rect{Max: size}.Push(gtx.Ops)
		return c.Pop
	}
	e.LineHeight, e.LineHeightScale = st.Line, 1
	call, d := measured(gtx, func(gtx C) D {
		return e.Layout(gtx, u.shaper, u.pal.Font(st), st.Size, u.ink(gtx, u.pal.Ink), u.ink(gtx, u.pal.Select))
	})
	d.Size.Y = max(d.Size.Y, gtx.Sp(st.Line))
	if e.Len() == 0 {
		silent(loose(gtx, gtx.Constraints.Max.X, d.Size.Y), func(gtx C) { u.label(gtx, st, u.pal.Third, hint) })
	}
	pop := area(d.Size)
	semantic.Editor.Add(gtx.Ops)
	semantic.DescriptionOp(hint).Add(gtx.Ops)
	if s := e.Text(); s != "" {
		semantic.LabelOp(s).Add(gtx.Ops)
	}
	call.Add(gtx.Ops)
	pop()
	return d
}

// plans are what a person may choose between, in order.
var plans = []string{"direct", "batch", "discuss", "council"}

// planOf is the plan that the next message goes out under.
func (u *UI) planOf(c *convView) string {
	if c.plan != "" {
		return c.plan
	}
	if t := u.thread(); t != nil && t.Conversation.Plan != "" {
		return t.Conversation.Plan
	}
	return "batch"
}

// members are the agents that the next message goes to.
func (u *UI) members(c *convView) []string {
	if c.picked {
		return c.agents
	}
	if t := u.thread(); t != nil && len(t.Conversation.Agents) > 0 {
		return t.Conversation.Agents
	}
	var ready []string
	for _, a := range u.state.Agents {
		if a.Ready() {
			ready = append(ready, a.ID)
		}
	}
	return ready
}

func (u *UI) layoutComposer(gtx C) D {
	width := gtx.Constraints.Max.X
	c := u.conv()
	u.composerEvents(gtx, c)
	left, inner := u.margins(gtx)
	hair := max(gtx.Dp(1), 1)
	call, d := measured(loose(gtx, inner, gtx.Constraints.Max.Y), func(gtx C) D { return u.composerBox(gtx, c) })
	top := gtx.Dp(12)
	fill(gtx.Ops, image.Rect(0, 0, width, hair), u.pal.Line)
	t := op.Offset(image.Pt(left, top)).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	return D{Size: image.Pt(width, top+d.Size.Y+gtx.Dp(16))}
}

// composerEvents sends on Enter; Shift with Enter breaks the line, and what an
// input method composes is its own.
func (u *UI) composerEvents(gtx C, c *convView) {
	if c.focus && !u.palette.open {
		gtx.Execute(key.FocusCmd{Tag: &c.draft})
		c.focus = false
	}
	for {
		e, ok := c.draft.Update(gtx)
		if !ok {
			break
		}
		if _, ok := e.(widget.SubmitEvent); ok {
			u.send(c)
		}
	}
	if s := c.draft.Text(); s != c.told {
		c.told = s
		if u.hooks.Draft != nil {
			u.hooks.Draft(u.route.Conversation, s)
		}
	}
}

// send gives the draft away and empties it.
func (u *UI) send(c *convView) {
	s := strings.TrimSpace(c.draft.Text())
	if s == "" {
		return
	}
	a := model.Submit{Conversation: u.route.Conversation, Text: s, Plan: u.planOf(c), Permission: c.mode}
	if c.picked {
		a.Agents = slices.Clone(c.agents)
	}
	if a.Conversation == "" {
		a.Workspace = strings.TrimSpace(u.folder.Text())
	}
	if t := u.thread(); t != nil {
		a.Workspace = t.Conversation.Workspace
		if r := t.Last(); r != nil && r.Active() {
			a.Queue = true
		}
	}
	c.draft.SetText("")
	c.toEnd()
	u.do(a)
}

func (u *UI) composerBox(gtx C, c *convView) D {
	pad := gtx.Dp(12)
	width := gtx.Constraints.Max.X
	in := loose(gtx, width-2*pad, gtx.Constraints.Max.Y)
	plan, members := u.planOf(c), u.members(c)
	call, d := measured(in, func(gtx C) D {
		return column(gtx, 10,
			func(gtx C) D { return u.folderRow(gtx) },
			func(gtx C) D { return u.queueRow(gtx) },
			func(gtx C) D {
				gtx.Constraints.Max.Y = gtx.Sp(theme.Body.Line) * 12
				gtx.Constraints.Min.X = gtx.Constraints.Max.X
				return u.editor(gtx, &c.draft, theme.Body, u.composerHint(plan, members))
			},
			func(gtx C) D { return u.mentions(gtx, c) },
			func(gtx C) D { return u.composerTools(gtx, c, plan, members) },
		)
	})
	size := image.Pt(width, d.Size.Y+2*pad-gtx.Dp(2))
	box(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusComposer), u.pal.Panel, u.pal.Strong)
	t := op.Offset(image.Pt(pad, pad-gtx.Dp(2))).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	return D{Size: size}
}

func (u *UI) composerHint(plan string, members []string) string {
	switch plan {
	case "council":
		return u.words.MessageCouncil
	case "discuss":
		return u.words.MessageGroup
	}
	if len(members) == 1 || plan == "direct" && len(members) > 0 {
		return fmt.Sprintf(u.words.MessageOne, u.state.Agent(members[0]).Name)
	}
	return fmt.Sprintf(u.words.MessageMany, fmt.Sprint(len(members)))
}

// folderRow is where a new conversation will work.
func (u *UI) folderRow(gtx C) D {
	if u.route.Conversation != "" {
		return D{}
	}
	if u.inFolder {
		u.inFolder = false
		gtx.Execute(key.FocusCmd{Tag: &u.folder})
	}
	for {
		if _, ok := u.folder.Update(gtx); !ok {
			break
		}
	}
	d := at(gtx, 0, gtx.Dp(1), func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Third, u.words.Folder) })
	x := d.Size.X + gtx.Dp(10)
	e := at(loose(gtx, gtx.Constraints.Max.X-x, gtx.Dp(24)), x, 0, func(gtx C) D {
		gtx.Constraints.Min.X = gtx.Constraints.Max.X
		return u.editor(gtx, &u.folder, theme.Code12, u.words.ChooseFolderLabel)
	})
	y := e.Size.Y + gtx.Dp(8)
	fill(gtx.Ops, image.Rect(0, y, gtx.Constraints.Max.X, y+max(gtx.Dp(1), 1)), u.pal.Line)
	return D{Size: image.Pt(gtx.Constraints.Max.X, y+1)}
}

// queueRow says how many messages wait.
func (u *UI) queueRow(gtx C) D {
	t := u.thread()
	if t == nil || len(t.Queue) == 0 {
		return D{}
	}
	var ws []layout.Widget
	for _, q := range t.Queue {
		ws = append(ws, func(gtx C) D { return u.queueEntry(gtx, q) })
	}
	return column(gtx, 2, ws...)
}

func (u *UI) queueEntry(gtx C, q model.Entry) D {
	word, hold := u.words.Hold, "hold"
	if q.Held {
		word, hold = u.words.Release, "release"
	}
	full := gtx.Constraints.Max.X
	call, d := measured(gtx, func(gtx C) D {
		return row(gtx, 6,
			func(gtx C) D {
				return u.button(gtx, "hold/"+q.ID, word, lookPill, func() { u.do(model.QueueEdit{Entry: q.ID, Word: hold}) })
			},
			func(gtx C) D {
				return u.button(gtx, "drop/"+q.ID, u.words.Remove, lookPill, func() { u.do(model.QueueEdit{Entry: q.ID, Word: "remove"}) })
			})
	})
	at(loose(gtx, full-d.Size.X-gtx.Dp(12), d.Size.Y), 0, gtx.Dp(3), func(gtx C) D {
		return u.label(gtx, theme.Meta, u.pal.Second, fmt.Sprintf("%d  %s", q.Position, oneLine(q.Text)))
	})
	t := op.Offset(image.Pt(full-d.Size.X, 0)).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	return D{Size: image.Pt(full, d.Size.Y)}
}

// composerTools is the row of plan, agents and Send.
func (u *UI) composerTools(gtx C, c *convView, plan string, members []string) D {
	full := gtx.Constraints.Max.X
	call, d := measured(gtx, func(gtx C) D { return u.sendButton(gtx, c) })
	left := loose(gtx, full-d.Size.X-gtx.Dp(12), gtx.Constraints.Max.Y)
	e := row(left, 8,
		func(gtx C) D { return u.planSwitch(gtx, c, plan) },
		func(gtx C) D { return u.agentChip(gtx, c, members) },
		func(gtx C) D { return u.modeChip(gtx, c) },
	)
	h := max(d.Size.Y, e.Size.Y)
	t := op.Offset(image.Pt(full-d.Size.X, h-d.Size.Y)).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	if c.choosing != "" {
		f := at(loose(gtx, full, gtx.Constraints.Max.Y), 0, h+gtx.Dp(8), func(gtx C) D {
			if c.choosing == "mode" {
				return u.modeChips(gtx, c)
			}
			return u.agentChips(gtx, c, members)
		})
		h += gtx.Dp(8) + f.Size.Y
	}
	return D{Size: image.Pt(full, h)}
}

func (u *UI) sendButton(gtx C, c *convView) D {
	word := u.words.Send
	if t := u.thread(); t != nil {
		if r := t.Last(); r != nil && r.Active() {
			word = u.words.Queue
		}
	}
	return u.buttonKey(gtx, "send", word, func() { u.send(c) })
}

// buttonKey is a button that shows that Enter does the same.
func (u *UI) buttonKey(gtx C, id, word string, do func()) D {
	return u.press(gtx, id, word, func(gtx C, _ bool) D {
		ink, inside, border := u.pal.Panel, u.pal.Ink, u.pal.Ink
		h, pad := gtx.Dp(28), gtx.Dp(12)
		call, d := measured(gtx, func(gtx C) D { return u.label(gtx, theme.Name, ink, word) })
		size := image.Pt(d.Size.X+2*pad+gtx.Dp(18), h)
		box(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusRow), inside, border)
		u.enterSign(gtx, image.Pt(pad+d.Size.X+gtx.Dp(7), h/2), ink)
		defer op.Offset(image.Pt(pad, (h-d.Size.Y)/2)).Push(gtx.Ops).Pop()
		call.Add(gtx.Ops)
		return D{Size: size}
	}, do)
}
