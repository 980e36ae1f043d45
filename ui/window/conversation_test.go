package window_test

import (
	"fmt"
	"image"
	"strings"
	"testing"
	"time"

	"gioui.org/f32"
	"gioui.org/io/key"
	"gioui.org/io/pointer"

	"witan/ui/model"
	"witan/ui/theme"
	"witan/ui/uitest"
	"witan/ui/window"
)

// TestSelectAcrossRows drags from one message into the next and copies.
func TestSelectAcrossRows(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Ended)
	from, to := b.Where("into German"), b.Where("Hochladen")
	b.Press(f32.Pt(float32(from.Min.X+80), float32(from.Min.Y+10)), f32.Pt(float32(to.Max.X-5), float32(to.Max.Y-5)))
	b.Key("C", key.ModShortcut)
	if got := b.clipboard(); !strings.Contains(got, "notes into German.") || !strings.Contains(got, "Hochladen") {
		t.Errorf("copied %q", got)
	}
	b.Key("A", key.ModShortcut)
	b.Key("C", key.ModShortcut)
	if got := b.clipboard(); !strings.HasPrefix(got, "Translate the release") || !strings.Contains(got, "generation") {
		t.Errorf("copied all: %q", got)
	}
}

func (b *bench) clipboard() string {
	_, content, ok := b.Router.WriteClipboard()
	if !ok {
		return ""
	}
	return string(content)
}

func TestCopyButton(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Ended)
	b.Click("Copy codex")
	if got := b.clipboard(); !strings.HasPrefix(got, "> **Neu:**") {
		t.Errorf("copied %q", got)
	}
}

// TestFoldToolsAndTurns folds and unfolds what can be.
func TestFoldToolsAndTurns(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Council)
	if b.Shows("copyBody") && b.Shows("store/upload_test.go") {
		t.Log("some tools are shown while folded")
	}
	b.Click("5 tool calls")
	if !b.Shows("store/upload_test.go") {
		t.Error("the tool calls did not unfold")
	}
	b.Click("Collapse codex")
	if !b.Has("Expand codex") {
		t.Error("the turn did not fold")
	}
}

// TestPermission chooses what agents may do with the next message.
func TestPermission(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Ended)
	b.Click("Ask first")
	b.Click("Permission: everything is allowed")
	if !b.Has("Everything") {
		t.Fatalf("the choice does not show: %v", b.Controls())
	}
	b.Click(fmt.Sprintf(b.w.MessageMany, "3"))
	b.Type("x")
	b.Click("Send")
	b.want(t, model.Submit{Conversation: uitest.Ended, Workspace: "/home/ada/src/handbook", Text: "x", Plan: "batch", Permission: "full"})
}

// TestMention completes a name after an @, and not in an address.
func TestMention(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Council)
	b.Click(b.w.MessageCouncil)
	b.Type("mail me@o")
	if b.Has("@opencode") {
		t.Error("an address is taken for a name")
	}
	b.Type(" and @o")
	if b.Has("@codex") || !b.Has("@opencode") {
		t.Fatalf("offered are %v", b.Controls())
	}
	b.Click("@opencode")
	b.Type("look")
	b.Key(key.NameReturn, 0)
	b.want(t, model.Submit{Conversation: uitest.Council, Workspace: "/home/ada/src/image-store", Text: "mail me@o and @opencode look", Plan: "council", Queue: true})
}

// TestComposition commits what an input method composed: the Enter that ends a
// composition is the input method's, and only the next one sends.
func TestComposition(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "zh-CN", "conversation/"+uitest.Ended)
	b.Click(fmt.Sprintf(b.w.MessageMany, "3"))
	b.Router.Queue(key.EditEvent{Range: key.Range{}, Text: "nihao"}, key.SelectionEvent{Start: 5, End: 5})
	b.Settle()
	b.Router.Queue(key.EditEvent{Range: key.Range{Start: 0, End: 5}, Text: "你好"}, key.SelectionEvent{Start: 2, End: 2})
	b.Settle()
	b.want(t)
	if !b.Shows("你好") || b.Shows("nihao") {
		t.Errorf("the draft is not what was composed: %q", b.Texts())
	}
	b.Key(key.NameReturn, 0)
	b.want(t, model.Submit{Conversation: uitest.Ended, Workspace: "/home/ada/src/handbook", Text: "你好", Plan: "batch"})
}

// TestStillFrameIsFlat compares a short and a long conversation at rest.
func TestStillFrameIsFlat(t *testing.T) {
	cost := func(n int) float64 {
		st, _, err := (&model.State{}).With(uitest.Lists()).Raw(uitest.Long(n))
		if err != nil {
			t.Fatal(err)
		}
		u := window.New(window.Options{Now: uitest.Clock, Zone: uitest.Now.Location(), Shaper: theme.NewShaper(false)})
		u.Go(window.Route{Conversation: "conv_long"})
		u.SetState(st)
		s := uitest.NewScreen(t, wide, u.Layout)
		return testing.AllocsPerRun(50, s.Frame)
	}
	short, long := cost(200), cost(10000)
	if long > short+short/10+5 {
		t.Errorf("a frame at rest takes %.0f allocations with 200 messages and %.0f with 10,000", short, long)
	}
}

