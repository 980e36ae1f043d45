package rich_test

import (
	"image"
	"strings"
	"testing"

	"gioui.org/op"
	"gioui.org/unit"

	"witan/ui/rich"
	"witan/ui/theme"
)

var metric = unit.Metric{PxPerDp: 1, PxPerSp: 1}

func span(s string) rich.Span { return rich.Span{Text: s, Style: theme.Body, Color: theme.Light.Ink} }

func TestLinesAreNoWiderThanAsked(t *testing.T) {
	t.Parallel()
	sh := theme.NewShaper(false)
	text := "Some words of several lengths, a/path/with/slashes, averyveryverylongwordthatfitsnowhere and an end."
	for _, width := range []int{1, 20, 60, 200, 5000} {
		bold := span(text)
		bold.Style = theme.BodyBold
		p := rich.Layout(sh, metric, []rich.Span{span(text + " "), bold}, width)
		if p.Text() != text+" "+text || p.Runes() != len([]rune(p.Text())) {
			t.Errorf("at %d: the text is %q with %d runes", width, p.Text(), p.Runes())
		}
		if p.Size.X > max(width, 20) || p.Size.Y != p.Lines()*21 {
			t.Errorf("at %d: the size is %v on %d lines", width, p.Size, p.Lines())
		}
		if width == 5000 && p.Lines() != 1 || width == 60 && p.Lines() < 10 {
			t.Errorf("at %d: %d lines", width, p.Lines())
		}
		p.Paint(new(op.Ops), sh)
	}
}

func TestWordsAreKeptTogether(t *testing.T) {
	t.Parallel()
	sh := theme.NewShaper(false)
	one := rich.Layout(sh, metric, []rich.Span{span("wonderful")}, 1000).Size.X
	p := rich.Layout(sh, metric, []rich.Span{span("a wonderful"), {Text: " day", Style: theme.BodyBold}}, one+4)
	if p.Lines() != 3 {
		t.Errorf("%d lines", p.Lines())
	}
}

func TestLineFeeds(t *testing.T) {
	t.Parallel()
	sh := theme.NewShaper(false)
	for text, lines := range map[string]int{"": 1, "\n": 2, "a\n": 2, "a\n\nb": 3, "\n\n": 3} {
		if p := rich.Layout(sh, metric, []rich.Span{span(text)}, 100); p.Lines() != lines || p.Runes() != len(text) {
			t.Errorf("%q: %d lines, %d runes", text, p.Lines(), p.Runes())
		}
	}
	if p := rich.Layout(sh, metric, nil, 100); p.Lines() != 1 || p.Hit(image.Pt(5, 5)) != 0 {
		t.Error("no spans are no empty line")
	}
}

// TestHitFindsWhatRectsDraw points into the box of every character.
func TestHitFindsWhatRectsDraw(t *testing.T) {
	t.Parallel()
	sh := theme.NewShaper(false)
	code := rich.Span{Text: "code", Style: theme.Code12, Color: theme.Light.Ink, Chip: theme.Light.Sunken}
	p := rich.Layout(sh, metric, []rich.Span{span("before "), code, span(" after, on a second line\nand a third")}, 120)
	text := []rune(p.Text())
	for i := range text {
		if text[i] == '\n' || text[i] == ' ' {
			continue
		}
		r := p.Rects(i, i+1)
		if len(r) != 1 {
			t.Fatalf("%q at %d has %d boxes", text[i], i, len(r))
		}
		left := image.Pt(r[0].Min.X+1, (r[0].Min.Y+r[0].Max.Y)/2)
		right := image.Pt(r[0].Max.X-1, left.Y)
		if got := p.Hit(left); got != i {
			t.Errorf("left in %q at %d is the place %d", text[i], i, got)
		}
		if got := p.Hit(right); got != i+1 {
			t.Errorf("right in %q at %d is the place %d", text[i], i, got)
		}
	}
	if got := p.Hit(image.Pt(1000, 1000)); got != len(text) {
		t.Errorf("beyond the end is the place %d of %d", got, len(text))
	}
	if n := len(p.Rects(0, len(text))); n != p.Lines() {
		t.Errorf("everything has %d boxes on %d lines", n, p.Lines())
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	sh := theme.NewShaper(false)
	link := span("there")
	link.Link = "https://example.org"
	p := rich.Layout(sh, metric, []rich.Span{span("go "), link, span(" now")}, 1000)
	box := p.Rects(3, 8)[0]
	mid := image.Pt((box.Min.X+box.Max.X)/2, 10)
	if !p.HasLinks() || p.Link(mid) != link.Link || p.Link(image.Pt(1, 10)) != "" || p.Link(image.Pt(mid.X, 500)) != "" {
		t.Errorf("in the link %q, before %q, below %q", p.Link(mid), p.Link(image.Pt(1, 10)), p.Link(image.Pt(mid.X, 500)))
	}
}

// TestScripts lays out what has no glyph, joins, or runs the other way.
func TestScripts(t *testing.T) {
	t.Parallel()
	sh := theme.NewShaper(false)
	for _, text := range []string{"缩略图在三个步骤中生成。", "👩‍👩‍👧‍👦 family", "שלום and مرحبا", "e\u0301 combining", "\u200b\u2066", strings.Repeat("很", 500), "\t\t"} {
		p := rich.Layout(sh, metric, []rich.Span{span(text), {Text: " end", Style: theme.BodyBold}}, 80)
		if p.Runes() != len([]rune(text))+4 {
			t.Errorf("%q: %d runes of %d", text, p.Runes(), len([]rune(text))+4)
		}
		p.Paint(new(op.Ops), sh)
		p.Rects(0, p.Runes())
	}
	if p := rich.Layout(sh, metric, []rich.Span{span("一二三四五六七八九十。")}, 60); p.Lines() < 3 || p.Size.X > 60 {
		t.Errorf("Chinese is %d lines, %d wide", p.Lines(), p.Size.X)
	}
}

func BenchmarkLayout(b *testing.B) {
	sh := theme.NewShaper(false)
	spans := []rich.Span{span(strings.Repeat("some words of text ", 12)), {Text: "bold words", Style: theme.BodyBold}, span(strings.Repeat(" and more of it", 8))}
	b.ReportAllocs()
	for b.Loop() {
		rich.Layout(sh, metric, spans, 600)
	}
}
