package window

import (
	"fmt"
	"image"
	"path/filepath"
	"strings"
	"time"

	"gioui.org/f32"
	"gioui.org/io/semantic"
	"gioui.org/op/clip"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// sideRow is one line of the sidebar's list.
type sideRow struct {
	head  string
	conv  *model.Conversation
	agent *model.Agent
}

// sideRows lists conversations by their folder, the folder of the newest first,
// then the agents.
func (u *UI) sideRows() []sideRow {
	var folders []string
	in := map[string][]*model.Conversation{}
	for i := range u.state.Conversations {
		c := &u.state.Conversations[i]
		if c.Archived {
			continue
		}
		f := folderName(c.Workspace, u.words.NoFolder)
		if in[f] == nil {
			folders = append(folders, f)
		}
		in[f] = append(in[f], c)
	}
	var rows []sideRow
	for _, f := range folders {
		rows = append(rows, sideRow{head: f})
		for _, c := range in[f] {
			rows = append(rows, sideRow{conv: c})
		}
	}
	if len(u.state.Agents) > 0 {
		rows = append(rows, sideRow{head: u.words.Agents})
	}
	for i := range u.state.Agents {
		rows = append(rows, sideRow{agent: &u.state.Agents[i]})
	}
	return rows
}

func folderName(path, none string) string {
	if path == "" {
		return none
	}
	return filepath.Base(path)
}

func (u *UI) layoutSidebar(gtx C) D {
	size := gtx.Constraints.Max
	fill(gtx.Ops, image.Rectangle{Max: size}, u.pal.Background)
	edge, foot := gtx.Dp(12), gtx.Dp(44)
	y := gtx.Dp(16)
	at(loose(gtx, size.X-2*edge, gtx.Dp(32)), edge, y, u.searchBox)
	y += gtx.Dp(32) + gtx.Dp(6)
	at(loose(gtx, size.X-gtx.Dp(16), gtx.Dp(32)), gtx.Dp(8), y, func(gtx C) D {
		return u.sideItem(gtx, "new", u.words.NewConversation, false, func(gtx C, _ bool) D {
			u.plus(gtx, image.Pt(gtx.Dp(16), gtx.Dp(16)))
			return at(loose(gtx, gtx.Constraints.Max.X-gtx.Dp(40), gtx.Dp(32)), gtx.Dp(28), gtx.Dp(5), func(gtx C) D {
				return u.label(gtx, theme.Body, u.pal.Accent, u.words.NewConversation)
			})
		}, u.newConversation)
	})
	y += gtx.Dp(32)
	rows := u.sideRows()
	at(sized(gtx, size.X, size.Y-y-foot), 0, y, func(gtx C) D {
		return u.sideList.Layout(gtx, len(rows), func(gtx C, i int) D { return u.sideRow(gtx, rows[i]) })
	})
	at(loose(gtx, size.X-gtx.Dp(16), gtx.Dp(32)), gtx.Dp(8), size.Y-foot+gtx.Dp(2), func(gtx C) D {
		return u.sideItem(gtx, "settings", u.words.Settings, u.route.Page == PageSettings, func(gtx C, _ bool) D {
			return at(gtx, gtx.Dp(12), gtx.Dp(7), func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Third, u.words.Settings) })
		}, func() { u.Go(Route{Page: PageSettings}) })
	})
	return D{Size: size}
}

