package window

import (
	"encoding/json"
	"fmt"
	"image"
	"path/filepath"
	"strings"

	"gioui.org/layout"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// severity is the colour of a finding.
func (u *UI) severity(s string) colour {
	switch s {
	case "critical", "high":
		return u.pal.Bad
	case "medium":
		return u.pal.Warn
	}
	return u.pal.Second
}

func (u *UI) findingCards(r *model.Run) []card {
	var out []card
	for _, f := range r.Findings {
		out = append(out, card{title: oneLine(f.Title), tag: text.Word(u.words.Severities, f.Severity), ink: u.severity(f.Severity), fact: f.Agent,
			body: func(gtx C) D { return u.findingBody(gtx, r, f) }})
	}
	if len(r.Verdicts) > 0 {
		good := 0
		for _, v := range r.Verdicts {
			if v.Verdict == "verified" {
				good++
			}
		}
		out = append(out, card{title: u.words.Verification, fact: fmt.Sprintf(u.words.Claims, good, len(r.Verdicts)),
			body: func(gtx C) D { return u.verdicts(gtx, r) }})
	}
	if len(out) == 0 {
		return []card{u.note(u.words.NoFindings)}
	}
	return out
}

func (u *UI) findingBody(gtx C, r *model.Run, f model.Finding) D {
	ws := []layout.Widget{}
	if f.Detail != "" {
		ws = append(ws, func(gtx C) D { return u.paragraph(gtx, theme.Meta, u.pal.Second, strings.TrimSpace(f.Detail)) })
	}
	if f.Path != "" {
		where := f.Path
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.Path, f.Line)
		}
		ws = append(ws, func(gtx C) D { return u.label(gtx, theme.Code11, u.pal.Second, where) })
	}
	for _, id := range f.Evidence {
		for _, e := range r.Evidence {
			if e.ID == id {
				ws = append(ws, func(gtx C) D { return u.evidenceBox(gtx, e) })
			}
		}
	}
	ws = append(ws, func(gtx C) D { return u.adoption(gtx, f) })
	return column(gtx, 8, ws...)
}

// evidenceBox shows what an evidence says, and its text once it was fetched.
func (u *UI) evidenceBox(gtx C, e model.Proof) D {
	head := fmt.Sprintf(u.words.EvidenceIs, short(e.Hash))
	src, _ := u.pack(e.Hash)
	return column(gtx, 4,
		func(gtx C) D {
			return u.label(gtx, theme.Label, u.pal.Third, dots(head, e.Kind, text.Word(u.words.Levels, e.Level)))
		},
		func(gtx C) D {
			if e.Summary == "" {
				return D{}
			}
			return u.paragraph(gtx, theme.Meta, u.pal.Second, oneLine(e.Summary))
		},
		func(gtx C) D {
			if src == "" {
				return D{}
			}
			return u.codeBox(gtx, firstLines(src, 12), "text")
		})
}

// firstLines cuts a text for a preview.
func firstLines(s string, n int) string {
	lines := strings.SplitN(strings.TrimRight(s, "\n"), "\n", n+1)
	if len(lines) > n {
		lines[n] = "…"
	}
	return strings.Join(lines, "\n")
}

// adoption shows what became of a finding, or the buttons that decide it.
func (u *UI) adoption(gtx C, f model.Finding) D {
	if f.Adopted != "" && f.Adopted != "reopened" {
		ink := u.pal.Ok
		if f.Adopted == "rejected" {
			ink = u.pal.Second
		}
		word := fmt.Sprintf(u.words.Adopted, text.Word(u.words.Adoptions, f.Adopted), f.At.In(u.zone).Format("15:04"), f.By)
		return row(gtx, 8,
			func(gtx C) D { return u.label(gtx, theme.Meta, ink, word) },
			func(gtx C) D {
				return u.button(gtx, "reopen/"+f.ID, u.words.Reopen, lookPill, func() { u.do(model.Adopt{Finding: f.ID, Word: "reopen"}) })
			})
	}
	return row(gtx, 8,
		func(gtx C) D {
			return u.button(gtx, "accept/"+f.ID, u.words.Accept, lookPlain, func() { u.do(model.Adopt{Finding: f.ID, Word: "accept"}) })
		},
		func(gtx C) D {
			return u.button(gtx, "reject/"+f.ID, u.words.Reject, lookPlain, func() { u.do(model.Adopt{Finding: f.ID, Word: "reject"}) })
		})
}

