package window

import (
	"fmt"
	"image"
	"strings"
	"time"

	"gioui.org/io/semantic"
	"gioui.org/op/clip"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// stages are the columns of the grid.
var stages = []string{"freeze", "deliver", "invoke", "receipt", "verify", "commit"}

func (u *UI) runCards(r *model.Run) []card {
	out := []card{{title: u.words.Pipeline, fact: u.pipelineFact(r), body: func(gtx C) D { return u.layoutGrid(gtx, r) }}}
	if r.Agreed != nil {
		out = append(out, card{title: u.words.Graph, fact: fmt.Sprintf(u.words.AgreedAt, r.Agreed.At.In(u.zone).Format("15:04")),
			body: func(gtx C) D { return u.layoutGraph(gtx, r) }})
	} else if r.Plan == "council" && r.Active() {
		out = append(out, card{title: u.words.Graph, body: func(gtx C) D { return u.paragraph(gtx, theme.Meta, u.pal.Third, u.words.NoPlan) }})
	}
	if len(r.Attempts) > 0 {
		out = append(out, card{title: u.words.Time, fact: clock(u.span(r)), body: func(gtx C) D { return u.layoutTime(gtx, r) }})
	}
	return append(out, card{title: u.words.Budget, body: func(gtx C) D { return u.layoutBudget(gtx, r) }})
}

func (u *UI) pipelineFact(r *model.Run) string {
	return u.words.Attempts.Of(len(r.Attempts))
}

// cellState is what a stage of an attempt is at.
type cellState int

const (
	cellNone cellState = iota
	cellDone
	cellNow
	cellAsks
	cellBad
)

// cell says what to draw where an agent and a stage meet.
func cell(r *model.Run, a *model.Attempt, stage string) (cellState, model.StageEnd) {
	if stage == "freeze" {
		for _, s := range r.Stages {
			if s.Stage == stage {
				return ended(s), s
			}
		}
		return cellNone, model.StageEnd{}
	}
	if a == nil {
		return cellNone, model.StageEnd{}
	}
	for _, s := range a.Stages {
		if s.Stage == stage {
			return ended(s), s
		}
	}
	if next(a) != stage {
		return cellNone, model.StageEnd{}
	}
	for _, g := range r.Gates {
		if g.Open() && g.Attempt == a.ID {
			return cellAsks, model.StageEnd{}
		}
	}
	switch {
	case a.Status == "working":
		return cellNow, model.StageEnd{}
	case a.Live(), a.Status == "completed":
		return cellNone, model.StageEnd{}
	}
	return cellBad, model.StageEnd{Failed: a.Reason}
}

func ended(s model.StageEnd) cellState {
	if s.Failed != "" {
		return cellBad
	}
	return cellDone
}

// next is the first stage that an attempt has not been through.
func next(a *model.Attempt) string {
	at := 1
	for i, s := range stages {
		for _, e := range a.Stages {
			if e.Stage == s {
				at = max(at, i+1)
			}
		}
	}
	if at >= len(stages) {
		return ""
	}
	return stages[at]
}

// layoutGrid draws agents against stages; what the pointer or the keyboard is on
// tells its hashes and its time below.
func (u *UI) layoutGrid(gtx C, r *model.Run) D {
	width := gtx.Constraints.Max.X
	names := gtx.Dp(84)
	gap, rowH, h := gtx.Dp(4), gtx.Dp(27), gtx.Dp(18)
	cw := (width - names - gap*(len(stages)-1)) / len(stages)
	for i, s := range stages {
		word := text.Word(u.words.Stages, s)
		x := names + i*(cw+gap)
		w := min(u.width(gtx, theme.Label, word), cw+gap)
		at(loose(gtx, w+1, h), x+(cw-w)/2, 0, func(gtx C) D { return u.label(gtx, theme.Label, u.pal.Third, word) })
	}
	y := gtx.Dp(23)
	tip := ""
	for _, id := range r.Agents {
		a := r.Latest(id)
		disc(gtx.Ops, image.Pt(gtx.Dp(4), y+h/2), gtx.Dp(8), u.hue(id))
		at(loose(gtx, names-gtx.Dp(20), h), gtx.Dp(14), y, func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Ink, id) })
		for i, s := range stages {
			state, end := cell(r, a, s)
			t := u.cellTip(id, s, state, end)
			at(loose(gtx, cw, h), names+i*(cw+gap), y, func(gtx C) D {
				if u.gridCell(gtx, r.ID+"/"+id+"/"+s, t, state, image.Pt(cw, h)) {
					tip = t
				}
				return D{}
			})
		}
		y += rowH
	}
	if tip != "" {
		d := at(loose(gtx, width, gtx.Dp(60)), 0, y+gtx.Dp(4), func(gtx C) D { return u.paragraph(gtx, theme.Code11, u.pal.Second, tip) })
		y += d.Size.Y + gtx.Dp(4)
	}
	return D{Size: image.Pt(width, y-gtx.Dp(6))}
}

