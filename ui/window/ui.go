package window

import (
	"image"
	"time"

	"gioui.org/io/event"
	"gioui.org/io/key"
	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/op/clip"
	"gioui.org/text"
	"gioui.org/unit"
	"gioui.org/widget"

	"witan/ui/model"
	words "witan/ui/text"
	"witan/ui/theme"
)

// Hooks are how the window acts. They are called while a frame is laid out and
// must return at once.
type Hooks struct {
	Do       func(model.Action) // carry out an action
	Open     func(conversation string)
	Fetch    func(hash string)               // load a pack; its text comes with SetPack
	Settings func(theme, lang string)        // the person chose these
	Draft    func(conversation, text string) // a draft changed
}

// UI is the window's content. It belongs to the goroutine that lays it out.
type UI struct {
	hooks  Hooks
	state  *model.State
	pal    *theme.Palette
	words  *words.Strings
	shaper *text.Shaper
	now    func() time.Time
	zone   *time.Location

	themeName, lang string // as chosen: system, light, dark; en, zh-CN
	route           Route
	run             string // the run that the inspector shows; "" is the newest

	clicks  map[string]*control
	later   []func()      // what was pressed, done at the end of the frame
	pressed []func(gtx C) // likewise, where it needs the frame
	folded  map[string]bool
	bodies  bodyCache
	packs   map[string]string
	changed bool // the model changed since the last frame

	sideList  widget.List
	convs     map[string]*convView
	inspector [4]widget.List
	page      widget.List
	palette   palette
	title     titleEditor
	folder    widget.Editor // where a new conversation works
	inFolder  bool          // the keyboard goes there next
	failed    string        // why the last action did not work
	sheet     bool          // the inspector lies over the conversation
	drawer    bool          // the sidebar lies over the conversation
	noSide    bool
	noInspect bool
	size      image.Point

	gateIn *model.Thread // the thread in which gate is the oldest that waits
	gate   *model.Gate

	roomSide, roomInspect bool // the window is wide enough for them
}

// Options say how a window begins.
type Options struct {
	Theme, Lang string // light, dark; a language tag
	Shaper      *text.Shaper
	Folder      string // where a new conversation works
	Now         func() time.Time
	Zone        *time.Location
	Hooks       Hooks
}

// New returns a window's content that shows nothing yet.
func New(o Options) *UI {
	u := &UI{hooks: o.Hooks, state: &model.State{}, shaper: o.Shaper, now: o.Now, zone: o.Zone,
		clicks: map[string]*control{}, folded: map[string]bool{}, packs: map[string]string{}, convs: map[string]*convView{}}
	if u.now == nil {
		u.now = time.Now
	}
	if u.zone == nil {
		u.zone = time.Local
	}
	if u.shaper == nil {
		u.shaper = theme.NewShaper(false)
	}
	u.bodies.init()
	u.folder.SingleLine = true
	u.folder.SetText(o.Folder)
	u.sideList.Axis, u.page.Axis = layout.Vertical, layout.Vertical
	for i := range u.inspector {
		u.inspector[i].Axis = layout.Vertical
	}
	u.palette.init()
	u.title.init()
	u.SetTheme(o.Theme)
	u.SetLang(o.Lang)
	return u
}

// SetTheme chooses light or dark; any other name is light.
func (u *UI) SetTheme(name string) {
	u.themeName, u.pal = name, &theme.Light
	if name == "dark" {
		u.pal = &theme.Dark
	}
	u.bodies.drop()
}

// SetLang chooses a language.
func (u *UI) SetLang(tag string) {
	u.words = words.For(tag)
	u.lang = u.words.Tag
	u.bodies.drop()
}

// SetShaper swaps the shaper, for instance for one that knows the system's fonts.
func (u *UI) SetShaper(s *text.Shaper) {
	u.shaper = s
	u.bodies.drop()
}

// SetState shows a newer state.
func (u *UI) SetState(s *model.State) {
	if s == u.state {
		return
	}
	u.state, u.changed = s, true
	if c := u.conv(); c != nil && s.Open != nil && s.Open.Conversation.ID == u.route.Conversation {
		c.changed(s.Open.Len())
	}
}

