package freeze_test

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/freeze"
)

var epoch = time.Unix(1_000_000_000, 0)

func TestTaskText(t *testing.T) {
	w := newWorld(t)
	for _, stage := range []kernel.Freeze{w.stage(), freeze.None()} {
		for text, reason := range map[string]string{"": "task_empty", " \n\t": "task_empty", strings.Repeat("ü", 32_001): "task_too_long"} {
			in := task(w.dir)
			in.Text = text
			_, err := stage.Run(ctx, w.env(""), in)
			wantFailure(t, err, reason)
		}
		in := task(w.dir)
		in.Text = strings.Repeat("ü", 32_000)
		if s, err := stage.Run(ctx, w.env(""), in); err != nil || s.Text != in.Text {
			t.Errorf("%s with the longest text: %v", stage.Spec().ID, err)
		}
	}
}

func TestHistoryAndAttachments(t *testing.T) {
	w := newWorld(t)
	w.write(goProject)
	for _, stage := range []kernel.Freeze{w.stage(), freeze.None()} {
		d, err := w.mem.Put(ctx, "text", []byte("earlier"))
		w.must(err)
		in := task(w.dir)
		in.History = []kernel.HistoryEntry{{Message: "msg_1", Role: "user", TurnSeq: 1, Text: d}}
		in.Attachments = []kernel.Attachment{{ID: "att_1", Name: "a.txt", Stored: "a.txt", Bytes: 7, Hash: d}}
		s, err := stage.Run(ctx, w.env(""), in)
		w.must(err)
		raw, err := kernel.Canonical(in)
		w.must(err)
		if !slices.Equal(s.History, in.History) || !slices.Equal(s.Attachments, in.Attachments) || s.Task != kernel.Sum(raw) || s.Text != in.Text {
			t.Errorf("%+v", s)
		}
		if s, err := stage.Run(ctx, w.env(""), task(w.dir)); err != nil || s.History == nil || s.Attachments == nil {
			t.Errorf("nothing is null: %+v, %v", s, err)
		}
		in.Attachments[0].Hash = kernel.Sum([]byte("nobody"))
		if _, err := stage.Run(ctx, w.env(""), in); !kernel.IsKind(err, kernel.NotFound) {
			t.Errorf("an attachment that is not there: %v", err)
		}
		in = task(w.dir)
		in.History = []kernel.HistoryEntry{{Message: "msg_1", Role: "user", Text: kernel.Sum([]byte("nobody"))}}
		if _, err := stage.Run(ctx, w.env(""), in); !kernel.IsKind(err, kernel.NotFound) {
			t.Errorf("a history that is not there: %v", err)
		}
	}
}

func TestInstructions(t *testing.T) {
	w := newWorld(t)
	run := func() kernel.Snapshot {
		t.Helper()
		s, err := w.stage().Run(ctx, w.env(""), task(w.dir))
		w.must(err)
		return s
	}
	if s := run(); !s.Instructions.IsZero() {
		t.Error("there are none")
	}
	w.write(map[string]string{"AGENTS.md": "be brief"})
	s := run()
	if b, err := w.mem.Get(ctx, s.Instructions); err != nil || string(b) != "be brief" {
		t.Errorf("%q, %v", b, err)
	}
	w.write(map[string]string{"AGENTS.md": strings.Repeat("x", 256<<10+1)})
	if s := run(); !s.Instructions.IsZero() || !slices.Contains(skipped(s.Workspace), "AGENTS.md instructions_too_large") {
		t.Errorf("too large: %q", skipped(s.Workspace))
	}
	w.must(errors.Join(os.Remove(w.path("AGENTS.md")), os.Symlink("/etc/passwd", w.path("AGENTS.md"))))
	if s := run(); !s.Instructions.IsZero() {
		t.Error("a link was followed")
	}
}

func TestOptions(t *testing.T) {
	w := newWorld(t)
	for _, o := range []string{`{"tre":true}`, `{"tree":1}`, `{"max_file_mib":-1}`, `{"max_file_mib":1048577}`, `[]`} {
		if _, err := w.try(w.dir, o); !kernel.IsKind(err, kernel.Invalid) {
			t.Errorf("options %s: %v", o, err)
		}
	}
	if _, err := w.try(w.dir, `{}`); err != nil {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	w := newWorld(t)
	w.write(goProject)
	c, cancel := context.WithCancel(ctx)
	w.disk.reading["main.go"] = func() bool { cancel(); return false }
	w.disk.opening["node_modules"] = cancel
	if _, err := w.stage().Run(c, w.env(""), task(w.dir)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := w.mem.LoadStat(ctx, w.dir); !kernel.IsKind(err, kernel.NotFound) {
		t.Error("a cancelled freeze left a cache")
	}
}

func TestNoneTouchesNoFolder(t *testing.T) {
	w := newWorld(t)
	s, err := freeze.None().Run(ctx, w.env(""), task(w.path("gone")))
	if err != nil || s.Workspace.Kind != "none" || s.Workspace.Path != w.path("gone") {
		t.Errorf("%+v, %v", s.Workspace, err)
	}
}

func TestSpecs(t *testing.T) {
	w := newWorld(t)
	for id, c := range map[string]struct {
		s     kernel.Freeze
		class kernel.Class
	}{"freeze/workspace": {w.stage(), kernel.Keyed}, "freeze/none": {freeze.None(), kernel.Pure}} {
		if sp := c.s.Spec(); sp.ID != id || sp.Class != c.class || sp.Version < 1 || len(sp.In) == 0 || len(sp.Out) == 0 {
			t.Errorf("%+v", sp)
		}
	}
}

// The stage bounds the memory of the process while it works, and only then.
func TestMemoryLimitIsPutBack(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{"a": "1"})
	before := debug.SetMemoryLimit(-1)
	during := make(chan int64, 1)
	w.disk.reading["a"] = func() bool {
		select {
		case during <- debug.SetMemoryLimit(-1):
		default:
		}
		return false
	}
	w.freeze("")
	if got := <-during; got >= before || got < 16<<20 {
		t.Errorf("the limit was %d", got)
	}
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("the limit is %d afterwards, was %d", got, before)
	}
}