// gridCell draws one cell and reports whether it is pointed at.
func (u *UI) gridCell(gtx C, id, tip string, state cellState, size image.Point) bool {
	name := "cell/" + id
	b := u.click(name)
	u.press(gtx, name, tip, func(gtx C, _ bool) D {
		inside, border := u.pal.Sunken, u.pal.Sunken
		if u.pal.Dark {
			inside, border = u.pal.Line, u.pal.Line
		}
		switch state {
		case cellDone:
			inside, border = u.pal.OkSoft, u.pal.Ok
		case cellNow:
			inside, border = u.pal.AccentSoft, u.pal.Accent
		case cellAsks:
			inside, border = u.pal.WarnSoft, u.pal.Warn
		case cellBad:
			inside, border = u.pal.BadSoft, u.pal.Bad
		}
		box(gtx.Ops, image.Rectangle{Max: size}, gtx.Dp(4), inside, border)
		return D{Size: size}
	}, nil)
	return b.Hovered() || gtx.Focused(b)
}

// cellTip says in words what a cell shows in colour.
func (u *UI) cellTip(agent, stage string, state cellState, s model.StageEnd) string {
	head := agent + " · " + text.Word(u.words.Stages, stage)
	switch state {
	case cellDone:
		in, out := "", ""
		if s.In != "" {
			in = u.words.StageIn + " " + short(s.In)
		}
		if s.Out != "" {
			out = u.words.StageOut + " " + short(s.Out)
		}
		return dots(head, in, out, took(u.words, s.Took))
	case cellNow:
		return dots(head, text.Word(u.words.Statuses, "working"))
	case cellAsks:
		return dots(head, u.words.WaitingForYou)
	case cellBad:
		return dots(head, text.Word(u.words.Statuses, "failed"), text.Word(nil, s.Failed))
	}
	return dots(head, u.words.NotYet)
}

// span is how long a run took, or has taken so far.
func (u *UI) span(r *model.Run) time.Duration {
	end := u.now()
	if r.Finished != nil {
		end = *r.Finished
	}
	return max(end.Sub(r.Created), 0)
}

