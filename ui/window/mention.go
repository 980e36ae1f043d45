package window

import (
	"strings"

	"gioui.org/io/key"
	"gioui.org/layout"
	"gioui.org/widget"
)

// mention is the name that is being written after an @ at the caret, with the
// place in characters at which it begins. A name begins after a space only, so
// that an address of mail is none.
func mention(e *widget.Editor) (name string, at int, ok bool) {
	end, start := e.Selection()
	if end != start {
		return "", 0, false
	}
	r := []rune(e.Text())
	for i := min(end, len(r)) - 1; i >= 0; i-- {
		switch {
		case r[i] == ' ' || r[i] == '\n':
			return "", 0, false
		case r[i] == '@':
			before := i == 0 || r[i-1] == ' ' || r[i-1] == '\n'
			return string(r[i+1 : min(end, len(r))]), i + 1, before
		}
	}
	return "", 0, false
}

// mentions offers the agents that a name may become.
func (u *UI) mentions(gtx C, c *convView) D {
	if !gtx.Focused(&c.draft) {
		return D{}
	}
	name, at, ok := mention(&c.draft)
	if !ok {
		return D{}
	}
	var ws []layout.Widget
	for _, a := range u.state.Agents {
		if !strings.HasPrefix(strings.ToLower(a.ID), strings.ToLower(name)) || a.ID == name {
			continue
		}
		ws = append(ws, func(gtx C) D {
			return u.button(gtx, "mention/"+a.ID, "@"+a.ID, lookPill, func() { u.complete(c, at, a.ID) })
		})
	}
	if ws == nil {
		return D{}
	}
	return row(gtx, 6, ws...)
}

// complete puts an agent's name in place of what was written of it.
func (u *UI) complete(c *convView, at int, id string) {
	end, _ := c.draft.Selection()
	c.draft.SetCaret(at, end)
	c.draft.Insert(id + " ")
	u.pressed = append(u.pressed, func(gtx C) { gtx.Execute(key.FocusCmd{Tag: &c.draft}) })
}
