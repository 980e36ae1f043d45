package uitest

import (
	"fmt"
	"image"
	"strings"
	"testing"
	"time"

	"gioui.org/f32"
	"gioui.org/io/input"
	"gioui.org/io/key"
	"gioui.org/io/pointer"
	"gioui.org/io/semantic"
	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/unit"
)

// Screen shows a widget without drawing it: it is driven by the names of its
// controls, and what it shows is read from its semantic tree. Its clock stands
// still between frames of one step.
type Screen struct {
	T      testing.TB
	View   layout.Widget
	Size   image.Point
	Now    time.Time
	Router input.Router
	Frames int

	ops  op.Ops
	tree []input.SemanticNode
}

// NewScreen returns a screen that has drawn its first frames.
func NewScreen(t testing.TB, size image.Point, view layout.Widget) *Screen {
	s := &Screen{T: t, View: view, Size: size, Now: Now}
	s.Settle()
	return s
}

// Frame draws one frame.
func (s *Screen) Frame() {
	s.ops.Reset()
	s.View(layout.Context{Constraints: layout.Exact(s.Size), Metric: unit.Metric{PxPerDp: 1, PxPerSp: 1}, Now: s.Now, Source: s.Router.Source(), Ops: &s.ops})
	s.Router.Frame(&s.ops)
	s.tree = s.Router.AppendSemantics(s.tree[:0])
	s.Now = s.Now.Add(16 * time.Millisecond)
	s.Frames++
}

// Settle draws frames while the view wants one at once; a view that never rests
// is a failure.
func (s *Screen) Settle() {
	s.T.Helper()
	for range 50 {
		s.Frame()
		if at, ok := s.Router.WakeupTime(); !ok || at.After(s.Now) {
			return
		}
	}
	s.T.Fatal("the view wants frame after frame")
}

// Wakeup says whether, and when, the view wants another frame by itself.
func (s *Screen) Wakeup() (time.Time, bool) { return s.Router.WakeupTime() }

// named reports whether a node is called so.
func named(n input.SemanticNode, name string) bool {
	return n.Desc.Label == name || n.Desc.Description == name
}

// Find returns the control with a name: the nearest button or editor around what
// has it.
func (s *Screen) Find(name string) (input.SemanticNode, bool) {
	byID := map[input.SemanticID]input.SemanticNode{}
	for _, n := range s.tree {
		byID[n.ID] = n
	}
	for _, n := range s.tree {
		if !named(n, name) || n.Desc.Bounds.Intersect(image.Rectangle{Max: s.Size}).Empty() {
			continue
		}
		for at, ok := n, true; ok; at, ok = byID[at.ParentID] {
			if at.Desc.Class == semantic.Button || at.Desc.Class == semantic.Editor {
				return at, true
			}
			if at.ParentID == at.ID || at.ParentID == 0 && at.ID == 0 {
				break
			}
		}
	}
	return input.SemanticNode{}, false
}

// Has reports whether a control with a name is there.
func (s *Screen) Has(name string) bool { _, ok := s.Find(name); return ok }

// point is the middle of what can be seen of a control.
func (s *Screen) point(name string) f32.Point {
	s.T.Helper()
	n, ok := s.Find(name)
	if !ok {
		s.T.Fatalf("there is no control %q; there are\n%s", name, strings.Join(s.Controls(), "\n"))
	}
	b := n.Desc.Bounds.Intersect(image.Rectangle{Max: s.Size})
	if b.Empty() {
		s.T.Fatalf("%q is out of sight at %v", name, n.Desc.Bounds)
	}
	return f32.Pt(float32(b.Min.X+b.Max.X)/2, float32(b.Min.Y+b.Max.Y)/2)
}

// Click presses a control with the pointer.
func (s *Screen) Click(name string) {
	s.T.Helper()
	p := s.point(name)
	s.Press(p, p)
}

// Press puts the pointer down at one point and lifts it at another.
func (s *Screen) Press(from, to f32.Point) {
	s.T.Helper()
	ev := func(k pointer.Kind, p f32.Point, b pointer.Buttons) pointer.Event {
		return pointer.Event{Kind: k, Source: pointer.Mouse, Buttons: b, Position: p, Time: s.Now.Sub(Now)}
	}
	s.Router.Queue(ev(pointer.Move, from, 0), ev(pointer.Press, from, pointer.ButtonPrimary))
	s.Frame()
	if from != to {
		s.Router.Queue(ev(pointer.Move, to, pointer.ButtonPrimary))
		s.Frame()
	}
	s.Router.Queue(ev(pointer.Release, to, 0))
	s.Settle()
}

// Scroll turns the wheel at a point.
func (s *Screen) Scroll(p f32.Point, by float32) {
	s.Router.Queue(pointer.Event{Kind: pointer.Scroll, Source: pointer.Mouse, Position: p, Scroll: f32.Pt(0, by)})
	s.Settle()
}

// Type writes into the focused editor as an input method does.
func (s *Screen) Type(text string) {
	s.T.Helper()
	r := s.Router.EditorState().Selection.Range
	n := r.Start + len([]rune(text))
	s.Router.Queue(key.EditEvent{Range: r, Text: text}, key.SelectionEvent(key.Range{Start: n, End: n}))
	s.Settle()
}

// Key presses a key.
func (s *Screen) Key(name key.Name, mods key.Modifiers) {
	s.T.Helper()
	s.Router.Queue(key.Event{Name: name, Modifiers: mods, State: key.Press})
	s.Frame()
	s.Router.Queue(key.Event{Name: name, Modifiers: mods, State: key.Release})
	s.Settle()
}

// Texts are all labels and descriptions.
func (s *Screen) Texts() []string {
	var out []string
	for _, n := range s.tree {
		for _, t := range []string{n.Desc.Label, n.Desc.Description} {
			if t != "" {
				out = append(out, t)
			}
		}
	}
	return out
}

// Shows reports whether a text is part of any label.
func (s *Screen) Shows(text string) bool {
	for _, t := range s.Texts() {
		if strings.Contains(t, text) {
			return true
		}
	}
	return false
}

// Where is the box of the first text that has a part, as far as it can be seen.
func (s *Screen) Where(part string) image.Rectangle {
	s.T.Helper()
	for _, n := range s.tree {
		b := n.Desc.Bounds.Intersect(image.Rectangle{Max: s.Size})
		if strings.Contains(n.Desc.Label, part) && !b.Empty() {
			return b
		}
	}
	s.T.Fatalf("no text has %q in it: %q", part, s.Texts())
	return image.Rectangle{}
}

// Controls lists the buttons and editors with their names.
func (s *Screen) Controls() []string {
	var out []string
	for _, n := range s.tree {
		if n.Desc.Class == semantic.Button || n.Desc.Class == semantic.Editor {
			out = append(out, fmt.Sprintf("%v %q %q %v", n.Desc.Class, n.Desc.Label, n.Desc.Description, n.Desc.Bounds))
		}
	}
	return out
}

// Tree is the semantic tree of the last frame.
func (s *Screen) Tree() []input.SemanticNode { return s.tree }
