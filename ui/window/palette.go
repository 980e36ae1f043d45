package window

import (
	"fmt"
	"image"
	"strings"

	"gioui.org/io/event"
	"gioui.org/io/key"
	"gioui.org/io/semantic"
	"gioui.org/layout"
	"gioui.org/op/clip"
	"gioui.org/widget"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// palette finds any action, conversation or agent by a few letters.
type palette struct {
	open, wanted bool
	query        widget.Editor
	list         widget.List
	at           int
}

func (p *palette) init() {
	p.query.SingleLine, p.query.Submit = true, true
	p.list.Axis = layout.Vertical
}

// command is one thing that the palette can do.
type command struct {
	id, name, hint string
	do             func()
}

func (u *UI) openPalette(gtx C) {
	u.palette.open, u.palette.at = true, 0
	u.palette.query.SetText("")
	gtx.Execute(key.FocusCmd{Tag: &u.palette.query})
}

// commands lists everything that can be done now.
func (u *UI) commands() []command {
	w := u.words
	cs := []command{
		{"new", w.ActNew, "Ctrl N", u.newConversation},
		{"side", w.ActSidebar, "Ctrl B", u.toggleSidebar},
		{"inspect", w.ActInspector, "Ctrl I", u.toggleInspector},
		{"settings", w.ActSettings, "Ctrl ,", func() { u.Go(Route{Page: PageSettings}) }},
		{"agents", w.ActAgents, "", func() { u.Go(Route{Page: PageAgents}) }},
		{"welcome", w.ActWelcome, "", func() { u.Go(Route{Page: PageWelcome}) }},
		{"sample", w.SampleCouncil, "", u.sampleCouncil},
		{"check", w.Check, "", func() { u.do(model.CheckAgents{}) }},
		{"theme", w.ActTheme, "", func() { u.choose(map[bool]string{true: "light", false: "dark"}[u.pal.Dark], u.lang) }},
		{"language", w.ActLanguage, "", func() { u.choose(u.themeName, map[bool]string{true: "en", false: "zh-CN"}[u.lang == "zh-CN"]) }},
	}
	if c := u.conv(); c != nil {
		cs = append(cs, command{"focus", w.ActFocus, "", func() { c.focus = true }}, command{"latest", w.ActLatest, "", c.toEnd})
		for _, p := range plans {
			cs = append(cs, command{"plan/" + p, fmt.Sprintf(w.ActPlan, text.Word(w.Plans, p)), "", func() { c.plan = p }})
		}
		for _, m := range modes {
			cs = append(cs, command{"mode/" + m, w.Permission + ": " + text.Word(w.Permissions, m), "", func() { c.mode = m }})
		}
	}
	cs = append(cs, u.threadCommands()...)
	for i := range u.state.Conversations {
		c := &u.state.Conversations[i]
		cs = append(cs, command{"open/" + c.ID, fmt.Sprintf(w.ActOpen, oneLine(c.Title)), folderName(c.Workspace, ""), func() { u.Go(Route{Conversation: c.ID}) }})
	}
	return cs
}

// threadCommands are those about the conversation shown and its newest run.
func (u *UI) threadCommands() []command {
	t := u.thread()
	if t == nil {
		return nil
	}
	w, id := u.words, t.Conversation.ID
	tab := func(t Tab) func() {
		return func() { u.Go(Route{Conversation: id, Tab: t, Inspect: true}) }
	}
	cs := []command{
		{"rename", w.ActRename, "", u.startRename},
		{"archive", w.ActArchive, "", func() { u.do(model.Archive{Conversation: id, Archived: true}) }},
		{"run", w.ActRunTab, "", tab(TabRun)}, {"context", w.ActContextTab, "", tab(TabContext)},
		{"findings", w.ActFindingsTab, "", tab(TabFindings)}, {"files", w.ActFilesTab, "", tab(TabFiles)},
	}
	r := u.shownRun()
	if r == nil {
		return cs
	}
	if r.Active() || r.Waiting() > 0 {
		cs = append(cs, command{"stop", w.ActStop, "", func() { u.do(model.StopRun{Run: r.ID}) }})
	} else {
		cs = append(cs, command{"retry", w.ActRetry, "", func() { u.do(model.Retry{Run: r.ID}) }},
			command{"resume", w.ActResume, "", func() { u.do(model.Resume{Run: r.ID}) }})
	}
	if g := u.firstGate(); g != nil {
		c := u.conv()
		for _, o := range g.Options {
			cs = append(cs, command{"gate/" + o.ID, fmt.Sprintf(w.ActAnswer, u.optionName(o)), oneLine(g.Summary), func() { u.answerLater(c, *g, o) }})
		}
	}
	for _, f := range r.Findings {
		if f.Adopted == "" || f.Adopted == "reopened" {
			cs = append(cs, command{"accept/" + f.ID, fmt.Sprintf(w.ActAccept, oneLine(f.Title)), "", func() { u.do(model.Adopt{Finding: f.ID, Word: "accept"}) }},
				command{"reject/" + f.ID, fmt.Sprintf(w.ActReject, oneLine(f.Title)), "", func() { u.do(model.Adopt{Finding: f.ID, Word: "reject"}) }})
		}
	}
	return cs
}

// choose sets theme and language and lets them be kept.
func (u *UI) choose(themeName, lang string) {
	u.SetTheme(themeName)
	u.SetLang(lang)
	if u.hooks.Settings != nil {
		u.hooks.Settings(themeName, lang)
	}
}

// matching keeps the commands that have every word of the query in them.
func matching(cs []command, query string) []command {
	var out []command
	for _, c := range cs {
		ok := true
		for _, w := range strings.Fields(strings.ToLower(query)) {
			ok = ok && strings.Contains(strings.ToLower(c.name+" "+c.hint), w)
		}
		if ok {
			out = append(out, c)
		}
	}
	return out
}

// layoutPalette draws the palette over everything.
func (u *UI) layoutPalette(gtx C) {
	p := &u.palette
	size := gtx.Constraints.Max
	shade := u.pal.Sunken
	shade.A = 150
	veil := clip.Rect{Max: size}.Push(gtx.Ops)
	event.Op(gtx.Ops, p)
	fill(gtx.Ops, image.Rectangle{Max: size}, shade)
	veil.Pop()
	for {
		if _, ok := gtx.Event(pressFilter(p)); !ok {
			break
		}
		p.open = false
	}
	found := matching(u.commands(), p.query.Text())
	u.paletteKeys(gtx, &found)
	w := min(gtx.Dp(600), size.X-gtx.Dp(32))
	h := min(gtx.Dp(48)+max(len(found), 1)*gtx.Dp(34)+gtx.Dp(14), gtx.Dp(420), size.Y-gtx.Dp(96))
	at(sized(gtx, w, h), (size.X-w)/2, gtx.Dp(64), func(gtx C) D { return u.paletteBox(gtx, found) })
}

func (u *UI) paletteKeys(gtx C, found *[]command) {
	p := &u.palette
	for {
		e, ok := gtx.Event(key.Filter{Focus: &p.query, Name: key.NameUpArrow}, key.Filter{Focus: &p.query, Name: key.NameDownArrow})
		if !ok {
			break
		}
		if k, ok := e.(key.Event); ok && k.State == key.Press {
			if k.Name == key.NameUpArrow {
				p.at--
			} else {
				p.at++
			}
		}
	}
	for {
		e, ok := p.query.Update(gtx)
		if !ok {
			break
		}
		switch e.(type) {
		case widget.ChangeEvent:
			p.at = 0
			*found = matching(u.commands(), p.query.Text())
		case widget.SubmitEvent:
			if p.at >= 0 && p.at < len(*found) {
				u.runCommand((*found)[p.at])
			}
		}
	}
	p.at = min(max(p.at, 0), max(len(*found)-1, 0))
}

func (u *UI) runCommand(c command) {
	u.palette.open = false
	u.later = append(u.later, c.do)
}

func (u *UI) paletteBox(gtx C, found []command) D {
	p := &u.palette
	size := gtx.Constraints.Max
	area := clip.Rect{Max: size}.Push(gtx.Ops)
	event.Op(gtx.Ops, &p.list) // a press here is not one beside it
	box(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusComposer), u.pal.Panel, u.pal.Strong)
	head := gtx.Dp(48)
	at(sized(gtx, size.X-gtx.Dp(32), head), gtx.Dp(16), gtx.Dp(13), func(gtx C) D {
		gtx.Constraints.Min.Y = 0
		return u.editor(gtx, &p.query, theme.Heading3, u.words.PaletteHint)
	})
	fill(gtx.Ops, image.Rect(0, head, size.X, head+1), u.pal.Line)
	if len(found) == 0 {
		at(loose(gtx, size.X, head), gtx.Dp(16), head+gtx.Dp(14), func(gtx C) D { return u.label(gtx, theme.Body, u.pal.Third, u.words.PaletteNone) })
	}
	if pos := &p.list.Position; p.at < pos.First || pos.Count > 1 && p.at >= pos.First+pos.Count-1 {
		p.list.ScrollTo(max(p.at-4, 0))
	}
	at(sized(gtx, size.X, size.Y-head-gtx.Dp(14)), 0, head+gtx.Dp(7), func(gtx C) D {
		return p.list.List.Layout(gtx, len(found), func(gtx C, i int) D { return u.paletteRow(gtx, found[i], i == p.at) })
	})
	area.Pop()
	return D{Size: size}
}

func (u *UI) paletteRow(gtx C, c command, on bool) D {
	width, h := gtx.Constraints.Max.X, gtx.Dp(34)
	at(loose(gtx, width-gtx.Dp(14), h), gtx.Dp(7), 0, func(gtx C) D {
		return u.press(gtx, "cmd/"+c.id, c.name, func(gtx C, hot bool) D {
			size := image.Pt(gtx.Constraints.Max.X, h)
			if on || hot {
				fillRound(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusRow), u.pal.AccentSoft)
			}
			if on {
				semantic.SelectedOp(true).Add(gtx.Ops)
			}
			hint := min(u.width(gtx, theme.Label, c.hint), size.X/2)
			at(loose(gtx, hint+1, h), size.X-hint-gtx.Dp(10), gtx.Dp(9), func(gtx C) D { return u.label(gtx, theme.Label, u.pal.Third, c.hint) })
			at(loose(gtx, size.X-hint-gtx.Dp(32), h), gtx.Dp(10), gtx.Dp(7), func(gtx C) D { return u.label(gtx, theme.Control, u.pal.Ink, c.name) })
			return D{Size: size}
		}, func() { u.palette.open = false; c.do() })
	})
	return D{Size: image.Pt(width, h)}
}
