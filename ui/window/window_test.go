package window_test

import (
	"fmt"
	"image"
	"strings"
	"testing"
	"time"

	"gioui.org/f32"
	"gioui.org/io/key"
	"gioui.org/io/semantic"

	"witan/ui/model"
	"witan/ui/text"
	"witan/ui/theme"
	"witan/ui/uitest"
	"witan/ui/window"
)

// bench is a window on a screen, with what it asked for.
type bench struct {
	*uitest.Screen
	ui    *window.UI
	asked []model.Action
	opens []string
	w     *text.Strings
}

// open shows a route of the sample host.
func open(t testing.TB, size image.Point, lang, route string) *bench {
	t.Helper()
	b := &bench{w: text.For(lang)}
	b.ui = window.New(window.Options{Theme: "light", Lang: lang, Now: uitest.Clock, Zone: uitest.Now.Location(), Shaper: theme.NewShaper(false),
		Hooks: window.Hooks{
			Do:   func(a model.Action) { b.asked = append(b.asked, a) },
			Open: func(id string) { b.opens = append(b.opens, id) },
		}})
	r, err := window.ParseRoute(route)
	if err != nil {
		t.Fatal(err)
	}
	b.ui.Go(r)
	b.ui.SetState(uitest.State(r.Conversation))
	for h, s := range uitest.Packs() {
		b.ui.SetPack(h, s)
	}
	b.Screen = uitest.NewScreen(t, size, b.ui.Layout)
	return b
}

func (b *bench) want(t *testing.T, actions ...model.Action) {
	t.Helper()
	if fmt.Sprintf("%#v", b.asked) != fmt.Sprintf("%#v", actions) {
		t.Errorf("asked for %#v\nwant      %#v", b.asked, actions)
	}
}

var wide = image.Pt(1440, 900)

func TestSend(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Ended)
	b.Click("Council")
	b.Click(b.w.MessageCouncil)
	b.Type("What about 日本語?")
	b.Click("Send")
	b.want(t, model.Submit{Conversation: uitest.Ended, Workspace: "/home/ada/src/handbook", Text: "What about 日本語?", Plan: "council"})
	if !b.Has(b.w.MessageCouncil) {
		t.Error("the draft is still there")
	}
	b.asked = nil
	b.Click("Send")
	b.want(t)
}

func TestEnterSendsAndShiftBreaks(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Council)
	b.Click(b.w.MessageCouncil)
	b.Type("one")
	b.Key(key.NameReturn, key.ModShift)
	b.Type("two")
	b.want(t)
	b.Key(key.NameReturn, 0)
	b.want(t, model.Submit{Conversation: uitest.Council, Workspace: "/home/ada/src/image-store", Text: "one\ntwo", Plan: "council", Queue: true})
}

func TestChooseAgents(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Ended)
	b.Click(b.w.AgentsChosen.Of(3))
	b.Router.MoveFocus(key.FocusForward)
	for _, n := range b.Tree() {
		if n.Desc.Class == semantic.Button && n.Desc.Description == "opencode" && n.Desc.Bounds.Min.Y > 700 {
			mid := f32.Pt(float32(n.Desc.Bounds.Min.X+5), float32(n.Desc.Bounds.Min.Y+5))
			b.Press(mid, mid)
			break
		}
	}
	if !b.Has(b.w.AgentsChosen.Of(2)) {
		t.Fatalf("an agent was left out, and there is\n%s", strings.Join(b.Controls(), "\n"))
	}
	b.Click(fmt.Sprintf(b.w.MessageMany, "2"))
	b.Type("x")
	b.Click("Send")
	b.want(t, model.Submit{Conversation: uitest.Ended, Workspace: "/home/ada/src/handbook", Text: "x", Plan: "batch", Agents: []string{"codex", "inspector"}})
}

// TestGateInertia presses before and after a gate has been there for 300 ms.
func TestGateInertia(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Gated)
	b.Key("1", 0)
	b.Click("Reject")
	b.want(t)
	b.Now = b.Now.Add(time.Second)
	b.Frame()
	b.Key("2", 0)
	answer := model.Answer{Gate: "gate_edit", Option: "allow-run"}
	b.want(t, answer)
	b.Key("1", 0) // the answer is on its way
	b.want(t, answer)
}

