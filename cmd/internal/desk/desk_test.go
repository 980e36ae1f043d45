package desk_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"witan/cmd/internal/desk"
	"witan/cmd/internal/host"
	"witan/kernel"
	"witan/ui/model"
	"witan/ui/session"
	"witan/ui/shell"
)

// inProcess is a host in this process.
type inProcess struct{ h *host.Host }

func (p inProcess) Call(ctx context.Context, op string, args any, emit func(json.RawMessage) error) error {
	return p.h.Call(ctx, op, args, emit)
}

// open starts a host on an empty folder.
func open(t *testing.T) desk.Source {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("encryption = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Options{Home: dir, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return desk.Source{Host: inProcess{h}}
}

// TestWindowOverHost submits through the Source and follows the run until it ends,
// then reads, renames and archives.
func TestWindowOverHost(t *testing.T) {
	src := open(t)
	ctx := t.Context()
	l, err := src.Lists(ctx)
	if err != nil || len(l.Agents) < 3 || !l.Agents[0].Ready() || l.Conversations == nil {
		t.Fatalf("lists are %+v, %v", l, err)
	}
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("# Demo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := src.Do(ctx, model.Submit{Workspace: work, Text: "What is here?", Plan: "direct", Agents: []string{"scout"}})
	if err != nil || done.Conversation == "" || done.Run == "" {
		t.Fatalf("%+v, %v", done, err)
	}
	st, err := session.Load(ctx, src, "", done.Conversation)
	if err != nil || st.Open == nil || st.Open.Conversation.Workspace == "" {
		t.Fatalf("%+v, %v", st, err)
	}
	st = follow(t, src, st, done)
	r := st.Open.Run(done.Run)
	a := r.Latest("scout")
	if r.Status != "completed" || a == nil || !strings.Contains(a.Words(), "Workspace map") || len(a.Stages) < 4 {
		t.Errorf("the run is %+v, its attempt %+v", r, a)
	}
	delivery := ""
	for _, s := range a.Stages {
		if s.Stage == "deliver" {
			delivery = s.Out
		}
	}
	if b, err := src.Pack(ctx, delivery, 1<<10); err != nil || !strings.Contains(string(b), `"prompt"`) {
		t.Errorf("the delivery is %q, %v", b, err)
	}
	if b, err := src.Pack(ctx, delivery, 5); err != nil || len(b) != 5 {
		t.Errorf("five bytes of it are %q, %v", b, err)
	}
	if _, err := src.Do(ctx, model.Rename{Conversation: done.Conversation, Title: "Renamed"}); err != nil {
		t.Error(err)
	}
	if l, err = src.Lists(ctx); err != nil || len(l.Conversations) != 1 || l.Conversations[0].Title != "Renamed" || len(l.Runs) != 1 {
		t.Errorf("lists are %+v, %v", l, err)
	}
	if q, err := src.Queue(ctx, done.Conversation); err != nil || len(q) != 0 {
		t.Errorf("the queue is %v, %v", q, err)
	}
	if _, err := src.Do(ctx, model.Archive{Conversation: done.Conversation, Archived: true}); err != nil {
		t.Error(err)
	}
}

// follow attaches until the run ended, as often as the snapshot comes before it.
func follow(t *testing.T, src desk.Source, st *model.State, done model.Done) *model.State {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := func() bool { r := st.Open.Run(done.Run); return r != nil && !r.Active() }
	err := src.Attach(ctx, done.Conversation, func(raw json.RawMessage) error {
		next, _, err := st.Raw(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if st = next; ended() {
			cancel()
		}
		return ctx.Err()
	})
	if !ended() {
		t.Fatalf("the run did not end: %v", err)
	}
	d := model.Detail{Run: done.Run}
	if err := src.Detail(t.Context(), done.Run, func(raw json.RawMessage) error {
		line, err := model.Parse(raw)
		d.Lines = append(d.Lines, line)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return st.With(d)
}

func TestRefusals(t *testing.T) {
	src := open(t)
	for _, a := range []model.Action{
		model.Submit{Text: "x", Workspace: "not/absolute"}, model.Submit{Text: "x", Conversation: "conv_none"}, model.StopRun{Run: "no run"}, model.Resume{Run: "run_x"},
		model.Retry{Run: "run_x", Agent: "a"}, model.Answer{Gate: "gate_x", Option: "y"}, model.Adopt{Finding: "fnd_x", Word: "accept"}, model.Rename{Conversation: "c", Title: "t"},
		model.QueueEdit{Entry: "e", Word: "remove"}, nil,
	} {
		if _, err := src.Do(t.Context(), a); err == nil {
			t.Errorf("%#v was carried out", a)
		}
	}
	if _, err := src.Pack(t.Context(), "sha256:00", 10); err == nil {
		t.Error("a pack that cannot be was read")
	}
	if err := src.Attach(t.Context(), "conv_none", nil); !kernel.IsKind(err, kernel.NotFound) {
		t.Errorf("a conversation that is not there: %v", err)
	}
}

func TestPrefs(t *testing.T) {
	dir := t.TempDir()
	if p := desk.LoadPrefs(dir); !reflect.DeepEqual(p, shell.Prefs{}) {
		t.Errorf("nothing was chosen: %+v", p)
	}
	want := shell.Prefs{Theme: "dark", Lang: "zh-CN", Width: 900, Height: 700, Drafts: map[string]string{"c": "text"}}
	if err := desk.SavePrefs(dir, want); err != nil {
		t.Fatal(err)
	}
	if p := desk.LoadPrefs(dir); !reflect.DeepEqual(p, want) {
		t.Errorf("kept %+v", p)
	}
	if fi, err := os.Stat(filepath.Join(dir, "window.json")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "window.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := desk.LoadPrefs(dir); !reflect.DeepEqual(p, shell.Prefs{}) {
		t.Errorf("a broken file gives %+v", p)
	}
	gone := filepath.Join(dir, "gone")
	if err := desk.SavePrefs(gone, want); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(gone); err == nil {
		t.Error("a data directory was made")
	}
}