// State is what is shown.
func (u *UI) State() *model.State { return u.state }

// SetFailed says why an action did not work, until the person puts it away.
func (u *UI) SetFailed(why string) { u.failed = why }

// keepPacks bounds the texts of packs that are held; they are asked for again.
const keepPacks = 64

// SetPack gives the text of a pack that Fetch asked for.
func (u *UI) SetPack(hash, text string) {
	if len(u.packs) > keepPacks {
		clear(u.packs)
	}
	u.packs[hash] = text
}

// Go shows a route.
func (u *UI) Go(r Route) {
	open := r.Page == PageConversation && r.Conversation != "" && (u.route.Conversation != r.Conversation || u.state.Open == nil)
	u.route = r
	u.drawer, u.run, u.sheet = false, "", r.Inspect
	if r.Inspect {
		u.noInspect = false
	}
	if open && u.hooks.Open != nil {
		u.hooks.Open(r.Conversation)
	}
}

// Held counts the texts and controls that are remembered, for tests of the bounds.
func (u *UI) Held() (bodies, controls int) { return len(u.bodies.of), len(u.clicks) }

// Route is what is shown.
func (u *UI) Route() Route { return u.route }

// thread is the conversation shown, once it is there.
func (u *UI) thread() *model.Thread {
	if t := u.state.Open; t != nil && u.route.Page == PageConversation && t.Conversation.ID == u.route.Conversation {
		return t
	}
	return nil
}

// shownRun is the run that the inspector is about.
func (u *UI) shownRun() *model.Run {
	t := u.thread()
	if t == nil {
		return nil
	}
	if u.run != "" {
		if r := t.Run(u.run); r != nil {
			return r
		}
	}
	return t.Last()
}

// do hands an action on.
func (u *UI) do(a model.Action) {
	if u.hooks.Do != nil {
		u.hooks.Do(a)
	}
}

// Layout draws a frame.
func (u *UI) Layout(gtx C) D {
	u.size = gtx.Constraints.Max
	gtx.Constraints = layout.Exact(u.size)
	u.bodies.begin()
	fill(gtx.Ops, image.Rectangle{Max: u.size}, u.pal.Panel)
	if u.palette.wanted {
		u.palette.wanted = false
		u.openPalette(gtx)
	}
	u.keys(gtx)
	area := clip.Rect{Max: u.size}.Push(gtx.Ops)
	event.Op(gtx.Ops, u)
	under := gtx
	if u.palette.open {
		under = gtx.Disabled()
	}
	u.shell(under)
	if u.palette.open {
		u.layoutPalette(gtx)
	}
	area.Pop()
	u.finish(gtx)
	return D{Size: u.size}
}

// finish does what was pressed, after everything was laid out: what an action
// changes shows in the next frame.
func (u *UI) finish(gtx C) {
	u.changed = false
	u.bodies.end()
	u.forget()
	if len(u.later) == 0 {
		return
	}
	todo := u.later
	u.later = nil
	for _, do := range todo {
		do()
	}
	for _, do := range u.pressed {
		do(gtx)
	}
	u.pressed = nil
	gtx.Execute(op.InvalidateCmd{})
}