// TestScrollingThroughEverything goes up a long conversation: what is remembered
// of rows that are out of sight is bounded.
func TestScrollingThroughEverything(t *testing.T) {
	t.Parallel()
	st, _, err := (&model.State{}).With(uitest.Lists()).Raw(uitest.Long(4000))
	if err != nil {
		t.Fatal(err)
	}
	u := window.New(window.Options{Now: uitest.Clock, Zone: uitest.Now.Location(), Shaper: theme.NewShaper(false)})
	u.Go(window.Route{Conversation: "conv_long"})
	u.SetState(st)
	s := uitest.NewScreen(t, wide, u.Layout)
	for range 600 {
		s.Router.Queue(pointer.Event{Kind: pointer.Scroll, Source: pointer.Mouse, Position: f32.Pt(600, 400), Scroll: f32.Pt(0, -3000)})
		s.Frame()
	}
	if !s.Shows("Question 0?") {
		t.Error("the beginning was not reached")
	}
	if bodies, controls := u.Held(); bodies > 400 || controls > 1400 {
		t.Errorf("%d texts and %d controls are held", bodies, controls)
	}
}

// TestGatesShowEverywhere finds a gate of another conversation from each page.
func TestGatesShowEverywhere(t *testing.T) {
	t.Parallel()
	for _, route := range []string{"welcome", "settings", "conversation/" + uitest.Council} {
		b := open(t, wide, "en", route)
		b.Click("1 gate waits")
		if got := b.ui.Route().Conversation; got != uitest.Gated {
			t.Errorf("from %s it leads to %q", route, got)
		}
	}
	if b := open(t, wide, "en", "conversation/"+uitest.Gated); b.Has("1 gate waits") {
		t.Error("a gate that is in sight is told of as if it were not")
	}
}

// TestOneAgentOfARun stops one that works and retries one that failed.
func TestOneAgentOfARun(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Council)
	b.Click("Stop codex")
	b.want(t, model.StopRun{Run: "run_council", Agent: "codex"})
	b = open(t, wide, "en", "conversation/"+uitest.Ended)
	b.Click("Retry opencode")
	b.want(t, model.Retry{Run: "run_ended", Agent: "opencode"})
	if b.Has("Retry codex") {
		t.Error("an agent that answered can be retried")
	}
}

// TestAtRestNothingIsDrawn looks at a conversation where nothing is at work, with
// the keyboard elsewhere: no frame is wanted.
func TestAtRestNothingIsDrawn(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Ended)
	b.Click("Run") // takes the keyboard from the composer, whose caret blinks
	b.Now = b.Now.Add(time.Minute)
	b.Settle()
	if at, ok := b.Wakeup(); ok {
		t.Errorf("a frame is wanted at %v", at.Sub(b.Now))
	}
}

// TestScrollAnchor streams into a conversation: near its end the view follows,
// further up nothing moves.
func TestScrollAnchor(t *testing.T) {
	t.Parallel()
	b := open(t, image.Pt(1440, 500), "en", "conversation/"+uitest.Council)
	stream := func() {
		s := b.ui.State()
		next, _ := s.Line(model.Line{Type: "text", Run: "run_council", Attempt: "work-codex", Delta: strings.Repeat("more words ", 60)})
		b.ui.SetState(next)
		b.Settle()
	}
	top := func(name string) int {
		n, ok := b.Find(name)
		if !ok {
			return -1
		}
		return n.Desc.Bounds.Min.Y
	}
	mid := f32.Pt(600, 200)
	b.Scroll(mid, -40)
	stream()
	if b.Has(b.w.JumpToLatest) {
		t.Error("40 px above the end, the view did not follow")
	}
	b.Scroll(mid, -600)
	before := b.Texts()
	y := top("Collapse inspector")
	stream()
	stream()
	if got := top("Collapse inspector"); got != y || y < 0 {
		t.Errorf("far above the end, a row moved from %d to %d", y, got)
	}
	if len(before) == 0 || !b.Has(b.w.JumpToLatest) {
		t.Fatal("nothing leads back to the end")
	}
	b.Click(b.w.JumpToLatest)
	if b.Has(b.w.JumpToLatest) {
		t.Error("still not at the end")
	}
}

// TestHostileText shows what agents and files must not be able to do.
func TestHostileText(t *testing.T) {
	t.Parallel()
	b := open(t, wide, "en", "conversation/"+uitest.Ended)
	s := b.ui.State()
	for i, evil := range []string{"\x1b[2J\x1b]0;x\x07", "a\u202egpj.exe", strings.Repeat("x", 1<<20), strings.Repeat("|a", 5000) + "\n" + strings.Repeat("|-", 5000) + "\n", "```\n\x00", "![x](file:///etc/passwd)"} {
		id := fmt.Sprintf("a%d", i)
		s, _ = s.Line(model.Line{Type: "attempt.queued", Run: "run_ended", Attempt: id, Agent: "\u200b\u202e\x1b[31m", Phase: "respond", Round: 1})
		s, _ = s.Line(model.Line{Type: "text", Run: "run_ended", Attempt: id, Delta: evil})
		s, _ = s.Line(model.Line{Type: "tool", Run: "run_ended", Attempt: id, ID: "1", Kind: evil[:1], Title: "\x1b[31m" + evil, Status: "completed"})
	}
	b.ui.SetState(s)
	b.Settle()
	for _, txt := range b.Texts() {
		if strings.ContainsAny(txt, "\x1b\u202e\u200b\x00") {
			t.Errorf("a control character is shown: %q", txt[:min(len(txt), 60)])
		}
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"welcome", "settings", "agents", "conversation/c1", "conversation/c1/run", "conversation/c1/context", "conversation/c1/findings", "conversation/c1/files"} {
		if r, err := window.ParseRoute(s); err != nil || r.String() != s {
			t.Errorf("%q is %q, %v", s, r.String(), err)
		}
	}
	for _, s := range []string{"", "no", "conversation", "conversation/", "conversation/c/x", "conversation/c/run/y", "settings/x", "/welcome"} {
		if _, err := window.ParseRoute(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}
