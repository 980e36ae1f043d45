//go:build windows || cgo

package shell

import (
	"context"
	"image"
	"maps"
	"os"
	"runtime"
	"slices"

	"gioui.org/app"
	"gioui.org/io/system"
	"gioui.org/op"
	"gioui.org/text"
	"gioui.org/unit"

	"witan/ui/model"
	"witan/ui/session"
	"witan/ui/theme"
	"witan/ui/window"
)

// Available says whether this program can open a window.
const Available = true

// Run opens the window and returns when it is closed, or when ctx ends. On macOS
// it must be called by the main goroutine, and the process ends with the window.
func Run(ctx context.Context, o Options) error {
	done := make(chan error, 1)
	go func() {
		err := run(ctx, o)
		done <- err
		if runtime.GOOS == "darwin" { // the system's own loop never returns
			if err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		}
	}()
	if runtime.GOOS == "darwin" {
		app.Main()
	}
	return <-done
}

// live is one open window.
type live struct {
	win    app.Window
	ui     *window.UI
	sess   *session.Session
	opts   Options
	prefs  Prefs
	shaper chan *text.Shaper // one that knows the system's fonts
	title  string
	begun  bool // a route was chosen
	size   image.Point
}

func run(ctx context.Context, o Options) error {
	l := &live{opts: o, prefs: o.Prefs, shaper: make(chan *text.Shaper, 1)}
	l.prefs.Drafts = maps.Clone(o.Prefs.Drafts)
	if l.prefs.Drafts == nil {
		l.prefs.Drafts = map[string]string{}
	}
	width, height := l.prefs.Width, l.prefs.Height
	if width < 480 || height < 360 {
		width, height = 1280, 820
	}
	l.win.Option(app.Title("Witan"), app.Size(unit.Dp(width), unit.Dp(height)), app.MinSize(480, 360))
	l.sess = session.New(o.Source, o.Home, l.win.Invalidate)
	defer l.sess.Close()
	l.ui = window.New(window.Options{Theme: l.prefs.Theme, Lang: l.prefs.Lang, Folder: o.Folder, Hooks: window.Hooks{
		Do: l.sess.Do, Open: l.sess.Open, Fetch: l.sess.Fetch, Settings: l.chose, Draft: l.drafted,
	}})
	for conv, s := range l.prefs.Drafts {
		l.ui.SetDraft(conv, s)
	}
	stop := context.AfterFunc(ctx, func() {
		l.win.Perform(system.ActionClose)
		l.win.Invalidate() // a window at rest hears of it with its next frame
	})
	defer stop()
	defer l.keep()
	return l.loop()
}

// fonts reads the index of the system's fonts, which takes longer than the first
// frame may: until then what the embedded fonts lack is a box.
func (l *live) fonts() {
	s := theme.NewShaper(true)
	s.LayoutString(text.Parameters{Font: theme.Body.Font, PxPerEm: 14 << 6, MaxWidth: 1000}, "Aa")
	for _, ok := s.NextGlyph(); ok; _, ok = s.NextGlyph() {
	}
	l.shaper <- s
	l.win.Invalidate()
}

func (l *live) loop() error {
	var ops op.Ops
	first := true
	for {
		switch e := l.win.Event().(type) {
		case app.DestroyEvent:
			return e.Err
		case app.FrameEvent:
			gtx := app.NewContext(&ops, e)
			l.update()
			l.ui.Layout(gtx)
			e.Frame(gtx.Ops)
			l.size = image.Pt(int(float32(e.Size.X)/e.Metric.PxPerDp), int(float32(e.Size.Y)/e.Metric.PxPerDp))
			if first {
				first = false
				go l.fonts()
			}
		}
	}
}

// update takes what the session has to tell.
func (l *live) update() {
	select {
	case s := <-l.shaper:
		l.ui.SetShaper(s)
	default:
	}
	for _, n := range l.sess.Notes() {
		switch {
		case n.Pack != "":
			l.ui.SetPack(n.Pack, n.Text)
		case n.Opened != "":
			l.ui.Go(window.Route{Conversation: n.Opened})
		case n.Error != "":
			l.ui.SetFailed(n.Error)
		}
	}
	st := l.sess.State()
	l.ui.SetState(st)
	if !l.begun && (l.opts.Route != "" || st.Agents != nil) {
		l.begun = true
		l.ui.Go(l.firstRoute())
	}
	title := "Witan"
	if st.Open != nil && st.Open.Conversation.Title != "" {
		title = st.Open.Conversation.Title + " · Witan"
	}
	if title != l.title {
		l.title = title
		l.win.Option(app.Title(title))
	}
}

// firstRoute is what was asked for, else the newest conversation, else who is here.
func (l *live) firstRoute() window.Route {
	if r, err := window.ParseRoute(l.opts.Route); err == nil {
		return r
	}
	convs := l.sess.State().Conversations
	if i := slices.IndexFunc(convs, func(c model.Conversation) bool { return !c.Archived }); i >= 0 {
		return window.Route{Conversation: convs[i].ID}
	}
	return window.Route{Page: window.PageWelcome}
}

func (l *live) chose(themeName, lang string) {
	l.prefs.Theme, l.prefs.Lang = themeName, lang
	l.keep()
}

func (l *live) drafted(conv, s string) {
	if s == "" {
		delete(l.prefs.Drafts, conv)
	} else {
		l.prefs.Drafts[conv] = s
	}
}

// keep hands the choices on, with the size that the window has.
func (l *live) keep() {
	if l.size.X > 0 {
		l.prefs.Width, l.prefs.Height = l.size.X, l.size.Y
	}
	if l.opts.Keep != nil {
		p := l.prefs
		p.Drafts = maps.Clone(p.Drafts)
		l.opts.Keep(p)
	}
}