// shell places sidebar, middle and inspector.
func (u *UI) shell(gtx C) {
	width, height := u.size.X, u.size.Y
	dp := func(px int) unit.Dp { return unit.Dp(float32(px) / gtx.Metric.PxPerDp) }
	side, insp := 0, 0
	u.roomSide, u.roomInspect = dp(width) > theme.HideSidebarAt, dp(width) > theme.SheetAt
	if u.roomSide && !u.noSide {
		side = gtx.Dp(theme.SidebarWidth)
		if dp(width) < 900 {
			side = gtx.Dp(theme.SidebarMin)
		}
	}
	wantsInspector := u.route.Page == PageConversation && u.route.Conversation != "" && !u.noInspect
	if wantsInspector && u.roomInspect {
		insp = gtx.Dp(theme.InspectorWidth)
	}
	if side > 0 {
		u.drawer = false
		at(sized(gtx, side, height), 0, 0, u.layoutSidebar)
	}
	middle := width - side - insp
	at(sized(gtx, middle, height), side, 0, func(gtx C) D {
		defer clip.Rect{Max: gtx.Constraints.Max}.Push(gtx.Ops).Pop()
		under := gtx
		if u.drawer || u.sheet && wantsInspector && insp == 0 {
			under = gtx.Disabled()
		}
		return u.layoutMiddle(under)
	})
	hair := max(gtx.Dp(1), 1)
	if side > 0 {
		fill(gtx.Ops, image.Rect(side-hair, 0, side, height), u.pal.Line)
	}
	if insp > 0 {
		u.sheet = false
		at(sized(gtx, insp, height), width-insp, 0, u.layoutInspector)
		fill(gtx.Ops, image.Rect(width-insp, 0, width-insp+hair, height), u.pal.Line)
	}
	if wantsInspector && insp == 0 && u.sheet {
		u.over(gtx, side, min(gtx.Dp(theme.InspectorWidth), width-side), true, u.layoutInspector)
	}
	if side == 0 && u.drawer {
		u.over(gtx, 0, min(gtx.Dp(theme.SidebarWidth), width-gtx.Dp(40)), false, u.layoutSidebar)
	}
}

// over lays a panel over the conversation, which begins at left; a press beside
// the panel closes it.
func (u *UI) over(gtx C, left, width int, right bool, w layout.Widget) {
	full, x, rest := gtx.Constraints.Max, left, left+width
	if right {
		x, rest = full.X-width, left
	}
	shade := u.pal.Ink
	shade.A = 60
	if u.pal.Dark {
		shade = u.pal.Sunken
		shade.A = 150
	}
	at(sized(gtx, full.X-width-left, full.Y), rest, 0, func(gtx C) D {
		return u.press(gtx, "over/close", u.words.CloseSheet, func(gtx C, _ bool) D {
			fill(gtx.Ops, image.Rectangle{Max: gtx.Constraints.Max}, shade)
			return D{Size: gtx.Constraints.Max}
		}, func() { u.sheet, u.drawer = false, false })
	})
	at(sized(gtx, width, full.Y), x, 0, w)
	edge := x
	if !right {
		edge = width
	}
	fill(gtx.Ops, image.Rect(edge, 0, edge+max(gtx.Dp(1), 1), full.Y), u.pal.Strong)
}

// keys handles shortcuts that work everywhere.
func (u *UI) keys(gtx C) {
	for {
		e, ok := gtx.Event(
			key.Filter{Name: "K", Required: key.ModShortcut},
			key.Filter{Name: "N", Required: key.ModShortcut},
			key.Filter{Name: "B", Required: key.ModShortcut},
			key.Filter{Name: "I", Required: key.ModShortcut},
			key.Filter{Name: ",", Required: key.ModShortcut},
			key.Filter{Name: key.NameEscape},
		)
		if !ok {
			break
		}
		k, isKey := e.(key.Event)
		if !isKey || k.State != key.Press {
			continue
		}
		switch k.Name {
		case "K":
			u.openPalette(gtx)
		case "N":
			u.newConversation()
		case "B":
			u.toggleSidebar()
		case "I":
			u.toggleInspector()
		case ",":
			u.Go(Route{Page: PageSettings})
		case key.NameEscape:
			switch {
			case u.palette.open:
				u.palette.open = false
			default:
				u.sheet, u.drawer = false, false
			}
		}
	}
	u.gateKeys(gtx)
}

func (u *UI) newConversation() { u.Go(Route{}) }

func (u *UI) toggleSidebar() {
	if u.roomSide {
		u.noSide = !u.noSide
		return
	}
	u.drawer = !u.drawer
}

func (u *UI) toggleInspector() {
	if u.roomInspect {
		u.noInspect = !u.noInspect
		return
	}
	u.noInspect, u.sheet = false, !u.sheet
}
