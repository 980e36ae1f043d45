package window

import (
	"fmt"
	"image"
	"time"

	"gioui.org/op"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// itemText is the text of a row that can be selected.
func itemText(i model.Item) string {
	switch {
	case i.Kind == model.ItemAgent && i.Attempt != nil:
		return i.Attempt.Words()
	case i.Message != nil:
		return i.Message.Text
	}
	return ""
}

func (u *UI) layoutItem(gtx C, c *convView, i model.Item) D {
	switch i.Kind {
	case model.ItemUser:
		return u.layoutUser(gtx, c, i)
	case model.ItemRule:
		return u.layoutRule(gtx, i)
	case model.ItemAgent:
		return u.layoutAgent(gtx, c, i)
	case model.ItemGate:
		return u.layoutGate(gtx, c, i)
	case model.ItemEnd:
		return u.layoutEnd(gtx, i)
	}
	s := ""
	switch {
	case i.Notice != nil:
		s = i.Notice.Text
	case i.Message != nil:
		s = i.Message.Text
	}
	return u.paragraph(gtx, theme.Meta, u.pal.Third, oneLine(s))
}

// layoutUser draws a message of the person in a sunken box.
func (u *UI) layoutUser(gtx C, c *convView, i model.Item) D {
	width := gtx.Constraints.Max.X
	px, py := gtx.Dp(16), gtx.Dp(12)
	m := i.Message
	meta := m.At.In(u.zone).Format("15:04")
	if r := i.Run; r != nil {
		plan := text.Word(u.words.Plans, r.Plan)
		meta = dots(meta, plan, u.words.AgentsChosen.Of(len(r.Agents)), text.Word(u.words.Permissions, r.Permission))
		if r.Permission == "" {
			meta = dots(m.At.In(u.zone).Format("15:04"), plan, u.words.AgentsChosen.Of(len(r.Agents)))
		}
	}
	b := u.body(gtx, "body/"+i.Key, m.Text, width-2*px)
	y := py + gtx.Dp(24)
	foot := 0
	if len(m.Attachments) > 0 {
		foot = gtx.Dp(30)
	}
	size := image.Pt(width, y+b.size.Y+foot+py)
	fillRound(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusComposer), u.pal.Sunken)
	at(loose(gtx, width-2*px, py+gtx.Dp(24)), px, py, func(gtx C) D {
		return u.nameLine(gtx, u.words.You, meta, false)
	})
	at(loose(gtx, width-2*px, 1<<24), px, y, func(gtx C) D { return u.selectable(gtx, c, b, px, y) })
	if foot > 0 {
		at(loose(gtx, width-2*px, foot), px, y+b.size.Y+gtx.Dp(6), func(gtx C) D {
			return u.label(gtx, theme.Meta, u.pal.Second, u.words.Attachments.Of(len(m.Attachments))+": "+attachmentNames(m))
		})
	}
	return D{Size: size}
}

func attachmentNames(m *model.Message) string {
	s := ""
	for i, a := range m.Attachments {
		if i > 0 {
			s += ", "
		}
		if a.Display != "" {
			s += a.Display
		} else {
			s += a.Name
		}
	}
	return s
}

// nameLine is a name and one line of what else there is to say.
func (u *UI) nameLine(gtx C, name, meta string, bad bool) D {
	max := gtx.Constraints.Max.X
	d := u.label(gtx, theme.Name, u.pal.Ink, name)
	ink := u.pal.Third
	if bad {
		ink = u.pal.Bad
	}
	x := d.Size.X + gtx.Dp(8)
	e := at(loose(gtx, max-x, d.Size.Y), x, gtx.Dp(1), func(gtx C) D { return u.label(gtx, theme.Meta, ink, meta) })
	return D{Size: image.Pt(x+e.Size.X, d.Size.Y)}
}

// layoutRule heads a phase: its name, one fact, and a line.
func (u *UI) layoutRule(gtx C, i model.Item) D {
	width, h := gtx.Constraints.Max.X, gtx.Dp(18)
	name := text.Word(u.words.Phases, i.Phase.Name)
	d := at(gtx, 0, gtx.Dp(1), func(gtx C) D { return u.caption(gtx, u.pal.Third, name) })
	x := d.Size.X + gtx.Dp(10)
	if f := u.phaseFact(i.Run, i.Phase); f != "" {
		d := at(loose(gtx, width-x-gtx.Dp(40), h), x, gtx.Dp(1), func(gtx C) D { return u.label(gtx, theme.Label, u.pal.Third, f) })
		x += d.Size.X + gtx.Dp(10)
	}
	fill(gtx.Ops, image.Rect(x, h/2, width, h/2+1), u.pal.Line)
	return D{Size: image.Pt(width, h)}
}

