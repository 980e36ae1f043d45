// Package theme holds every colour, size and typeface of the window. Nothing
// else in ui names a colour or loads a font.
package theme

import (
	"image/color"

	"gioui.org/unit"
)

// Palette is one set of colours.
type Palette struct {
	Dark bool

	Background, Panel, Sunken color.NRGBA
	Line, Strong              color.NRGBA
	Ink, Second, Third        color.NRGBA
	Accent, AccentSoft        color.NRGBA
	Ok, OkSoft                color.NRGBA
	Warn, WarnSoft            color.NRGBA
	Bad, BadSoft              color.NRGBA

	Hues   [5]color.NRGBA // of agents, by their place
	OnHue  color.NRGBA    // text on a hue
	Muted  color.NRGBA    // in place of a hue, for an agent that is not there
	Select color.NRGBA    // behind selected text

	// Code gives the colours of highlighted code.
	Code Code
}

// Code has the colours of highlighted code, by what a token is.
type Code struct{ Keyword, String, Number, Comment, Name, Type color.NRGBA }

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

// Light is the palette for bright rooms.
var Light = Palette{
	Background: rgb(0xF7F6F3), Panel: rgb(0xFFFFFF), Sunken: rgb(0xEFEDE8),
	Line: rgb(0xE2DFD8), Strong: rgb(0xCFCBC2),
	Ink: rgb(0x1D1C1A), Second: rgb(0x5E5B55), Third: rgb(0x6F6B64),
	Accent: rgb(0x2F5DE0), AccentSoft: rgb(0xE6ECFB),
	Ok: rgb(0x1A7448), OkSoft: rgb(0xE0F1E8),
	Warn: rgb(0x96590A), WarnSoft: rgb(0xFBEED8),
	Bad: rgb(0xB3372F), BadSoft: rgb(0xFAE5E3),
	Hues:  [5]color.NRGBA{rgb(0x3D63DD), rgb(0x0B7A69), rgb(0xB4532A), rgb(0x7A4FC4), rgb(0xA13D71)},
	OnHue: rgb(0xFFFFFF), Muted: rgb(0xCFCBC2), Select: rgb(0xCBD8F8),
	Code: Code{Keyword: rgb(0x7A4FC4), String: rgb(0x1A7448), Number: rgb(0xA04A22), Comment: rgb(0x6F6B64), Name: rgb(0x2F5DE0), Type: rgb(0x0B7A69)},
}

// Dark is the palette for dark rooms.
var Dark = Palette{
	Dark:       true,
	Background: rgb(0x141516), Panel: rgb(0x1B1C1E), Sunken: rgb(0x101112),
	Line: rgb(0x2A2C2F), Strong: rgb(0x3B3E42),
	Ink: rgb(0xECEBE8), Second: rgb(0xA9A79F), Third: rgb(0x8C8A83),
	Accent: rgb(0x7F9FFF), AccentSoft: rgb(0x232B44),
	Ok: rgb(0x56C08A), OkSoft: rgb(0x17301F),
	Warn: rgb(0xE0A448), WarnSoft: rgb(0x352811),
	Bad: rgb(0xEF7F77), BadSoft: rgb(0x3A1C1A),
	Hues:  [5]color.NRGBA{rgb(0x7F9FFF), rgb(0x4FC4B0), rgb(0xE58A5C), rgb(0xB694F0), rgb(0xE085B4)},
	OnHue: rgb(0x141516), Muted: rgb(0x3B3E42), Select: rgb(0x33406B),
	Code: Code{Keyword: rgb(0xB694F0), String: rgb(0x56C08A), Number: rgb(0xE58A5C), Comment: rgb(0x8C8A83), Name: rgb(0x7F9FFF), Type: rgb(0x4FC4B0)},
}

// Sizes of the layout, in dp.
const (
	SidebarWidth, SidebarMin, SidebarMax       unit.Dp = 264, 220, 420
	InspectorWidth, InspectorMin, InspectorMax unit.Dp = 400, 300, 520
	ConversationMin                            unit.Dp = 420
	ColumnMax                                  unit.Dp = 860 // text is no wider
	HideSidebarAt, SheetAt                     unit.Dp = 720, 1180

	HeaderHeight unit.Dp = 52
	RowHeight    unit.Dp = 32

	RadiusRow, RadiusCard, RadiusComposer unit.Dp = 6, 8, 10
)

// FollowWithin is how far from its end a conversation still follows new text.
const FollowWithin unit.Dp = 96
