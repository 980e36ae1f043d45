package theme_test

import (
	"image/color"
	"math"
	"testing"

	"gioui.org/text"
	"golang.org/x/image/math/fixed"

	"witan/ui/theme"
)

// contrast is the ratio of relative luminances of WCAG 2.
func contrast(a, b color.NRGBA) float64 {
	lum := func(c color.NRGBA) float64 {
		part := func(v uint8) float64 {
			f := float64(v) / 255
			if f <= 0.04045 {
				return f / 12.92
			}
			return math.Pow((f+0.055)/1.055, 2.4)
		}
		return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
	}
	x, y := lum(a), lum(b)
	if x < y {
		x, y = y, x
	}
	return (x + 0.05) / (y + 0.05)
}

func TestTextContrast(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]theme.Palette{"light": theme.Light, "dark": theme.Dark} {
		pairs := map[string][2]color.NRGBA{
			"accent on its soft": {p.Accent, p.AccentSoft}, "ok on its soft": {p.Ok, p.OkSoft},
			"warn on its soft": {p.Warn, p.WarnSoft}, "bad on its soft": {p.Bad, p.BadSoft},
			"ink on selection": {p.Ink, p.Select}, "panel on ink": {p.Panel, p.Ink},
		}
		for ground, bg := range map[string]color.NRGBA{"background": p.Background, "panel": p.Panel, "sunken": p.Sunken} {
			pairs["ink on "+ground], pairs["second on "+ground] = [2]color.NRGBA{p.Ink, bg}, [2]color.NRGBA{p.Second, bg}
			pairs["third on "+ground] = [2]color.NRGBA{p.Third, bg}
		}
		for ground, bg := range map[string]color.NRGBA{"background": p.Background, "panel": p.Panel} {
			for word, fg := range map[string]color.NRGBA{"accent": p.Accent, "ok": p.Ok, "warn": p.Warn, "bad": p.Bad} {
				pairs[word+" on "+ground] = [2]color.NRGBA{fg, bg}
			}
		}
		for i, h := range p.Hues {
			pairs["initials on hue "+string(rune('1'+i))] = [2]color.NRGBA{p.OnHue, h}
		}
		for i, c := range []color.NRGBA{p.Code.Keyword, p.Code.String, p.Code.Number, p.Code.Comment, p.Code.Name, p.Code.Type} {
			pairs["code colour "+string(rune('1'+i))] = [2]color.NRGBA{c, p.Background}
		}
		for what, pair := range pairs {
			if got := contrast(pair[0], pair[1]); got < 4.5 {
				t.Errorf("%s: %s: contrast %.2f is below 4.5", name, what, got)
			}
		}
	}
}

// TestFacesHaveWhatTheWindowDraws looks for the box that a missing glyph gives.
func TestFacesHaveWhatTheWindowDraws(t *testing.T) {
	t.Parallel()
	shaper := theme.NewShaper(false)
	advance := func(s string) (ids []text.GlyphID) {
		shaper.LayoutString(text.Parameters{Font: theme.Body.Font, PxPerEm: fixed.I(14), MaxWidth: 1e6}, s)
		for g, ok := shaper.NextGlyph(); ok; g, ok = shaper.NextGlyph() {
			if g.Runes > 0 {
				ids = append(ids, g.ID)
			}
		}
		return ids
	}
	box := advance("\uE0FF")[0]
	for _, r := range "AÄßéñ0→…·–✓×+⏎«»“”•" {
		if ids := advance(string(r)); len(ids) == 0 || ids[0] == box {
			t.Errorf("%q is drawn as a box", r)
		}
	}
}