func TestGateKeysWhileWriting(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Gated)
	b.Now = b.Now.Add(time.Second)
	b.Click(b.w.MessageCouncil)
	b.Type("chapter ")
	b.Key("1", 0)
	b.want(t)
	b.Key("3", key.ModAlt)
	b.want(t, model.Answer{Gate: "gate_edit", Option: "reject"})
}

func TestGateByButton(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Gated)
	b.Now = b.Now.Add(time.Second)
	b.Click("Allow once")
	b.want(t, model.Answer{Gate: "gate_edit", Option: "allow-once"})
}

func TestFindings(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Gated+"/findings")
	if !b.Shows("Eviction races with Get") || !b.Shows("contradicted") {
		t.Fatalf("the findings show %q", b.Texts())
	}
	b.Click("Accept")
	b.Click("Reopen")
	b.want(t, model.Adopt{Finding: "fnd_1", Word: "accept"}, model.Adopt{Finding: "fnd_2", Word: "reopen"})
}

// TestPaletteHasEverything runs every action by its name in both languages.
func TestPaletteHasEverything(t *testing.T) {
	t.Parallel()
	for _, lang := range text.Languages {
		w := text.For(lang)
		tests := []struct {
			name string
			want model.Action
		}{
			{w.ActStop, model.StopRun{Run: "run_gated"}},
			{w.ActArchive, model.Archive{Conversation: uitest.Gated, Archived: true}},
			{fmt.Sprintf(w.ActAnswer, w.Options["reject"]), model.Answer{Gate: "gate_edit", Option: "reject"}},
			{fmt.Sprintf(w.ActAccept, "Eviction races with Get"), model.Adopt{Finding: "fnd_1", Word: "accept"}},
			{fmt.Sprintf(w.ActReject, "Eviction races with Get"), model.Adopt{Finding: "fnd_1", Word: "reject"}},
		}
		for _, tt := range tests {
			b := open(t, wide, lang, "conversation/"+uitest.Gated)
			b.Now = b.Now.Add(time.Second)
			b.command(tt.name)
			b.want(t, tt.want)
		}
		b := open(t, wide, lang, "conversation/"+uitest.Ended)
		b.command(w.ActRetry)
		b.command(w.ActResume)
		b.want(t, model.Retry{Run: "run_ended"}, model.Resume{Run: "run_ended"})
		for name, route := range map[string]string{w.ActSettings: "settings", w.ActAgents: "agents", w.ActWelcome: "welcome", w.ActNew: "conversation/",
			fmt.Sprintf(w.ActOpen, "Broken cross references"): "conversation/conv_old"} {
			b.command(name)
			if got := b.ui.Route().String(); got != route {
				t.Errorf("%s: %q leads to %s", lang, name, got)
			}
		}
		b.command(w.ActLanguage)
		if b.Has(w.Settings) {
			t.Errorf("%s: the language is still the same", lang)
		}
	}
}

// command finds an action by its name in the palette and runs it with Enter.
func (b *bench) command(name string) {
	b.T.Helper()
	b.Key("K", key.ModShortcut)
	b.Type(name)
	if !b.Has(name) {
		b.T.Fatalf("the palette lacks %q; it has\n%s", name, strings.Join(b.Controls(), "\n"))
	}
	b.Key(key.NameReturn, 0)
}

func TestTabs(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Council)
	for tab, shows := range map[string]string{"Context": "Delivered to codex", "Findings": b.w.NoFindings, "Run": "Responsibility graph", "Files": b.w.NoFiles} {
		b.Click(tab)
		if !b.Shows(shows) {
			t.Errorf("%s does not show %q", tab, shows)
		}
	}
}

// TestPacksAreFetchedOnce opens an artifact and a delivery.
func TestPacksAreFetchedOnce(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	u := window.New(window.Options{Lang: "en", Now: uitest.Clock, Zone: uitest.Now.Location(), Shaper: theme.NewShaper(false),
		Hooks: window.Hooks{Fetch: func(hash string) { asked[hash]++ }}})
	u.Go(window.Route{Conversation: uitest.Gated, Tab: window.TabFiles, Inspect: true})
	u.SetState(uitest.State(uitest.Gated))
	s := uitest.NewScreen(t, wide, u.Layout)
	s.Click("Open · cache/cache.go")
	if len(asked) != 1 || !s.Shows("Loading") {
		t.Fatalf("asked for %v", asked)
	}
	for hash := range asked {
		u.SetPack(hash, uitest.Packs()[hash])
	}
	s.Settle()
	s.Click("Context")
	s.Click("Open")
	for hash := range asked {
		u.SetPack(hash, `{"version":1,"prompt":"sha256:aa","fingerprint":"sha256:bb","session":"resume","bytes":1484}`)
	}
	s.Settle()
	if !s.Shows("Session: continued · 1.4 KB") {
		t.Errorf("the delivery does not say how its session began: %q", s.Texts())
	}
	for hash, n := range asked {
		if n != 1 {
			t.Errorf("%s was asked for %d times", hash, n)
		}
	}
}