// verdicts lists what became of each claim, with a sign and a word.
func (u *UI) verdicts(gtx C, r *model.Run) D {
	y, width := 0, gtx.Constraints.Max.X
	for _, v := range r.Verdicts {
		ink := u.pal.Third
		switch v.Verdict {
		case "verified":
			ink = u.pal.Ok
		case "contradicted", "invalid":
			ink = u.pal.Bad
		}
		word := text.Word(u.words.Verdicts, v.Verdict)
		if v.Verdict != "verified" && v.Reason != "" {
			word = dots(word, text.Word(nil, v.Reason))
		}
		switch v.Verdict {
		case "verified":
			u.tick(gtx, image.Pt(0, y+gtx.Dp(3)), ink)
		case "contradicted", "invalid":
			u.cross(gtx, image.Pt(0, y+gtx.Dp(3)), ink)
		default:
			disc(gtx.Ops, image.Pt(gtx.Dp(6), y+gtx.Dp(9)), gtx.Dp(6), ink)
		}
		d := at(loose(gtx, width-gtx.Dp(20), 1<<20), gtx.Dp(20), y, func(gtx C) D {
			return column(gtx, 0,
				func(gtx C) D { return u.paragraph(gtx, theme.Meta, u.pal.Second, oneLine(v.Claim)) },
				func(gtx C) D { return u.label(gtx, theme.Label, ink, dots(word, v.Source)) })
		})
		y += d.Size.Y + gtx.Dp(8)
	}
	return D{Size: image.Pt(width, max(y-gtx.Dp(8), 0))}
}

// fileCards list the result, artifacts and evidence of a run.
func (u *UI) fileCards(r *model.Run) []card {
	var out []card
	if r.Commit != nil {
		out = append(out, card{title: u.words.ProjectChanges, fact: short(r.Commit.Content), body: func(gtx C) D {
			return u.label(gtx, theme.Code11, u.pal.Second, dots(r.Commit.Impl, r.Commit.Target))
		}})
	}
	if len(r.Artifacts) > 0 {
		out = append(out, card{title: u.words.Artifacts, fact: fmt.Sprint(len(r.Artifacts)), body: func(gtx C) D { return u.proofs(gtx, r.Artifacts) }})
	}
	if len(r.Evidence) > 0 {
		out = append(out, card{title: u.words.Process, fact: fmt.Sprint(len(r.Evidence)), body: func(gtx C) D { return u.proofs(gtx, r.Evidence) }})
	}
	if len(out) == 0 {
		return []card{u.note(u.words.NoFiles)}
	}
	return out
}

// proofs lists artifacts or evidence; a press shows what is in one.
func (u *UI) proofs(gtx C, ps []model.Proof) D {
	var ws []layout.Widget
	for _, p := range ps {
		name := p.Path
		if name == "" {
			name = oneLine(p.Summary)
		}
		key := "proof/" + p.ID
		ws = append(ws, func(gtx C) D {
			d := u.press(gtx, key, dots(u.words.Open, name), func(gtx C, hot bool) D {
				ink := u.pal.Second
				if hot {
					ink = u.pal.Ink
				}
				return column(gtx, 0,
					func(gtx C) D {
						return u.ends(gtx, func(gtx C) D { return u.label(gtx, theme.Meta, u.pal.Ink, name) }, theme.Code11, short(p.Hash))
					},
					func(gtx C) D {
						return u.label(gtx, theme.Label, ink, dots(p.Agent, p.Kind, text.Word(u.words.Levels, p.Level)))
					})
			}, func() { u.folded[key] = !u.folded[key] })
			if !u.folded[key] {
				return d
			}
			e := at(gtx, 0, d.Size.Y+gtx.Dp(4), func(gtx C) D { return u.packBox(gtx, p.Hash, language(p)) })
			return D{Size: image.Pt(d.Size.X, d.Size.Y+gtx.Dp(4)+e.Size.Y)}
		})
	}
	return column(gtx, 10, ws...)
}

