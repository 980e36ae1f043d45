package window

import (
	"image"
	"slices"

	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/op/clip"
	"gioui.org/unit"
	"gioui.org/widget"

	"witan/ui/model"
	"witan/ui/theme"
)

// convView is how one conversation is looked at: its place, its draft and its
// selection are kept while others are shown.
type convView struct {
	list     layout.List
	draft    widget.Editor
	plan     string
	agents   []string // chosen; empty means all members
	picked   bool     // the person changed agents
	choosing string   // what is shown to choose from: agents, mode
	mode     string   // the permission mode chosen
	rows     []seenRow
	rows0    []seenRow // of the frame before
	sel      selection
	gates    gateView
	focus    bool
	height   int
	count    int
	told     string // the draft as last given to the hook
}

// seenRow is a row as it was laid out in the last frame.
type seenRow struct {
	index  int
	y      int // in the list
	height int
	body   *body
	pos    image.Point // of the body in the row
	key    string
}

// selection is what is marked: from where the pointer went down to where it is.
type selection struct {
	anchor, head selPos
	on, drag     bool
}

type selPos struct {
	index int
	at    textPos
}

func (s selection) ordered() (from, to selPos) {
	a, b := s.anchor, s.head
	if b.index < a.index || b.index == a.index && b.at.before(a.at) {
		a, b = b, a
	}
	return a, b
}

// conv is the view of the conversation that the route names.
func (u *UI) conv() *convView {
	if u.route.Page != PageConversation {
		return nil
	}
	c := u.convs[u.route.Conversation]
	if c == nil {
		c = &convView{focus: true}
		c.list.Axis, c.list.ScrollToEnd = layout.Vertical, true
		c.draft.Submit = true
		u.convs[u.route.Conversation] = c
	}
	return c
}

// SetDraft puts back a draft that was kept.
func (u *UI) SetDraft(conversation, text string) {
	old := u.route
	u.route = Route{Conversation: conversation}
	c := u.conv()
	u.route = old
	c.draft.SetText(text)
	c.told = text
}

func (c *convView) toEnd() { c.list.Position.BeforeEnd = false }

// changed keeps the end in sight if it was nearly in sight before.
func (c *convView) changed(n int) {
	p := &c.list.Position
	if p.BeforeEnd && p.First+p.Count >= c.count && -p.OffsetLast <= c.height {
		p.BeforeEnd = false
	}
	c.count = n
}

// layoutConversation draws the messages and the composer below them.
func (u *UI) layoutConversation(gtx C) D {
	size := gtx.Constraints.Max
	c := u.conv()
	c.height = gtx.Dp(theme.FollowWithin)
	call, d := measured(loose(gtx, size.X, size.Y), u.layoutComposer)
	room := size.Y - d.Size.Y
	at(sized(gtx, size.X, room), 0, 0, func(gtx C) D {
		defer clip.Rect{Max: gtx.Constraints.Max}.Push(gtx.Ops).Pop()
		return u.layoutMessages(gtx, c)
	})
	t := op.Offset(image.Pt(0, room)).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	return D{Size: size}
}

// margins are the room beside the column of text.
func (u *UI) margins(gtx C) (left, width int) {
	total := gtx.Constraints.Max.X
	side := gtx.Dp(28)
	if float32(total)/gtx.Metric.PxPerDp <= 640 || u.size.X <= gtx.Dp(720) {
		side = gtx.Dp(20)
	}
	width = min(total-2*side, gtx.Dp(theme.ColumnMax))
	return (total - width) / 2, width
}

func (u *UI) layoutMessages(gtx C, c *convView) D {
	size := gtx.Constraints.Max
	t := u.thread()
	if t == nil || t.Len() == 0 {
		return u.layoutEmpty(gtx, t)
	}
	u.selectKeys(gtx, c, t)
	left, width := u.margins(gtx)
	c.rows, c.rows0 = c.rows0[:0], c.rows
	n := t.Len()
	call, _ := measured(gtx, func(gtx C) D {
		return c.list.Layout(gtx, n, func(gtx C, i int) D {
			item := t.At(i)
			top, bottom := gtx.Dp(rowGap(t, i)), 0
			if i == n-1 {
				bottom = gtx.Dp(24)
			}
			c.rows = append(c.rows, seenRow{index: i, key: item.Key})
			d := at(loose(gtx, width, 1<<24), left, top, func(gtx C) D { return u.layoutItem(gtx, c, item) })
			c.rows[len(c.rows)-1].pos.Y += top
			c.rows[len(c.rows)-1].pos.X += left
			c.rows[len(c.rows)-1].height = top + d.Size.Y + bottom
			return D{Size: image.Pt(size.X, top+d.Size.Y+bottom)}
		})
	})
	up := c.place(n, size.Y)
	t0 := op.Offset(image.Pt(0, -up)).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t0.Pop()
	if c.list.Position.BeforeEnd && c.list.Position.First+c.list.Position.Count < n {
		u.layoutJump(gtx, c)
	}
	return D{Size: size}
}

// place works out where each visible row begins in the list. A list that is
// shorter than its room stands at the end of it; place returns by how much it has
// to go up to begin at the top.
func (c *convView) place(n, room int) (up int) {
	slices.SortFunc(c.rows, func(a, b seenRow) int { return a.index - b.index })
	first := c.list.Position.First
	c.rows = slices.DeleteFunc(c.rows, func(r seenRow) bool { return r.index < first })
	y, total := -c.list.Position.Offset, 0
	for _, r := range c.rows {
		total += r.height
	}
	if len(c.rows) == n && total < room {
		y, up = 0, room-total
	}
	for i := range c.rows {
		c.rows[i].y = y
		y += c.rows[i].height
	}
	return up
}

// layoutJump draws the button that leads to the newest message.
func (u *UI) layoutJump(gtx C, c *convView) {
	size := gtx.Constraints.Max
	call, d := measured(loose(gtx, size.X, size.Y), func(gtx C) D {
		return u.button(gtx, "latest", u.words.JumpToLatest, lookPlain, func() { c.toEnd() })
	})
	t := op.Offset(image.Pt((size.X-d.Size.X)/2, size.Y-d.Size.Y-gtx.Dp(12))).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
}

func (u *UI) layoutEmpty(gtx C, t *model.Thread) D {
	s := u.words.Empty
	if t == nil && u.route.Conversation != "" {
		s = u.words.Loading
	}
	return layout.Center.Layout(gtx, func(gtx C) D { return u.label(gtx, theme.Body, u.pal.Third, s) })
}

// rowGap is the room above a row.
func rowGap(t *model.Thread, i int) unit.Dp {
	switch t.At(i).Kind {
	case model.ItemRule:
		return 20
	case model.ItemGate:
		return 12
	case model.ItemUser:
		if i == 0 {
			return 20
		}
		return 32
	case model.ItemAgent:
		if i > 0 && t.At(i-1).Kind == model.ItemRule {
			return 14
		}
		return 22
	}
	return 14
}