func TestGridSaysWhatItDraws(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Council+"/run")
	for _, want := range []string{"codex · invoke · working", "opencode · deliver · not yet"} {
		if !b.Has(want) {
			t.Errorf("no cell says %q; there are\n%s", want, strings.Join(b.Controls(), "\n"))
		}
	}
	if !b.Shows("inspector · commit · in ") || !b.Shows("W3 · inspector · worker · failing test · done") {
		t.Errorf("the grid or the graph does not say what it shows: %q", b.Texts())
	}
}

func TestRename(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Ended)
	b.command(b.w.ActRename)
	b.Type("Release notes")
	b.Key(key.NameReturn, 0)
	b.want(t, model.Rename{Conversation: uitest.Ended, Title: "Release notes"})
}

func TestSidebarOpensConversations(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "welcome")
	b.Click("How thumbnails are made")
	if len(b.opens) != 1 || b.opens[0] != uitest.Article || b.ui.Route().Conversation != uitest.Article {
		t.Errorf("opened %v, at %v", b.opens, b.ui.Route())
	}
	// Until it is there, nothing of another conversation is shown under its name.
	b.ui.SetState(uitest.State(uitest.Council))
	b.Settle()
	if b.Shows("one byte short") {
		t.Error("a conversation shows the text of another")
	}
}

// TestDraftsStayApart types in one conversation and looks at another.
func TestDraftsStayApart(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Council)
	b.Click(b.w.MessageCouncil)
	b.Type("for the council")
	b.Click("Translate the release notes")
	b.ui.SetState(uitest.State(uitest.Ended))
	b.Settle()
	if b.Shows("for the council") {
		t.Error("a draft followed into another conversation")
	}
	b.Click("Uploads lose their last byte")
	b.ui.SetState(uitest.State(uitest.Council))
	b.Settle()
	if !b.Shows("for the council") {
		t.Error("the draft is gone")
	}
}

func TestNarrowWindow(t *testing.T) {
	t.Parallel()
	b := open(t, image.Pt(720, 900), "en", "conversation/"+uitest.Council)
	if b.Has("Run") || b.Has("New conversation") {
		t.Fatal("panels are open that have no room")
	}
	b.Click(b.w.ToggleInspector)
	if !b.Has("Run") {
		t.Error("the inspector did not open")
	}
	b.Click(b.w.CloseSheet)
	b.Click(b.w.ToggleSidebar)
	b.Click("How thumbnails are made")
	if b.Has("New conversation") || b.ui.Route().Conversation != uitest.Article {
		t.Error("the sidebar did not close behind the choice")
	}
}

// TestEveryControlHasAName looks at every route narrow and wide, in both languages.
func TestEveryControlHasAName(t *testing.T) {
	t.Parallel()
	for _, lang := range text.Languages {
		for _, width := range []int{720, 1440} {
			for _, route := range []string{"welcome", "settings", "agents", "conversation/" + uitest.Council + "/run", "conversation/" + uitest.Council + "/context",
				"conversation/" + uitest.Gated + "/findings", "conversation/" + uitest.Gated + "/files", "conversation/" + uitest.Article, "conversation/" + uitest.Ended} {
				b := open(t, image.Pt(width, 900), lang, route)
				n := 0
				for _, node := range b.Tree() {
					if node.Desc.Class != semantic.Button && node.Desc.Class != semantic.Editor {
						continue
					}
					n++
					if node.Desc.Description == "" && !named(b, node.ParentID) {
						t.Errorf("%s at %d in %s: a control at %v has no name", route, width, lang, node.Desc.Bounds)
					}
				}
				if n < 3 {
					t.Errorf("%s at %d: %d controls", route, width, n)
				}
			}
		}
	}
}

// named reports whether an editor is the one inside a node that has its name.
func named(b *bench, parent any) bool {
	for _, n := range b.Tree() {
		if n.ID == parent && n.Desc.Class == semantic.Editor && n.Desc.Description != "" {
			return true
		}
	}
	return false
}