// layoutTime draws when each agent was at work.
func (u *UI) layoutTime(gtx C, r *model.Run) D {
	width, names := gtx.Constraints.Max.X, gtx.Dp(68)
	rowH, barH := gtx.Dp(20), gtx.Dp(12)
	total := max(u.span(r), time.Second)
	x := func(t time.Time) int {
		f := float64(t.Sub(r.Created)) / float64(total)
		return names + int(min(max(f, 0), 1)*float64(width-names))
	}
	y := 0
	for _, id := range r.Agents {
		at(loose(gtx, names-gtx.Dp(6), rowH), 0, y, func(gtx C) D { return u.label(gtx, theme.Label, u.pal.Third, id) })
		for _, a := range r.Attempts {
			if a.Agent != id || a.Started.IsZero() {
				continue
			}
			end, c := a.Finished, u.hue(id)
			if a.Live() || end.IsZero() {
				end = u.now()
				c.A = 150
			}
			x0, x1 := x(a.Started), x(end)
			fillRound(gtx.Ops, image.Rect(x0, y+gtx.Dp(2), max(x1, x0+gtx.Dp(3)), y+gtx.Dp(2)+barH), gtx.Dp(2), c)
		}
		y += rowH
	}
	marks := []string{"0:00", clock(total / 2), clock(total)}
	for i, m := range marks {
		w := u.width(gtx, theme.Label, m)
		mx := names + (width-names)*i/2 - w*i/2
		at(loose(gtx, w+1, rowH), mx, y, func(gtx C) D { return u.label(gtx, theme.Label, u.pal.Third, m) })
	}
	label := clip.Rect{Max: image.Pt(width, y)}.Push(gtx.Ops)
	semantic.DescriptionOp(u.timeWords(r)).Add(gtx.Ops)
	label.Pop()
	return D{Size: image.Pt(width, y+gtx.Dp(16))}
}

// timeWords says what the time line shows.
func (u *UI) timeWords(r *model.Run) string {
	var out []string
	for _, id := range r.Agents {
		var d time.Duration
		for _, a := range r.Attempts {
			if a.Agent == id && !a.Started.IsZero() && !a.Finished.IsZero() {
				d += a.Finished.Sub(a.Started)
			}
		}
		out = append(out, id+" "+took(u.words, d))
	}
	return u.words.Time + ": " + strings.Join(out, ", ")
}

// layoutBudget lists what the run has used.
func (u *UI) layoutBudget(gtx C, r *model.Run) D {
	use := r.Usage
	if r.Active() || use.Input == nil && use.Output == nil {
		use = sum(r)
	}
	tok := u.words.Unknown
	if n, known := use.Tokens(); known {
		tok = thousands(n)
		if !use.Complete {
			tok = "≥ " + tok
		}
	}
	cost := u.words.Unknown
	if use.Cost != nil {
		cost = fmt.Sprintf("$%.2f", float64(*use.Cost)/1e6)
	}
	done := 0
	for _, a := range r.Attempts {
		if !a.Live() {
			done++
		}
	}
	lines := [][2]string{
		{u.words.BudgetTokens, tok}, {u.words.BudgetCost, cost},
		{u.words.BudgetTurns, fmt.Sprintf(u.words.OfLimit, fmt.Sprint(done), fmt.Sprint(len(r.Attempts)))},
		{u.words.BudgetLedger, fmt.Sprintf("#%d", r.Records)},
	}
	y, h := 0, gtx.Dp(22)
	for i, l := range lines {
		st := theme.Meta
		if i == len(lines)-1 {
			st = theme.Code12
		}
		at(loose(gtx, gtx.Dp(90), h), 0, y, func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Second, l[0]) })
		at(loose(gtx, gtx.Constraints.Max.X-gtx.Dp(96), h), gtx.Dp(96), y, func(gtx C) D { return u.label(gtx, st, u.pal.Ink, l[1]) })
		y += h
	}
	return D{Size: image.Pt(gtx.Constraints.Max.X, y)}
}

// sum adds up what the attempts of a run used.
func sum(r *model.Run) model.Usage {
	out := model.Usage{Complete: true}
	add := func(to **int64, v *int64) {
		if v == nil {
			out.Complete = false
			return
		}
		n := *v
		if *to != nil {
			n += **to
		}
		*to = &n
	}
	for _, a := range r.Attempts {
		if a.Live() {
			continue
		}
		add(&out.Input, a.Usage.Input)
		add(&out.Output, a.Usage.Output)
		if a.Usage.Cost != nil {
			add(&out.Cost, a.Usage.Cost)
		}
	}
	return out
}