// phaseFact is the one thing to know about a phase.
func (u *UI) phaseFact(r *model.Run, p *model.Phase) string {
	n := len(p.Agents)
	fact := ""
	switch p.Name {
	case "proposal":
		fact = u.words.Independent.Of(n)
		if r.Snapshot != "" {
			fact += ", " + fmt.Sprintf(u.words.SameSnapshot, short(r.Snapshot))
		}
	case "work":
		fact = fmt.Sprintf(u.words.PhaseRules["work"], n)
	case "discuss":
		return fmt.Sprintf(u.words.PhaseRules["discuss"], p.Round)
	default:
		fact = u.words.PhaseRules[p.Name]
	}
	if p.Name == "challenge" && r.Agreed != nil && r.Phases != nil && lastRound(r, "challenge") == p.Round {
		fact = fmt.Sprintf(u.words.AgreedBy, len(r.Agents), len(r.Agents))
	}
	if p.Round > 1 {
		fact = dots(fact, fmt.Sprintf(u.words.PhaseRules["discuss"], p.Round))
	}
	return fact
}

func lastRound(r *model.Run, phase string) int {
	n := 0
	for _, p := range r.Phases {
		if p.Name == phase {
			n = max(n, p.Round)
		}
	}
	return n
}

// layoutEnd says what a run came to.
func (u *UI) layoutEnd(gtx C, i model.Item) D {
	r := i.Run
	s, ink := "", u.pal.Third
	if r.Commit != nil && r.Commit.Target != "record" && r.Commit.Target != "" {
		s = fmt.Sprintf(u.words.CommittedTo, r.Commit.Target)
	}
	if r.Status != "completed" && r.Status != "waiting" {
		s = dots(s, fmt.Sprintf(u.words.EndedAs, dots(text.Word(u.words.Statuses, r.Status), text.Word(nil, r.Reason))))
		ink = u.pal.Warn
		if r.Status == "failed" {
			ink = u.pal.Bad
		}
	}
	if s == "" {
		return D{}
	}
	h := gtx.Dp(18)
	d := u.label(gtx, theme.Meta, ink, s)
	x := d.Size.X + gtx.Dp(10)
	fill(gtx.Ops, image.Rect(x, h/2, gtx.Constraints.Max.X, h/2+1), u.pal.Line)
	return D{Size: image.Pt(gtx.Constraints.Max.X, h)}
}

// layoutAgent draws an agent's turn: square, name, one line of meta, text, tools.
func (u *UI) layoutAgent(gtx C, c *convView, i model.Item) D {
	width := gtx.Constraints.Max.X
	id := agentOf(i)
	u.avatar(gtx, id, true)
	x, y := gtx.Dp(40), 0
	meta, bad := u.agentMeta(i)
	if i.Attempt != nil && i.Attempt.Status == "working" {
		gtx.Execute(op.InvalidateCmd{At: gtx.Now.Add(time.Second)}) // its clock
	}
	folded := u.folded[i.Key]
	at(loose(gtx, width-x-gtx.Dp(120), gtx.Dp(22)), x, 0, func(gtx C) D {
		return u.press(gtx, "fold/"+i.Key, u.foldWord(folded)+" "+id, func(gtx C, _ bool) D { return u.nameLine(gtx, id, meta, bad) }, func() {
			u.folded[i.Key] = !folded
		})
	})
	src := itemText(i)
	u.turnControl(gtx, i)
	if src != "" {
		at(loose(gtx, gtx.Dp(28), gtx.Dp(28)), width-gtx.Dp(28), -gtx.Dp(4), func(gtx C) D {
			return u.copyButton(gtx, i.Key, id, src)
		})
	}
	y += gtx.Dp(23)
	if folded {
		return D{Size: image.Pt(width, max(y, gtx.Dp(28)))}
	}
	if src != "" {
		b := u.body(gtx, "body/"+i.Key, src, width-x)
		at(loose(gtx, width-x, 1<<24), x, y, func(gtx C) D { return u.selectable(gtx, c, b, x, y) })
		if i.Attempt != nil && i.Attempt.Live() {
			u.cursor(gtx, b, image.Pt(x, y), u.hue(id))
		}
		y += b.size.Y
	}
	if a := i.Attempt; a != nil {
		y += u.layoutTools(gtx, a, x, y, width)
		for _, n := range a.Notices {
			d := at(loose(gtx, width-x, 1<<20), x, y+gtx.Dp(4), func(gtx C) D { return u.paragraph(gtx, theme.Meta, u.pal.Third, oneLine(n.Text)) })
			y += d.Size.Y + gtx.Dp(4)
		}
	}
	return D{Size: image.Pt(width, max(y, gtx.Dp(28)))}
}

