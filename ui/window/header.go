package window

import (
	"fmt"
	"image"
	"strings"
	"unicode"
	"unicode/utf8"

	"gioui.org/f32"
	"gioui.org/io/key"
	"gioui.org/op"
	"gioui.org/widget"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// titleEditor renames the conversation in place.
type titleEditor struct {
	editor widget.Editor
	conv   string // being renamed
	focus  bool
}

func (t *titleEditor) init() { t.editor.SingleLine, t.editor.Submit = true, true }

// layoutMiddle draws the header and the page below it.
func (u *UI) layoutMiddle(gtx C) D {
	size := gtx.Constraints.Max
	head := gtx.Dp(theme.HeaderHeight)
	hair := max(gtx.Dp(1), 1)
	at(sized(gtx, size.X, head), 0, 0, u.layoutHeader)
	fill(gtx.Ops, image.Rect(0, head-hair, size.X, head), u.pal.Line)
	y := head
	if u.state.Trouble != "" {
		y += at(loose(gtx, size.X, size.Y), 0, y, func(gtx C) D { return u.banner(gtx, fmt.Sprintf(u.words.Unreachable, u.state.Trouble), nil) }).Size.Y
	}
	if u.failed != "" {
		y += at(loose(gtx, size.X, size.Y), 0, y, func(gtx C) D {
			return u.banner(gtx, fmt.Sprintf(u.words.Failed, u.failed), func() { u.failed = "" })
		}).Size.Y
	}
	at(sized(gtx, size.X, size.Y-y), 0, y, func(gtx C) D {
		switch u.route.Page {
		case PageWelcome:
			return u.layoutWelcome(gtx)
		case PageAgents:
			return u.layoutWelcome(gtx)
		case PageSettings:
			return u.layoutSettings(gtx)
		}
		return u.layoutConversation(gtx)
	})
	return D{Size: size}
}

// banner says what is wrong, over the whole width; with done it can be put away.
func (u *UI) banner(gtx C, what string, done func()) D {
	call, d := measured(gtx, func(gtx C) D {
		return padded(gtx, 8, 20, 8, 20, func(gtx C) D {
			if done == nil {
				return u.paragraph(gtx, theme.Control, u.pal.Bad, what)
			}
			full := gtx.Constraints.Max.X
			call, b := measured(gtx, func(gtx C) D { return u.button(gtx, "dismiss", u.words.Dismiss, lookPill, done) })
			e := u.paragraph(loose(gtx, full-b.Size.X-gtx.Dp(12), gtx.Constraints.Max.Y), theme.Control, u.pal.Bad, what)
			t := op.Offset(image.Pt(full-b.Size.X, -gtx.Dp(2))).Push(gtx.Ops)
			call.Add(gtx.Ops)
			t.Pop()
			return D{Size: image.Pt(full, max(b.Size.Y-gtx.Dp(4), e.Size.Y))}
		})
	})
	size := image.Pt(gtx.Constraints.Max.X, d.Size.Y)
	fill(gtx.Ops, image.Rectangle{Max: size}, u.pal.BadSoft)
	call.Add(gtx.Ops)
	return D{Size: size}
}

func (u *UI) layoutHeader(gtx C) D {
	size := gtx.Constraints.Max
	x, right := gtx.Dp(20), size.X-gtx.Dp(20)
	mid := func(h int) int { return (size.Y - h) / 2 }
	put := func(w func(C) D) {
		call, d := measured(loose(gtx, right-x, size.Y), w)
		t := op.Offset(image.Pt(right-d.Size.X, mid(d.Size.Y))).Push(gtx.Ops)
		call.Add(gtx.Ops)
		t.Pop()
		if d.Size.X > 0 {
			right -= d.Size.X + gtx.Dp(12)
		}
	}
	if !u.roomSide || u.noSide {
		x -= gtx.Dp(8)
		d := at(gtx, x, mid(gtx.Dp(28)), func(gtx C) D { return u.iconButton(gtx, "side", u.words.ToggleSidebar, iconList, u.toggleSidebar) })
		x += d.Size.X + gtx.Dp(8)
	}
	gates := func() {
		if n, conv := u.gatesElsewhere(); n > 0 {
			put(func(gtx C) D {
				return u.button(gtx, "gates", u.words.GatesWait.Of(n), lookAsks, func() { u.Go(Route{Conversation: conv}) })
			})
		}
	}
	if u.route.Page != PageConversation {
		gates()
	}
	switch u.route.Page {
	case PageWelcome, PageAgents:
		at(loose(gtx, right-x, size.Y), x, mid(gtx.Dp(22)), func(gtx C) D {
			name := u.words.Welcome
			if u.route.Page == PageAgents {
				name = u.words.Agents
			}
			return u.label(gtx, theme.Title, u.pal.Ink, name)
		})
		return D{Size: size}
	case PageSettings:
		at(loose(gtx, right-x, size.Y), x, mid(gtx.Dp(22)), func(gtx C) D { return u.label(gtx, theme.Title, u.pal.Ink, u.words.Settings) })
		return D{Size: size}
	}
	if u.route.Conversation != "" && (!u.roomInspect || u.noInspect) {
		put(func(gtx C) D {
			return u.iconButton(gtx, "inspect", u.words.ToggleInspector, iconPanel, u.toggleInspector)
		})
	}
	t := u.thread()
	if t != nil {
		if r := t.Last(); r != nil {
			if r.Active() || r.Waiting() > 0 {
				put(func(gtx C) D {
					return u.button(gtx, "stop", u.words.Stop, lookPill, func() { u.do(model.StopRun{Run: r.ID}) })
				})
			}
			put(func(gtx C) D { return u.runPill(gtx, r) })
		}
	}
	gates()
	x += at(loose(gtx, max(right-x, 0), size.Y), x, mid(gtx.Dp(22)), u.layoutTitle).Size.X + gtx.Dp(12)
	if t == nil {
		return D{Size: size}
	}
	for _, chip := range u.facts(t) {
		call, d := measured(loose(gtx, 1<<20, size.Y), func(gtx C) D { return u.chip(gtx, chip.style, chip.text) })
		if x+d.Size.X > right {
			break
		}
		o := op.Offset(image.Pt(x, mid(d.Size.Y))).Push(gtx.Ops)
		call.Add(gtx.Ops)
		o.Pop()
		x += d.Size.X + gtx.Dp(12)
	}
	return D{Size: size}
}

// gatesElsewhere counts the gates that wait out of sight, and names the conversation
// of the oldest.
func (u *UI) gatesElsewhere() (n int, conversation string) {
	for _, g := range u.state.Gates {
		for i := range u.state.Runs {
			r := &u.state.Runs[i]
			if r.ID != g.Run || u.route.Page == PageConversation && r.Conversation == u.route.Conversation {
				continue
			}
			if n++; conversation == "" {
				conversation = r.Conversation
			}
		}
	}
	return n, conversation
}

type fact struct {
	style theme.Style
	text  string
}

// facts are what the header says about the place of work.
func (u *UI) facts(t *model.Thread) []fact {
	var out []fact
	if t.Conversation.Workspace != "" {
		out = append(out, fact{theme.Code11, tilde(t.Conversation.Workspace, u.state.Home)})
	}
	return out
}

// tilde shortens a path below the home folder.
func tilde(path, home string) string {
	if home != "" && (path == home || strings.HasPrefix(path, home+"/")) {
		return "~" + path[len(home):]
	}
	return path
}

// chip is a fact in a round border.
func (u *UI) chip(gtx C, st theme.Style, s string) D {
	pad, h := gtx.Dp(9), gtx.Dp(24)
	call, d := measured(loose(gtx, gtx.Constraints.Max.X-2*pad, h), func(gtx C) D { return u.label(gtx, st, u.pal.Second, s) })
	size := image.Pt(d.Size.X+2*pad, h)
	box(gtx.Ops, image.Rectangle{Max: size}, h/2, u.pal.Panel, u.pal.Line)
	defer op.Offset(image.Pt(pad, (h-d.Size.Y)/2)).Push(gtx.Ops).Pop()
	call.Add(gtx.Ops)
	return D{Size: size}
}

// runPill says what the newest run is at; it leads to the gate that waits.
func (u *UI) runPill(gtx C, r *model.Run) D {
	word, ink, soft := u.runWord(r)
	word = capital(word)
	return u.press(gtx, "run/state", word, func(gtx C, _ bool) D {
		pad, h := gtx.Dp(10), gtx.Dp(24)
		call, d := measured(gtx, func(gtx C) D { return u.label(gtx, theme.Meta, ink, word) })
		size := image.Pt(d.Size.X+2*pad+gtx.Dp(14), h)
		fillRound(gtx.Ops, image.Rectangle{Max: size}, h/2, soft)
		disc(gtx.Ops, image.Pt(pad+gtx.Dp(4), h/2), gtx.Dp(8), ink)
		defer op.Offset(image.Pt(pad+gtx.Dp(14), (h-d.Size.Y)/2)).Push(gtx.Ops).Pop()
		call.Add(gtx.Ops)
		return D{Size: size}
	}, func() {
		if c := u.conv(); c != nil {
			c.toEnd()
		}
	})
}

// runWord is the state of a run in a word or two, with its colours.
func (u *UI) runWord(r *model.Run) (word string, ink, soft colour) {
	if r.Waiting() > 0 || r.Status == "waiting" {
		return u.words.WaitingForYou, u.pal.Warn, u.pal.WarnSoft
	}
	if !r.Active() {
		switch r.Status {
		case "completed":
			return text.Word(u.words.Statuses, r.Status), u.pal.Ok, u.pal.OkSoft
		case "stopped", "interrupted", "partial":
			return text.Word(u.words.Statuses, r.Status), u.pal.Warn, u.pal.WarnSoft
		}
		return text.Word(u.words.Statuses, r.Status), u.pal.Bad, u.pal.BadSoft
	}
	word = text.Word(u.words.Statuses, "running")
	if n := len(r.Phases); n > 0 {
		p := r.Phases[n-1]
		done, all := 0, len(p.Agents)
		for _, a := range r.Attempts {
			if a.Phase == p.Name && a.Round == p.Round && a.Status == "completed" {
				done++
			}
		}
		word = text.Word(u.words.Phases, p.Name)
		if all > 1 {
			word = fmt.Sprintf(u.words.PhaseOf, word, min(done+1, all), all)
		}
	}
	return word, u.pal.Accent, u.pal.AccentSoft
}

// layoutTitle shows the title, or the editor that changes it.
func (u *UI) layoutTitle(gtx C) D {
	title := u.words.NewConversation
	t := u.thread()
	if t != nil && t.Conversation.Title != "" {
		title = oneLine(t.Conversation.Title)
	} else if c, ok := u.state.Conversation(u.route.Conversation); ok && c.Title != "" {
		title = oneLine(c.Title)
	}
	if t == nil || u.title.conv != t.Conversation.ID {
		return u.press(gtx, "title", title, func(gtx C, _ bool) D { return u.label(gtx, theme.Title, u.pal.Ink, title) }, func() { u.startRename() })
	}
	for {
		e, ok := u.title.editor.Update(gtx)
		if !ok {
			break
		}
		if s, ok := e.(widget.SubmitEvent); ok {
			if name := strings.TrimSpace(s.Text); name != "" && name != title {
				u.do(model.Rename{Conversation: t.Conversation.ID, Title: name})
			}
			u.title.conv = ""
			gtx.Execute(op.InvalidateCmd{})
		}
	}
	if u.title.focus {
		gtx.Execute(key.FocusCmd{Tag: &u.title.editor})
		u.title.focus = false
	}
	gtx.Constraints.Max.X = min(gtx.Constraints.Max.X, gtx.Dp(320))
	gtx.Constraints.Min.X = gtx.Constraints.Max.X
	return u.editor(gtx, &u.title.editor, theme.Title, u.words.Title)
}

// startRename puts the title into an editor.
func (u *UI) startRename() {
	if t := u.thread(); t != nil {
		u.title.conv, u.title.focus = t.Conversation.ID, true
		u.title.editor.SetText(t.Conversation.Title)
		u.title.editor.SetCaret(u.title.editor.Len(), 0)
	}
}

type icon int

const (
	iconList icon = iota
	iconPanel
	iconCopy
	iconClose
	iconDown
)

// iconButton is a button with a drawing.
func (u *UI) iconButton(gtx C, id, name string, i icon, do func()) D {
	return u.press(gtx, "icon/"+id, name, func(gtx C, hot bool) D {
		d := gtx.Dp(28)
		ink := u.pal.Second
		if hot {
			ink = u.pal.Ink
			fillRound(gtx.Ops, image.Rect(0, 0, d, d), gtx.Dp(theme.RadiusRow), u.pal.Sunken)
		}
		u.drawIcon(gtx, i, ink)
		return D{Size: image.Pt(d, d)}
	}, do)
}

// drawIcon draws an icon into 28 dp.
func (u *UI) drawIcon(gtx C, i icon, ink colour) {
	s := gtx.Metric.PxPerDp
	p := func(x, y float32) f32.Point { return f32.Pt(x*s, y*s) }
	w := 1.4 * s
	line := func(pts ...f32.Point) { stroke(gtx.Ops, w, ink, pts...) }
	switch i {
	case iconList:
		line(p(8, 9.5), p(20, 9.5))
		line(p(8, 14), p(20, 14))
		line(p(8, 18.5), p(20, 18.5))
	case iconPanel:
		line(p(7, 8), p(21, 8), p(21, 20), p(7, 20), p(7, 7.3))
		line(p(16, 8), p(16, 20))
	case iconCopy:
		line(p(11, 11), p(19, 11), p(19, 20), p(11, 20), p(11, 10.3))
		line(p(16, 8), p(8, 8), p(8, 17))
	case iconClose:
		line(p(9.5, 9.5), p(18.5, 18.5))
		line(p(18.5, 9.5), p(9.5, 18.5))
	case iconDown:
		line(p(9.5, 12), p(14, 16.5), p(18.5, 12))
	}
}

// tick draws a check mark into 12 dp.
func (u *UI) tick(gtx C, p image.Point, ink colour) {
	s := gtx.Metric.PxPerDp
	x, y := float32(p.X), float32(p.Y)
	stroke(gtx.Ops, 1.5*s, ink, f32.Pt(x+3*s, y+6.2*s), f32.Pt(x+5.2*s, y+8.6*s), f32.Pt(x+9.2*s, y+3.6*s))
}

// cross draws a cross into 12 dp.
func (u *UI) cross(gtx C, p image.Point, ink colour) {
	s := gtx.Metric.PxPerDp
	x, y := float32(p.X), float32(p.Y)
	stroke(gtx.Ops, 1.5*s, ink, f32.Pt(x+3*s, y+3*s), f32.Pt(x+9*s, y+9*s))
	stroke(gtx.Ops, 1.5*s, ink, f32.Pt(x+9*s, y+3*s), f32.Pt(x+3*s, y+9*s))
}

// enterSign draws the sign of the Enter key, 9 dp wide, around a height.
func (u *UI) enterSign(gtx C, p image.Point, ink colour) {
	s := gtx.Metric.PxPerDp
	x, y := float32(p.X), float32(p.Y)
	stroke(gtx.Ops, 1.3*s, ink, f32.Pt(x+10*s, y-4*s), f32.Pt(x+10*s, y+1.5*s), f32.Pt(x+1*s, y+1.5*s))
	stroke(gtx.Ops, 1.3*s, ink, f32.Pt(x+4*s, y-1.5*s), f32.Pt(x+1*s, y+1.5*s), f32.Pt(x+4*s, y+4.5*s))
}

// capital begins a word with a capital letter.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
