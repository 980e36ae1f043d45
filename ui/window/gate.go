package window

import (
	"fmt"
	"image"
	"strconv"
	"strings"
	"time"

	"gioui.org/io/key"
	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/widget"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// inertia is how long a gate takes no input after it became the one that keys
// answer: a press that was meant for another must not decide this one.
const inertia = 300 * time.Millisecond

// gateView is the gate that keys answer, and since when.
type gateView struct {
	current string
	since   time.Time
	reply   widget.Editor
	sent    string // the gate that was answered and is not decided yet
}

// firstGate is the oldest gate of the conversation that waits.
func (u *UI) firstGate() *model.Gate {
	t := u.thread()
	if t == nil {
		return nil
	}
	if u.gateIn != t { // a thread never changes
		u.gateIn, u.gate = t, firstGate(t)
	}
	return u.gate
}

func firstGate(t *model.Thread) *model.Gate {
	for i := range t.Blocks() {
		r := t.Block(i).Run
		if r == nil {
			continue
		}
		for i := range r.Gates {
			if r.Gates[i].Open() {
				return &r.Gates[i]
			}
		}
	}
	return nil
}

// gateKeys answers the oldest gate by number, while no text is being written.
func (u *UI) gateKeys(gtx C) {
	c := u.conv()
	if c == nil {
		return
	}
	g := u.firstGate()
	if g == nil {
		c.gates.current = ""
		return
	}
	if c.gates.current != g.ID {
		c.gates.current, c.gates.since = g.ID, gtx.Now
		c.gates.reply.SetText("")
	}
	for i, o := range g.Options {
		for {
			e, ok := gtx.Event(key.Filter{Name: key.Name(strconv.Itoa(i + 1)), Optional: key.ModAlt})
			if !ok {
				break
			}
			k, ok := e.(key.Event)
			if ok && k.State == key.Press && !u.palette.open && (k.Modifiers.Contain(key.ModAlt) || !u.writing(gtx, c)) {
				u.answer(gtx, c, *g, o)
			}
		}
	}
}

// writing reports whether keys go into a text.
func (u *UI) writing(gtx C, c *convView) bool {
	return gtx.Focused(&c.draft) && c.draft.Len() > 0 || gtx.Focused(&c.gates.reply) || gtx.Focused(&u.title.editor)
}

// answer decides a gate, unless it came up a moment ago or was answered already.
func (u *UI) answer(gtx C, c *convView, g model.Gate, o model.Option) {
	if c.gates.sent == g.ID || c.gates.current == g.ID && gtx.Now.Sub(c.gates.since) < inertia {
		return
	}
	if o.ID == "reply" && strings.TrimSpace(c.gates.reply.Text()) == "" {
		gtx.Execute(key.FocusCmd{Tag: &c.gates.reply})
		return
	}
	c.gates.sent = g.ID
	u.do(model.Answer{Gate: g.ID, Option: o.ID, Text: strings.TrimSpace(c.gates.reply.Text())})
}

// optionName is how an answer is called: by its code, or as an agent named it.
func (u *UI) optionName(o model.Option) string {
	if w, ok := u.words.Options[o.ID]; ok {
		return w
	}
	if o.Name != "" {
		return oneLine(o.Name)
	}
	return text.Word(nil, o.ID)
}

// layoutGate draws a gate: as a card while it waits, as a line once it is decided.
func (u *UI) layoutGate(gtx C, c *convView, i model.Item) D {
	g := *i.Gate
	left, width := gtx.Dp(40), gtx.Constraints.Max.X-gtx.Dp(40)
	if !g.Open() {
		name := u.optionName(model.Option{ID: g.Decided})
		for _, o := range g.Options {
			if o.ID == g.Decided {
				name = u.optionName(o)
			}
		}
		line := dots(text.Word(u.words.GateKinds, g.Kind), oneLine(g.Summary), fmt.Sprintf(u.words.DecidedBy, name, g.By))
		d := at(loose(gtx, width, 1<<20), left, 0, func(gtx C) D { return u.paragraph(gtx, theme.Meta, u.pal.Third, line) })
		return D{Size: image.Pt(gtx.Constraints.Max.X, d.Size.Y)}
	}
	pad := gtx.Dp(14)
	call, d := measured(loose(gtx, width-2*pad, 1<<24), func(gtx C) D { return u.gateInside(gtx, c, g) })
	size := image.Pt(width, d.Size.Y+2*pad-gtx.Dp(2))
	box(gtx.Ops, image.Rectangle{Max: size}.Add(image.Pt(left, 0)), gtx.Dp(theme.RadiusCard), u.pal.Panel, u.pal.Warn)
	t := op.Offset(image.Pt(left+pad, pad-gtx.Dp(1))).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	return D{Size: image.Pt(gtx.Constraints.Max.X, size.Y)}
}

func (u *UI) gateInside(gtx C, c *convView, g model.Gate) D {
	ws := []layout.Widget{
		func(gtx C) D {
			return u.ends(gtx, func(gtx C) D {
				return u.label(gtx, theme.Name, u.pal.Warn, dots(text.Word(u.words.GateKinds, g.Kind), g.Agent))
			}, theme.Meta, u.words.ExpiresWithRun)
		},
		func(gtx C) D { return u.paragraph(gtx, theme.Body, u.pal.Ink, oneLine(g.Summary)) },
	}
	if g.Target != "" {
		ws = append(ws, func(gtx C) D { return u.codeBox(gtx, g.Target, "diff") })
	}
	input := false
	for _, o := range g.Options {
		input = input || o.ID == "reply"
	}
	if input {
		ws = append(ws, func(gtx C) D { return u.replyBox(gtx, c) })
	}
	ws = append(ws, func(gtx C) D { return u.gateButtons(gtx, c, g) })
	return column(gtx, 8, ws...)
}

// ends lays w out at the left and a text at the right of one line.
func (u *UI) ends(gtx C, w layout.Widget, st theme.Style, right string) D {
	full := gtx.Constraints.Max.X
	rw := 0
	if right != "" {
		rw = min(u.width(gtx, st, right), full/2)
		at(loose(gtx, rw+1, gtx.Dp(30)), full-rw, gtx.Dp(1), func(gtx C) D { return u.label(gtx, st, u.pal.Third, right) })
	}
	d := w(loose(gtx, max(full-rw-gtx.Dp(12), 0), gtx.Constraints.Max.Y))
	return D{Size: image.Pt(full, d.Size.Y)}
}

func (u *UI) replyBox(gtx C, c *convView) D {
	pad := gtx.Dp(8)
	gtx.Constraints.Min.X = 0
	call, d := measured(loose(gtx, gtx.Constraints.Max.X-2*pad, gtx.Dp(120)), func(gtx C) D {
		gtx.Constraints.Min.X = gtx.Constraints.Max.X
		return u.editor(gtx, &c.gates.reply, theme.Body, u.words.ReplyHere)
	})
	size := image.Pt(gtx.Constraints.Max.X, d.Size.Y+2*pad)
	box(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(theme.RadiusRow), u.pal.Panel, u.pal.Strong)
	t := op.Offset(image.Pt(pad, pad)).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	return D{Size: size}
}

func (u *UI) gateButtons(gtx C, c *convView, g model.Gate) D {
	if c.gates.sent == g.ID {
		gtx = gtx.Disabled()
	}
	var ws []layout.Widget
	var keys []string
	for i, o := range g.Options {
		how := lookPlain
		if i == 0 {
			how = lookStrong
		}
		keys = append(keys, strconv.Itoa(i+1))
		ws = append(ws, func(gtx C) D {
			return u.button(gtx, "gate/"+g.ID+"/"+o.ID, u.optionName(o), how, func() { u.answerLater(c, g, o) })
		})
	}
	if g.ID == c.gates.current && len(keys) < 10 {
		ws = append(ws, func(gtx C) D {
			return padded(gtx, 0, 0, 0, 6, func(gtx C) D {
				return u.label(gtx, theme.Meta, u.pal.Third, fmt.Sprintf(u.words.OnKeyboard, strings.Join(keys, " · ")))
			})
		})
	}
	return row(gtx, 8, ws...)
}

// answerLater answers from a press, whose frame is over when it is done.
func (u *UI) answerLater(c *convView, g model.Gate, o model.Option) {
	u.pressed = append(u.pressed, func(gtx C) { u.answer(gtx, c, g, o) })
}

// codeBox draws code in a box, coloured like a block of a message.
func (u *UI) codeBox(gtx C, src, lang string) D {
	fence := "```"
	for strings.Contains(src, fence) {
		fence += "`"
	}
	width := gtx.Constraints.Max.X
	b := u.body(gtx, fmt.Sprintf("code/%d/%s/%s", width, lang, src), fence+lang+"\n"+src+"\n"+fence, width)
	return u.paintBody(gtx, b)
}