// searchBox opens the palette, which searches everything.
func (u *UI) searchBox(gtx C) D {
	size := image.Pt(gtx.Constraints.Max.X, gtx.Dp(32))
	return u.press(gtx, "search", u.words.Search, func(gtx C, hot bool) D {
		border := u.pal.Line
		if hot {
			border = u.pal.Strong
		}
		box(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusRow), u.pal.Panel, border)
		key := u.width(gtx, theme.Label, u.words.ShortcutSearch)
		kx := size.X - key - gtx.Dp(16)
		at(loose(gtx, kx-gtx.Dp(16), size.Y), gtx.Dp(11), gtx.Dp(6), func(gtx C) D { return u.label(gtx, theme.Control, u.pal.Third, u.words.Search) })
		box(gtx.Ops, image.Rect(kx, gtx.Dp(7), kx+key+gtx.Dp(10), gtx.Dp(25)), gtx.Dp(4), u.pal.Panel, u.pal.Line)
		at(gtx, kx+gtx.Dp(5), gtx.Dp(8), func(gtx C) D { return u.label(gtx, theme.Label, u.pal.Third, u.words.ShortcutSearch) })
		return D{Size: size}
	}, func() { u.palette.wanted = true })
}

// plus draws a plus sign around a point.
func (u *UI) plus(gtx C, p image.Point) {
	d, w := gtx.Dp(5), float32(gtx.Dp(1))*1.4
	x, y := float32(p.X)+.5, float32(p.Y)+.5
	stroke(gtx.Ops, w, u.pal.Accent, f32.Pt(x-float32(d), y), f32.Pt(x+float32(d), y))
	stroke(gtx.Ops, w, u.pal.Accent, f32.Pt(x, y-float32(d)), f32.Pt(x, y+float32(d)))
}

// sideItem is a row of the sidebar that can be pressed.
func (u *UI) sideItem(gtx C, id, name string, on bool, w func(gtx C, hot bool) D, do func()) D {
	size := image.Pt(gtx.Constraints.Max.X, gtx.Dp(theme.RowHeight))
	return u.press(gtx, "side/"+id, name, func(gtx C, hot bool) D {
		switch {
		case on:
			fillRound(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusRow), u.pal.Sunken)
			if u.pal.Dark {
				fillRound(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusRow), u.pal.Line)
			}
		case hot:
			fillRound(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusRow), u.pal.Sunken)
		}
		w(loose(gtx, size.X, size.Y), hot)
		return D{Size: size}
	}, do)
}

func (u *UI) sideRow(gtx C, r sideRow) D {
	width := gtx.Constraints.Max.X
	if r.head != "" {
		at(loose(gtx, width-gtx.Dp(40), gtx.Dp(32)), gtx.Dp(20), gtx.Dp(11), func(gtx C) D {
			return u.caption(gtx, u.pal.Third, r.head)
		})
		return D{Size: image.Pt(width, gtx.Dp(32))}
	}
	w := func(gtx C) D { return u.sideAgent(gtx, r.agent) }
	if r.conv != nil {
		w = func(gtx C) D { return u.sideConv(gtx, r.conv) }
	}
	at(loose(gtx, width-gtx.Dp(16), gtx.Dp(32)), gtx.Dp(8), 0, w)
	return D{Size: image.Pt(width, gtx.Dp(theme.RowHeight))}
}

// caption is a small heading in capitals.
func (u *UI) caption(gtx C, c colour, s string) D {
	return u.label(gtx, theme.Caption, c, strings.ToUpper(s))
}

func (u *UI) sideConv(gtx C, c *model.Conversation) D {
	on := u.route.Page == PageConversation && u.route.Conversation == c.ID
	mark, word, dot := u.state.Mark(c.ID), ago(u.words, u.now().Sub(c.Updated), c.Updated.In(u.zone)), u.pal.Background
	switch mark {
	case model.MarkGate:
		word, dot = u.words.MarkGate, u.pal.Warn
	case model.MarkNow:
		word, dot = u.words.MarkNow, u.pal.Accent
	case model.MarkNew:
		word, dot = u.words.MarkNew, u.pal.Ok
	}
	name := c.Title
	if name == "" {
		name = u.words.NewConversation
	}
	return u.sideItem(gtx, "conv/"+c.ID, name, on, func(gtx C, hot bool) D {
		if mark != model.MarkNone {
			disc(gtx.Ops, image.Pt(gtx.Dp(16), gtx.Dp(16)), gtx.Dp(8), dot)
		}
		st, ink := theme.Body, u.pal.Second
		if on || mark == model.MarkGate || mark == model.MarkNew {
			ink = u.pal.Ink
		}
		if on {
			st.Font.Weight = theme.BodyBold.Font.Weight
			st.Size = 14
		}
		u.sideText(gtx, st, ink, name, word)
		return D{}
	}, func() { u.Go(Route{Conversation: c.ID, Tab: u.route.Tab}) })
}