// language is how the text of an artifact or evidence is coloured.
func language(p model.Proof) string {
	if p.Kind == "diff" || p.Kind == "patch" {
		return "diff"
	}
	return strings.TrimPrefix(filepath.Ext(p.Path), ".")
}

// pack is the text of a pack, once it is there; it is asked for once.
func (u *UI) pack(hash string) (string, bool) {
	src, ok := u.packs[hash]
	if !ok && hash != "" && u.hooks.Fetch != nil {
		u.packs[hash] = ""
		u.hooks.Fetch(hash)
	}
	return src, src != ""
}

// packBox shows the text of a pack.
func (u *UI) packBox(gtx C, hash, lang string) D {
	src, ok := u.pack(hash)
	if !ok {
		return u.label(gtx, theme.Meta, u.pal.Third, u.words.Loading)
	}
	return u.codeBox(gtx, firstLines(src, 60), lang)
}

// contextCards say exactly what each agent was given.
func (u *UI) contextCards(r *model.Run) []card {
	out := []card{{title: u.words.Snapshot, fact: short(r.Snapshot), body: func(gtx C) D {
		return column(gtx, 8, func(gtx C) D { return u.paragraph(gtx, theme.Meta, u.pal.Second, oneLine(r.Title)) },
			func(gtx C) D {
				if r.Snapshot == "" {
					return D{}
				}
				return u.paragraph(gtx, theme.Code11, u.pal.Third, r.Snapshot)
			})
	}}}
	any := false
	for _, a := range r.Attempts {
		for _, s := range a.Stages {
			if s.Stage == "deliver" {
				any = true
				out = append(out, u.deliveryCard(a, s))
			}
		}
	}
	if !any {
		out = append(out, u.note(u.words.NothingDelivered))
	}
	return out
}

func (u *UI) deliveryCard(a *model.Attempt, s model.StageEnd) card {
	phase := text.Word(u.words.Phases, a.Phase)
	return card{title: fmt.Sprintf(u.words.DeliveredTo, a.Agent), fact: dots(phase, a.Item), body: func(gtx C) D {
		key := "delivery/" + a.ID
		return column(gtx, 6,
			func(gtx C) D {
				return u.label(gtx, theme.Code11, u.pal.Second, dots(u.words.StageIn+" "+short(s.In), u.words.StageOut+" "+short(s.Out)))
			},
			func(gtx C) D {
				return row(gtx, 10,
					func(gtx C) D {
						return u.button(gtx, key, u.words.Open, lookPill, func() { u.folded[key] = !u.folded[key] })
					},
					func(gtx C) D { return u.label(gtx, theme.Label, u.pal.Third, dots(s.Impl, took(u.words, s.Took))) })
			},
			func(gtx C) D {
				if !u.folded[key] {
					return D{}
				}
				return u.delivery(gtx, s.Out)
			})
	}}
}

// delivery shows what an agent was given: how its session began, and the very text.
func (u *UI) delivery(gtx C, hash string) D {
	var d struct {
		Prompt, Fingerprint, Session string
		Bytes                        int
	}
	src, ok := u.pack(hash)
	if !ok {
		return u.label(gtx, theme.Meta, u.pal.Third, u.words.Loading)
	}
	if json.Unmarshal([]byte(src), &d) != nil || d.Prompt == "" {
		return u.packBox(gtx, hash, "json")
	}
	return column(gtx, 6,
		func(gtx C) D {
			session := fmt.Sprintf("%s: %s", u.words.SessionIs, text.Word(u.words.Sessions, d.Session))
			return u.label(gtx, theme.Label, u.pal.Third, dots(session, bytesOf(d.Bytes), short(d.Fingerprint)))
		},
		func(gtx C) D { return u.packBox(gtx, d.Prompt, "text") })
}