// turnControl stops an agent that is at work, or retries one that did not answer,
// without touching the others.
func (u *UI) turnControl(gtx C, i model.Item) {
	a, r := i.Attempt, i.Run
	if a == nil || r == nil {
		return
	}
	word, do := "", func() {}
	switch {
	case a.Live() && len(r.Agents) > 1:
		word, do = u.words.Stop, func() { u.do(model.StopRun{Run: r.ID, Agent: a.Agent}) }
	case !a.Live() && a.Status != "completed" && !r.Active() && r.Latest(a.Agent) == a:
		word, do = u.words.Retry, func() { u.do(model.Retry{Run: r.ID, Agent: a.Agent}) }
	default:
		return
	}
	right := gtx.Constraints.Max.X - gtx.Dp(32)
	call, d := measured(loose(gtx, gtx.Dp(90), gtx.Dp(28)), func(gtx C) D {
		return u.quiet(gtx, "turn/"+i.Key, word+" "+a.Agent, word, do)
	})
	t := op.Offset(image.Pt(right-d.Size.X, -gtx.Dp(2))).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
}

// quiet is a button that is only text until the pointer is on it.
func (u *UI) quiet(gtx C, id, name, word string, do func()) D {
	return u.press(gtx, id, name, func(gtx C, hot bool) D {
		pad, h := gtx.Dp(8), gtx.Dp(24)
		ink := u.pal.Third
		call, d := measured(gtx, func(gtx C) D { return u.label(gtx, theme.Meta, ink, word) })
		size := image.Pt(d.Size.X+2*pad, h)
		if hot {
			fillRound(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusRow), u.pal.Sunken)
		}
		defer op.Offset(image.Pt(pad, (h-d.Size.Y)/2)).Push(gtx.Ops).Pop()
		call.Add(gtx.Ops)
		return D{Size: size}
	}, do)
}

func (u *UI) foldWord(folded bool) string {
	if folded {
		return u.words.Expand
	}
	return u.words.Collapse
}

func agentOf(i model.Item) string {
	if i.Attempt != nil {
		return i.Attempt.Agent
	}
	return i.Message.Agent
}

// copyButton copies the whole text of a row; it shows while the pointer is near.
func (u *UI) copyButton(gtx C, key, agent, src string) D {
	id := "copy/" + key
	b := u.click(id)
	for b.Clicked(gtx) {
		u.copyText(gtx, src)
	}
	return u.press(gtx, id, u.words.Copy+" "+agent, func(gtx C, hot bool) D {
		d := gtx.Dp(28)
		if hot {
			u.drawIcon(gtx, iconCopy, u.pal.Second)
		}
		return D{Size: image.Pt(d, d)}
	}, nil)
}

// cursor marks the end of a text that is being written.
func (u *UI) cursor(gtx C, b *body, origin image.Point, c colour) {
	if len(b.paras) == 0 {
		return
	}
	p := b.paras[len(b.paras)-1]
	n := p.para.Runes()
	rects := p.para.Rects(n-1, n)
	if len(rects) == 0 {
		return
	}
	r := rects[len(rects)-1].Add(p.pos).Add(origin)
	fill(gtx.Ops, image.Rect(r.Max.X+1, r.Min.Y+gtx.Dp(2), r.Max.X+1+gtx.Dp(4), r.Max.Y-gtx.Dp(2)), c)
}

// agentMeta is the line beside an agent's name.
func (u *UI) agentMeta(i model.Item) (string, bool) {
	a := i.Attempt
	if a == nil {
		s := i.Message.At.In(u.zone).Format("15:04")
		if st := i.Message.Status; st != "" && st != "completed" {
			return dots(s, text.Word(u.words.Statuses, st)), st == "failed"
		}
		return s, false
	}
	item := a.Item
	if i.Run != nil && i.Run.Agreed != nil && i.Run.Agreed.Finalizer == a.Agent && a.Phase == "synthesis" {
		item = u.words.FinalizerIs
	}
	try := ""
	if a.Try > 1 {
		try = fmt.Sprintf(u.words.Try, a.Try)
	}
	switch a.Status {
	case "queued":
		return dots(item, try, u.words.Queued), false
	case "working":
		return dots(item, try, fmt.Sprintf(u.words.Running, clock(max(u.now().Sub(a.Started), 0)))), false
	case "completed":
		d := ""
		if !a.Started.IsZero() {
			d = took(u.words, a.Finished.Sub(a.Started))
		}
		st := ""
		if a.Receipt != nil {
			st = text.Word(u.words.Stances, a.Receipt.Stance)
		}
		return dots(item, try, d, tokens(u.words, a.Usage), st), false
	}
	return dots(item, try, text.Word(u.words.Statuses, a.Status), text.Word(nil, a.Reason)), a.Status == "failed" || a.Status == "stalled"
}
