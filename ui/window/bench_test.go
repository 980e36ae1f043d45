package window_test

import (
	"image"
	"strings"
	"testing"

	"gioui.org/f32"
	"gioui.org/io/pointer"

	"witan/ui/model"
	"witan/ui/theme"
	"witan/ui/uitest"
	"witan/ui/window"
)

// long is a window on a conversation of n messages, after its first frames.
func long(b *testing.B, n int) (*uitest.Screen, *window.UI) {
	b.Helper()
	st, _, err := (&model.State{}).With(uitest.Lists()).Raw(uitest.Long(n))
	if err != nil {
		b.Fatal(err)
	}
	u := window.New(window.Options{Now: uitest.Clock, Zone: uitest.Now.Location(), Shaper: theme.NewShaper(false)})
	u.Go(window.Route{Conversation: "conv_long"})
	u.SetState(st)
	return uitest.NewScreen(b, image.Pt(1440, 900), u.Layout), u
}

// BenchmarkStill draws a conversation in which nothing changes; the cost must not
// depend on its length.
func BenchmarkStill(b *testing.B) {
	for _, n := range []int{200, 10000, 30000} {
		b.Run(itoa(n), func(b *testing.B) {
			s, _ := long(b, n)
			b.ReportAllocs()
			for b.Loop() {
				s.Frame()
			}
		})
	}
}

func itoa(n int) string { return map[int]string{200: "200", 10000: "10000", 30000: "30000"}[n] }

// BenchmarkScroll goes through a conversation, up and down.
func BenchmarkScroll(b *testing.B) {
	for _, n := range []int{200, 10000} {
		b.Run(itoa(n), func(b *testing.B) {
			s, _ := long(b, n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				by := float32(-60)
				if i/100%2 == 1 {
					by = 60
				}
				i++
				s.Router.Queue(pointer.Event{Kind: pointer.Scroll, Source: pointer.Mouse, Position: f32.Pt(600, 400), Scroll: f32.Pt(0, by)})
				s.Frame()
			}
		})
	}
}

// BenchmarkStream draws a frame for each piece of text of three agents.
func BenchmarkStream(b *testing.B) {
	s, u := long(b, 10000)
	st := u.State()
	st, _ = st.Line(model.Line{Type: "run.created", Run: "r", Conversation: "conv_long", Message: "m", Agents: []string{"x", "y", "z"}})
	for _, a := range []string{"x", "y", "z"} {
		st, _ = st.Line(model.Line{Type: "attempt.started", Run: "r", Attempt: a, Agent: a, Phase: "respond"})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		for _, a := range []string{"x", "y", "z"} {
			text := "some words "
			if i%40 == 39 {
				text = "an end.\n\n"
			}
			if i%4000 == 3999 {
				text = strings.Repeat("\n", 2)
			}
			st, _ = st.Line(model.Line{Type: "text", Run: "r", Attempt: a, Delta: text})
		}
		i++
		u.SetState(st)
		s.Frame()
	}
}

// BenchmarkOpen shows a conversation of 30,000 messages in a window that is there.
func BenchmarkOpen(b *testing.B) {
	s, u := long(b, 200)
	st, _, err := (&model.State{}).With(uitest.Lists()).Raw(uitest.Long(30000))
	if err != nil {
		b.Fatal(err)
	}
	other := u.State()
	b.ReportAllocs()
	for b.Loop() {
		u.SetState(other)
		s.Frame()
		u.SetState(st.With(model.Trouble(""))) // another state of the same thread
		s.Frame()
	}
}
