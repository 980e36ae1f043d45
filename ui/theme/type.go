package theme

import (
	_ "embed"
	"fmt"
	"sync"

	"gioui.org/font"
	"gioui.org/font/opentype"
	"gioui.org/text"
	"gioui.org/unit"
)

// Style is a typeface, a size and a line height.
type Style struct {
	Font font.Font
	Size unit.Sp
	Line unit.Sp
}

// The embedded faces, Inter and JetBrains Mono, have names of their own, so that
// those installed on a system, in other versions, never take their place. Families
// of the system follow for what they lack; Gio looks through them in order.
const (
	Sans font.Typeface = "Witan Sans, Noto Sans CJK SC, Noto Sans SC, PingFang SC, Microsoft YaHei, WenQuanYi Micro Hei, emoji, sans-serif"
	Mono font.Typeface = "Witan Mono, Noto Sans Mono CJK SC, Noto Sans CJK SC, PingFang SC, Microsoft YaHei, emoji, monospace"
)

// The type scale.
var (
	Heading1 = Style{font.Font{Typeface: Sans, Weight: font.SemiBold}, 22, 30}
	Heading2 = Style{font.Font{Typeface: Sans, Weight: font.SemiBold}, 18, 26}
	Heading3 = Style{font.Font{Typeface: Sans, Weight: font.SemiBold}, 15, 22}
	Title    = Style{font.Font{Typeface: Sans, Weight: font.SemiBold}, 15, 22}
	Body     = Style{font.Font{Typeface: Sans}, 14, 21}
	BodyBold = Style{font.Font{Typeface: Sans, Weight: font.SemiBold}, 14, 21}
	Name     = Style{font.Font{Typeface: Sans, Weight: font.SemiBold}, 13, 20}
	Control  = Style{font.Font{Typeface: Sans}, 13, 20}
	Meta     = Style{font.Font{Typeface: Sans}, 12, 18}
	Label    = Style{font.Font{Typeface: Sans}, 11, 16}
	Caption  = Style{font.Font{Typeface: Sans, Weight: font.SemiBold}, 11, 16}
	Code12   = Style{font.Font{Typeface: Mono}, 12, 20}
	Code11   = Style{font.Font{Typeface: Mono}, 11, 16}
)

//go:embed fonts/Inter-Regular.otf
var interRegular []byte

//go:embed fonts/Inter-Medium.otf
var interMedium []byte

//go:embed fonts/Inter-SemiBold.otf
var interSemiBold []byte

//go:embed fonts/Inter-Italic.otf
var interItalic []byte

//go:embed fonts/JetBrainsMono-Regular.ttf
var monoRegular []byte

//go:embed fonts/JetBrainsMono-Bold.ttf
var monoBold []byte

// Font is the font of a style on a palette. Dark text on a bright ground looks
// thinner than it is, because colours are blended by their light, so it is drawn
// with the next weight.
func (p *Palette) Font(st Style) font.Font {
	f := st.Font
	if !p.Dark && f.Typeface == Sans && f.Weight == font.Normal && f.Style == font.Regular {
		f.Weight = font.Medium
	}
	return f
}

// Faces returns the embedded typefaces. They are parsed once.
var Faces = sync.OnceValue(func() []font.FontFace {
	face := func(f font.Font, src []byte) font.FontFace {
		parsed, err := opentype.Parse(src)
		if err != nil {
			panic(fmt.Sprintf("theme: an embedded font is broken: %v", err)) // a fault of the build
		}
		return font.FontFace{Font: f, Face: parsed}
	}
	return []font.FontFace{
		face(font.Font{Typeface: "Witan Sans"}, interRegular),
		face(font.Font{Typeface: "Witan Sans", Weight: font.Medium}, interMedium),
		face(font.Font{Typeface: "Witan Sans", Weight: font.SemiBold}, interSemiBold),
		face(font.Font{Typeface: "Witan Sans", Style: font.Italic}, interItalic),
		face(font.Font{Typeface: "Witan Mono"}, monoRegular),
		face(font.Font{Typeface: "Witan Mono", Weight: font.Bold}, monoBold),
	}
})

// NewShaper returns a shaper with the embedded typefaces only, or also with those
// of the system, whose index takes longer to read. A shaper belongs to one
// goroutine at a time.
func NewShaper(system bool) *text.Shaper {
	if system {
		return text.NewShaper(text.WithCollection(Faces()))
	}
	return text.NewShaper(text.NoSystemFonts(), text.WithCollection(Faces()))
}
