package window

import (
	"image"
	"slices"

	"gioui.org/f32"
	"gioui.org/io/semantic"
	"gioui.org/op/clip"
	"gioui.org/op/paint"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
)

// node is a work item with its place in the graph.
type node struct {
	item  model.WorkItem
	layer int
	row   int
}

// layers places each item one column after what it depends on. Items that depend
// on each other in a circle, which a valid plan has none of, stay in the first.
func layers(items []model.WorkItem) []node {
	depth := map[string]int{}
	for range items { // the longest path is no longer than the number of items
		for _, it := range items {
			for _, d := range it.DependsOn {
				if v, ok := depth[d]; ok || known(items, d) {
					depth[it.ID] = min(max(depth[it.ID], v+1), len(items))
				}
			}
		}
	}
	used := map[int]int{}
	out := make([]node, 0, len(items))
	for _, it := range items {
		l := depth[it.ID]
		if l >= len(items) {
			l = 0
		}
		out = append(out, node{item: it, layer: l, row: used[l]})
		used[l]++
	}
	return out
}

func known(items []model.WorkItem, id string) bool {
	return slices.ContainsFunc(items, func(i model.WorkItem) bool { return i.ID == id })
}

// layoutGraph draws who does what after what.
func (u *UI) layoutGraph(gtx C, r *model.Run) D {
	nodes := layers(r.Agreed.Items)
	cols, rows := 1, 1
	for _, n := range nodes {
		cols, rows = max(cols, n.layer+1), max(rows, n.row+1)
	}
	width, gapX := gtx.Constraints.Max.X, gtx.Dp(34)
	h, rowH := gtx.Dp(28), gtx.Dp(40)
	w := min((width-gapX*(cols-1))/cols, gtx.Dp(150))
	step := 0
	if cols > 1 {
		step = (width - w) / (cols - 1)
	}
	height := rows*rowH - (rowH - h)
	place := func(n node) image.Rectangle {
		in := 0
		for _, m := range nodes {
			if m.layer == n.layer {
				in++
			}
		}
		top := (height-(in*rowH-(rowH-h)))/2 + n.row*rowH
		return image.Rect(n.layer*step, top, n.layer*step+w, top+h)
	}
	at := map[string]image.Rectangle{}
	for _, n := range nodes {
		at[n.item.ID] = place(n)
	}
	for _, n := range nodes {
		for _, d := range n.item.DependsOn {
			if from, ok := at[d]; ok {
				u.edge(gtx, from, at[n.item.ID])
			}
		}
	}
	for _, n := range nodes {
		u.graphNode(gtx, r, n.item, at[n.item.ID])
	}
	return D{Size: image.Pt(width, height)}
}

// edge draws a curve from the right of one box to the left of another.
func (u *UI) edge(gtx C, from, to image.Rectangle) {
	x0, y0 := float32(from.Max.X), float32(from.Min.Y+from.Max.Y)/2
	x1, y1 := float32(to.Min.X), float32(to.Min.Y+to.Max.Y)/2
	bend := (x1 - x0) / 2
	var p clip.Path
	p.Begin(gtx.Ops)
	p.MoveTo(f32.Pt(x0, y0))
	p.CubeTo(f32.Pt(x0+bend, y0), f32.Pt(x1-bend, y1), f32.Pt(x1, y1))
	defer clip.Stroke{Path: p.End(), Width: float32(max(gtx.Dp(1), 1))}.Op().Push(gtx.Ops).Pop()
	paint.Fill(gtx.Ops, u.pal.Strong)
}

// itemState is how far an item of the agreed plan is.
func itemState(r *model.Run, it model.WorkItem) cellState {
	state := cellNone
	for _, a := range r.Attempts {
		mine := a.Item == it.ID
		switch it.Role {
		case "integrator":
			mine = mine || a.Phase == "synthesis" && a.Agent == it.Owner
		case "verifier":
			mine = mine || a.Phase == "verification" && a.Agent == it.Owner
		}
		if !mine {
			continue
		}
		switch {
		case a.Status == "completed":
			state = cellDone
		case a.Live():
			state = cellNow
		case a.Status == "partial":
			state = cellAsks
		default:
			state = cellBad
		}
	}
	return state
}

func (u *UI) graphNode(gtx C, r *model.Run, it model.WorkItem, box2 image.Rectangle) {
	inside := u.pal.Panel
	state := itemState(r, it)
	word := u.words.NotYet
	switch state {
	case cellDone:
		inside, word = u.pal.OkSoft, text.Word(u.words.Statuses, "done")
	case cellNow:
		inside, word = u.pal.AccentSoft, text.Word(u.words.Statuses, "working")
	case cellAsks:
		inside, word = u.pal.WarnSoft, text.Word(u.words.Statuses, "partial")
	case cellBad:
		inside, word = u.pal.BadSoft, text.Word(u.words.Statuses, "failed")
	}
	box(gtx.Ops, box2, gtx.Dp(5), inside, u.hue(it.Owner))
	area := clip.Rect(box2).Push(gtx.Ops)
	semantic.DescriptionOp(dots(it.ID, it.Owner, text.Word(u.words.Roles, it.Role), oneLine(it.Objective), word)).Add(gtx.Ops)
	area.Pop()
	at(loose(gtx, box2.Dx()-gtx.Dp(16), box2.Dy()), box2.Min.X+gtx.Dp(9), box2.Min.Y+(box2.Dy()-gtx.Sp(theme.Label.Line))/2, func(gtx C) D {
		return u.label(gtx, theme.Label, u.pal.Ink, it.ID+" "+oneLine(it.Objective))
	})
}