// sideText writes a name and, at the right, a word.
func (u *UI) sideText(gtx C, st theme.Style, ink colour, name, word string) {
	right := gtx.Constraints.Max.X - gtx.Dp(12)
	w := u.width(gtx, theme.Label, word)
	at(loose(gtx, w+1, gtx.Dp(20)), right-w, gtx.Dp(8), func(gtx C) D { return u.label(gtx, theme.Label, u.pal.Third, word) })
	at(loose(gtx, right-w-gtx.Dp(36), gtx.Dp(24)), gtx.Dp(28), gtx.Dp(5), func(gtx C) D { return u.label(gtx, st, ink, name) })
}

func (u *UI) sideAgent(gtx C, a *model.Agent) D {
	return u.sideItem(gtx, "agent/"+a.ID, a.ID, false, func(gtx C, _ bool) D {
		dot := u.pal.Muted
		if a.Ready() {
			dot = u.hue(a.ID)
		}
		disc(gtx.Ops, image.Pt(gtx.Dp(16), gtx.Dp(16)), gtx.Dp(8), dot)
		u.sideText(gtx, theme.Body, u.pal.Second, a.ID, text.Word(u.words.Readiness, a.Status))
		return D{}
	}, func() { u.Go(Route{Page: PageAgents}) })
}

// hue is the colour of an agent.
func (u *UI) hue(agent string) colour { return u.pal.Hues[u.state.Hue(agent)%len(u.pal.Hues)] }

// ago says how long ago something was, in one word.
func ago(w *text.Strings, d time.Duration, when time.Time) string {
	switch {
	case when.IsZero():
		return ""
	case d < time.Minute:
		return w.JustNow
	case d < time.Hour:
		return fmt.Sprintf(w.Minutes, int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf(w.Hours, int(d.Hours()))
	case d < 7*24*time.Hour:
		return w.Weekdays[when.Weekday()]
	}
	return when.Format("2006-01-02")
}

// initials are the two letters on an agent's square.
func initials(name string) string {
	r := []rune(strings.TrimSpace(name))
	switch {
	case len(r) == 0:
		return "?"
	case len(r) == 1 || r[0] >= 0x2E80:
		return strings.ToUpper(string(r[0]))
	}
	return strings.ToUpper(string(r[0])) + strings.ToLower(string(r[1]))
}

// avatar draws an agent's square.
func (u *UI) avatar(gtx C, agent string, ready bool) D {
	d := gtx.Dp(28)
	c := u.pal.Muted
	if ready {
		c = u.hue(agent)
	}
	fillRound(gtx.Ops, image.Rect(0, 0, d, d), gtx.Dp(theme.RadiusRow), c)
	st := theme.Caption
	st.Size, st.Line = 12, 18
	s := initials(agent)
	w := u.width(gtx, st, s)
	ink := u.pal.OnHue
	if !ready {
		ink = u.pal.Second
	}
	silent(gtx, func(gtx C) {
		at(loose(gtx, d, d), (d-w)/2, gtx.Dp(5), func(gtx C) D { return u.label(gtx, st, ink, s) })
	})
	return D{Size: image.Pt(d, d)}
}

// silent draws what has no meaning of its own for a reader of the window.
func silent(gtx C, w func(gtx C)) {
	defer clip.Rect{Max: gtx.Constraints.Max}.Push(gtx.Ops).Pop()
	semantic.EnabledOp(false).Add(gtx.Ops)
	w(gtx)
}
