package window

import (
	"fmt"
	"image"
	"strings"

	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/unit"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// pageColumn lays a page out as one scrolling column in the middle.
func (u *UI) pageColumn(gtx C, ws ...layout.Widget) D {
	size := gtx.Constraints.Max
	width := min(size.X-2*gtx.Dp(24), gtx.Dp(720))
	return u.page.List.Layout(gtx, 1, func(gtx C, _ int) D {
		d := at(loose(gtx, width, 1<<24), (size.X-width)/2, gtx.Dp(40), func(gtx C) D { return column(gtx, 0, ws...) })
		return D{Size: image.Pt(size.X, d.Size.Y+gtx.Dp(80))}
	})
}

func space(dp unit.Dp) layout.Widget {
	return func(gtx C) D { return D{Size: image.Pt(0, gtx.Dp(dp))} }
}

// layoutWelcome says who is on this machine, and the one next step for each.
func (u *UI) layoutWelcome(gtx C) D {
	ws := []layout.Widget{
		func(gtx C) D { return u.paragraph(gtx, theme.Heading1, u.pal.Ink, u.words.WhoIsHere) },
		space(4),
		func(gtx C) D { return u.paragraph(gtx, theme.Body, u.pal.Second, u.words.NothingSent) },
		space(12),
	}
	for i := range u.state.Agents {
		ws = append(ws, func(gtx C) D { return u.agentRow(gtx, u.state.Agents[i]) })
	}
	if len(u.state.Agents) == 0 {
		ws = append(ws, func(gtx C) D { return u.paragraph(gtx, theme.Body, u.pal.Third, u.words.NoAgents) })
	}
	ws = append(ws, space(24), func(gtx C) D {
		return row(gtx, 8,
			func(gtx C) D { return u.button(gtx, "sample", u.words.SampleCouncil, lookStrong, u.sampleCouncil) },
			func(gtx C) D {
				return u.button(gtx, "start", u.words.StartConversation, lookPlain, u.newConversation)
			},
			func(gtx C) D {
				return u.button(gtx, "folder", u.words.ChooseFolder, lookPlain, func() {
					u.newConversation()
					u.inFolder = true
				})
			},
			func(gtx C) D {
				return u.button(gtx, "check", u.words.Check, lookPlain, func() { u.do(model.CheckAgents{}) })
			})
	})
	return u.pageColumn(gtx, ws...)
}

// sampleCouncil lets the built-in agents look at the folder.
func (u *UI) sampleCouncil() {
	a := model.Submit{Workspace: strings.TrimSpace(u.folder.Text()), Text: u.words.SampleTask, Plan: "council", Permission: "read-only"}
	for _, m := range u.state.Agents {
		if m.Ready() && builtIn(m) {
			a.Agents = append(a.Agents, m.ID)
		}
	}
	u.do(a)
}

// builtIn agents are part of the program.
func builtIn(a model.Agent) bool { return a.Protocol == "builtin" }

func (u *UI) agentRow(gtx C, a model.Agent) D {
	width, h := gtx.Constraints.Max.X, gtx.Dp(66)
	installed := a.Status != "not-installed"
	at(gtx, 0, gtx.Dp(19), func(gtx C) D { return u.avatar(gtx, a.ID, installed) })
	ink := u.pal.Third
	switch a.Status {
	case "ready":
		ink = u.pal.Ok
	case "needs-sign-in":
		ink = u.pal.Warn
	case "incompatible":
		ink = u.pal.Bad
	}
	word := text.Word(u.words.Readiness, a.Status)
	w := u.width(gtx, theme.Control, word)
	at(loose(gtx, w+1, h), width-w, gtx.Dp(23), func(gtx C) D { return u.label(gtx, theme.Control, ink, word) })
	x := gtx.Dp(40)
	room := width - x - w - gtx.Dp(20)
	at(loose(gtx, room, h), x, gtx.Dp(12), func(gtx C) D { return u.label(gtx, theme.Name, u.pal.Ink, a.Name) })
	proto := a.Protocol
	if builtIn(a) {
		proto = u.words.BuiltIn
	}
	meta := dots(a.Version, proto)
	if a.Next != "" && a.Status != "ready" {
		meta = dots(text.Word(nil, a.Reason), fmt.Sprintf(u.words.NextStep, oneLine(a.Next)))
	}
	at(loose(gtx, room, h), x, gtx.Dp(33), func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Third, meta) })
	fill(gtx.Ops, image.Rect(0, h-max(gtx.Dp(1), 1), width, h), u.pal.Line)
	return D{Size: image.Pt(width, h)}
}

// layoutSettings shows what can be chosen, a line each.
func (u *UI) layoutSettings(gtx C) D {
	themes := []choice{{"light", u.words.ThemeLight}, {"dark", u.words.ThemeDark}}
	langs := []choice{{"en", "English"}, {"zh-CN", "简体中文"}}
	return u.pageColumn(gtx,
		func(gtx C) D { return u.paragraph(gtx, theme.Heading1, u.pal.Ink, u.words.Settings) },
		space(16),
		func(gtx C) D { return u.caption(gtx, u.pal.Third, u.words.Appearance) },
		space(4),
		func(gtx C) D {
			return u.setting(gtx, u.words.Theme, themes, u.shownTheme(), func(v string) { u.choose(v, u.lang) })
		},
		func(gtx C) D {
			return u.setting(gtx, u.words.Language, langs, u.lang, func(v string) { u.choose(u.themeName, v) })
		},
		space(24),
		func(gtx C) D { return u.caption(gtx, u.pal.Third, u.words.Agents) },
		space(4),
		func(gtx C) D {
			return column(gtx, 0, func() []layout.Widget {
				var ws []layout.Widget
				for i := range u.state.Agents {
					ws = append(ws, func(gtx C) D { return u.agentRow(gtx, u.state.Agents[i]) })
				}
				return ws
			}()...)
		},
		space(16),
		func(gtx C) D {
			return u.button(gtx, "check", u.words.Check, lookPlain, func() { u.do(model.CheckAgents{}) })
		},
	)
}

func (u *UI) shownTheme() string {
	if u.pal.Dark {
		return "dark"
	}
	return "light"
}

type choice struct{ value, name string }

// setting is a name and, at the right, the values to choose from.
func (u *UI) setting(gtx C, name string, values []choice, now string, set func(string)) D {
	width, h := gtx.Constraints.Max.X, gtx.Dp(48)
	at(loose(gtx, width/2, h), 0, gtx.Dp(13), func(gtx C) D { return u.label(gtx, theme.Body, u.pal.Ink, name) })
	call, d := measured(loose(gtx, width/2, h), func(gtx C) D {
		var ws []layout.Widget
		for _, v := range values {
			how := lookPill
			if v.value == now {
				how = lookOn
			}
			ws = append(ws, func(gtx C) D { return u.button(gtx, "set/"+name+"/"+v.value, v.name, how, func() { set(v.value) }) })
		}
		return row(gtx, 6, ws...)
	})
	t := op.Offset(image.Pt(width-d.Size.X, (h-d.Size.Y)/2)).Push(gtx.Ops)
	call.Add(gtx.Ops)
	t.Pop()
	fill(gtx.Ops, image.Rect(0, h-max(gtx.Dp(1), 1), width, h), u.pal.Line)
	return D{Size: image.Pt(width, h)}
}
