package commit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stages/commit"
)

const (
	text   = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
	top    = "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n"
	bottom = "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n"
	both   = "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n"
	utf16  = "\xff\xfea\x00\r\x00\n\x00"
)

// lines makes each letter a line.
func lines(s string) string { return strings.Join(strings.Split(s, ""), "\n") + "\n" }

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

func TestApply(t *testing.T) {
	t.Parallel()
	r := newResult(t, map[string]string{"a": text, "run.sh": "x", "bin*": "x", "gone/deep/x": "1", "gone/y": "1", "link": "-> a", "was file": "1", "was folder/x": "1", "was \xff/\xfe/x": "1", "mine": "mine",
		"win": crlf(text), "utf16": utf16, "private": "1"})
	r.must(os.Chmod(filepath.Join(r.dir, "private"), 0o640))
	r.must(os.Mkdir(filepath.Join(r.dir, "was folder", "empty"), 0o755))
	r.must(os.MkdirAll(filepath.Join(r.dir, "was \xff", "empty", "\xff"), 0o755))
	r.change("a", text, top)
	r.change("run.sh*", "x", "x")
	r.change("*bin", "x", "y")
	r.change("gone/deep/x", "1", "")
	r.change("link", "-> a", "-> mine")
	r.change("was file", "1", "")
	r.change("was file/x", "", "new")
	r.change("was folder/x", "1", "")
	r.change("was folder", "", "new, no end")
	r.change("was \xff/\xfe/x", "1", "")
	r.change("was \xff", "", "new")
	r.change("win", crlf(text), crlf(top))
	r.change("utf16", utf16, utf16+"b\x00")
	r.change("new/n\n\xff*", "", "new")
	r.change("to link", "", "-> nowhere")
	r.change("private*", "1", "2")
	r.change("never was", "x", "")
	want := map[string]string{"a": top, "run.sh*": "x", "bin": "y", "gone/y": "1", "link": "-> mine", "was file/x": "new", "was folder": "new, no end", "was \xff": "new", "mine": "mine",
		"win": crlf(top), "utf16": utf16 + "b\x00", "new/n\n\xff*": "new", "to link": "-> nowhere", "private*": "2"}
	for range 2 { // the second time it is done already
		r.must(r.apply())
		r.has(want)
	}
	if fi, err := os.Stat(filepath.Join(r.dir, "private")); err != nil || fi.Mode().Perm() != 0o750 {
		t.Errorf("private: %v, %v", fi.Mode(), err)
	}
	if fi, err := os.Stat(filepath.Join(r.dir, "new", "n\n\xff")); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("new: %v, %v", fi.Mode(), err)
	}
}

// The person changed something meanwhile.
func TestApplyMerges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, base, theirs, ours, want string }{
		"another place":               {"f", text, top, bottom, both},
		"the same change":             {"f", text, top, top, top},
		"mode and content":            {"f*", text, text, bottom, ""}, // see below
		"without an end":              {"f", text, top, strings.TrimSuffix(bottom, "\n"), strings.TrimSuffix(both, "\n")},
		"only line ends":              {"f", text, top, crlf(text), crlf(top)},
		"line ends and another place": {"f", text, top, crlf(bottom), crlf(both)},
		"line ends the other way":     {"f", crlf(text), crlf(top), bottom, both},
		"line ends, deleted":          {"f", text, "", crlf(text), "gone"},
		"deleted by both":             {"f", text, "", "gone", "gone"},
		"added by both, equal":        {"f", "", "x", "x", "x"},
		"latin-1":                     {"f", "\xe9\nb\nc\nd\ne\n", "\xe8\nb\nc\nd\ne\n", "\xe9\nb\nc\nd\n\xe7\n", "\xe8\nb\nc\nd\n\xe7\n"},
	} {
		r := newResult(t, map[string]string{"f": tc.ours})
		r.change(tc.file, tc.base, tc.theirs)
		want := map[string]string{"f": tc.want}
		switch {
		case tc.want == "gone":
			want = map[string]string{}
		case tc.want == "":
			want = map[string]string{"f*": bottom}
		}
		for range 2 {
			if err := r.apply(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			r.has(want)
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// Conflicts of all kinds: nothing is written, and each file is named.
func TestApplyConflicts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ base, theirs, ours, says string }{
		"the same place":       {text, top, "uno\n" + text[4:], "at the same place"},
		"binary":               {"\x00a", "\x00b", "\x00c", "no text"},
		"utf-16":               {utf16, utf16 + "b\x00", utf16 + "c\x00", "no text"},
		"deleted by person":    {text, top, "gone", "was deleted here"},
		"deleted by result":    {text, "", bottom, "the result deletes it"},
		"added by both":        {"", "theirs", "ours", "added here too"},
		"file became link":     {text, top, "-> x", "link"},
		"link on both":         {"-> a", "-> b", "-> c", "link"},
		"large":                {text, top, strings.Repeat("x", 16<<20+1), "too large"},
		"mixed line ends":      {text, top, crlf("one\ntwo\n") + text[8:], "at the same place"},
		"twice is not once":    {lines("aaabbab"), lines("aaaabbab"), lines("axaabbab"), "at the same place"}, // a repeat would add a line again
		"deleted, other mode":  {text, "", "exe", "the result deletes it"},
		"file became folder":   {text, top, "folder", "is a folder here"},
		"parent became a file": {text, top, "parent", "lies behind a file or link"},
		"parent became a link": {text, top, "linked", "lies behind a file or link"},
	} {
		r := newResult(t, map[string]string{"d/f": text, "first": "1"})
		outside := t.TempDir()
		r.must(os.WriteFile(filepath.Join(outside, "f"), []byte(text), 0o600))
		want := map[string]string{"d/f": tc.ours, "first": "1"}
		switch tc.ours {
		case "gone":
			delete(want, "d/f")
			r.write(map[string]string{"d/f": "gone"})
		case "exe":
			want = map[string]string{"d/f*": text, "first": "1"}
			r.must(os.Chmod(filepath.Join(r.dir, "d", "f"), 0o755))
		case "folder":
			want = map[string]string{"d/f/x": "1", "first": "1"}
			r.write(map[string]string{"d/f": "gone"})
			r.write(want)
		case "parent":
			want = map[string]string{"d": "1", "first": "1"}
			r.write(want)
		case "linked":
			want = map[string]string{"d": "-> " + outside, "first": "1"}
			r.write(want)
		default:
			r.write(want)
		}
		r.change("first", "1", "2")
		r.change("d/f", tc.base, tc.theirs)
		r.change("zlast", "", "new")
		r.fails(r.apply(), "apply_conflict", `"d/f"`, tc.says)
		r.has(want)
		if b, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(b) != text {
			t.Errorf("the file outside: %q, %v", b, err)
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestApplyNamesFewConflicts(t *testing.T) {
	t.Parallel()
	r := newResult(t, nil)
	for _, n := range "abcdefghijklm" {
		r.write(map[string]string{string(n): "mine"})
		r.change(string(n), "", "theirs")
	}
	r.fails(r.apply(), "apply_conflict", `"a" was`, `"j" was`, "and 3 more")
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"up": "../x", "absolute": "/x", "git": ".git/hooks/pre-commit", "nested git": "a/.Git/config"} {
		r := newResult(t, nil)
		r.change("a first", "", "1")
		r.change(path, "", "evil")
		if err := r.apply(); !kernel.IsKind(err, kernel.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
		r.has(map[string]string{})
	}
	r := newResult(t, nil)
	r.change("a", "", "1")
	r.must(os.Remove(r.dir))
	r.fails(r.apply(), "workspace_missing", r.dir)
	r.snap.Workspace.Kind = "none"
	r.fails(r.apply(), "workspace_missing")
	r.must(os.WriteFile(r.dir, nil, 0o600))
	r.snap.Workspace.Kind = "folder"
	r.fails(r.apply(), "workspace_unreadable", r.dir)

	v := r.verdict()
	v.Snapshot = kernel.Sum([]byte("another"))
	if _, err := commit.Apply(r.mem, shell{}).Run(t.Context(), r.env(1), v); !kernel.IsKind(err, kernel.Invalid) {
		t.Errorf("a candidate of another snapshot: %v", err)
	}
}

// Without files there is nothing to apply, and attempts are recorded as ever.
func TestApplyNothing(t *testing.T) {
	t.Parallel()
	r := newResult(t, nil)
	for name, stage := range map[string]kernel.Commit{"apply": commit.Apply(r.mem, shell{}), "git": commit.Git(r.mem, shell{})} {
		for _, v := range []kernel.Verdict{r.verdict(), {Version: 1, Scope: "run", Run: "run_1"}} {
			res, err := stage.Run(t.Context(), r.env(1), v)
			want, _ := commit.Record(r.mem).Run(t.Context(), r.env(1), v)
			if err != nil || res.Target != "record" || res.Content != want.Content || res.Commit != want.Commit {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
		if res, err := stage.Run(t.Context(), r.env(1), r.world.verdict("Hello", "completed")); err != nil || res.Message == nil {
			t.Errorf("%s: an attempt: %+v, %v", name, res, err)
		}
	}
	if len(r.messages()) != 1 {
		t.Errorf("%d messages", len(r.messages()))
	}
}

// A fault at every read of the store, be it before the first write or between two:
// each file is old or new, and the next try finishes.
func TestApplyAfterFaults(t *testing.T) {
	t.Parallel()
	old := map[string]string{"a": text, "b": text, "c": "1", "l": "-> a", "d/x": "1", "f": "1"}
	want := map[string]string{"a": both, "b": crlf(top), "c*": "2", "l": "-> b", "d": "now a file", "f/x": "now a folder", "n": "new"}
	boom := errors.New("boom")
	for n := 1; ; n++ {
		r := newResult(t, old)
		r.write(map[string]string{"a": bottom, "b": crlf(text)})
		r.change("a", text, top)
		r.change("b", text, top)
		r.change("c*", "1", "2")
		r.change("l", "-> a", "-> b")
		r.change("d/x", "1", "")
		r.change("d", "", "now a file")
		r.change("f", "1", "")
		r.change("f/x", "", "now a folder")
		r.change("n", "", "new")
		v, faults := r.verdict(), kerneltest.NewFaults()
		faults.Fail("Get", n, boom)
		env := r.env(1)
		env.Packs = faults.Packs(r.mem)
		_, err := commit.Apply(r.mem, shell{}).Run(t.Context(), env, v)
		if err == nil {
			if n < 8 {
				t.Fatalf("only %d reads of the store", n-1)
			}
			r.has(want)
			return
		}
		if !errors.Is(err, boom) {
			t.Fatalf("fault %d: %v", n, err)
		}
		for name, texts := range map[string][]string{"a": {bottom, both}, "b": {crlf(text), crlf(top)}, "c": {"1", "2"}} {
			if b, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(b) != texts[0] && string(b) != texts[1] {
				t.Errorf("fault %d: %s is %q, %v", n, name, b, err)
			}
		}
		r.must(r.apply())
		r.has(want)
	}
}

// What a crash leaves beside a file is taken away by the next try.
func TestApplySweeps(t *testing.T) {
	t.Parallel()
	r := newResult(t, map[string]string{"d/a": "1"})
	r.change("d/a", "1", "2")
	r.must(r.apply())
	sum := kernel.SumDomain("apply/1", []byte("run_1"), []byte{0}, []byte("d/a"))
	r.write(map[string]string{"d/a": "1", "d/.tmp-witan-" + sum.String()[7:23]: "-> a"})
	r.must(r.apply())
	r.has(map[string]string{"d/a": "2"})
}

// meddling is a store of whose nth read the person hears.
type meddling struct {
	kernel.Packs
	left   int
	meddle func()
}

func (m *meddling) Get(ctx context.Context, h kernel.Digest) ([]byte, error) {
	if m.left--; m.left == 0 {
		m.meddle()
	}
	return m.Packs.Get(ctx, h)
}

// What the person does while files are written is not written over.
func TestApplyWhileThePersonWorks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		does, want map[string]string
	}{
		"edits":     {map[string]string{"d/e/z": "person"}, map[string]string{"a": "2", "d/e/n": "2", "d/e/z": "person"}},
		"adds":      {map[string]string{"d/e/n": "person"}, map[string]string{"a": "2", "d/e/z": "1", "d/e/n": "person"}},
		"deletes":   {map[string]string{"d/e/z": "gone"}, map[string]string{"a": "2", "d/e/n": "2"}},
		"redirects": {map[string]string{"e/z": "1", "d": "-> ."}, map[string]string{"a": "2", "e/z": "1", "d": "-> ."}},
	} {
		r := newResult(t, map[string]string{"a": "1", "d/e/z": "1"})
		r.change("a", "1", "2")
		r.change("d/e/n", "", "2")
		r.change("d/e/z", "1", "2")
		v, env := r.verdict(), r.env(1)
		env.Packs = &meddling{r.mem, 3, func() { r.write(tc.does) }} // candidate, snapshot, content of a
		_, err := commit.Apply(r.mem, shell{}).Run(t.Context(), env, v)
		f, ok := errors.AsType[*kernel.Failure](err)
		if !ok || f.Reason != "apply_conflict" || !f.Effects || !strings.Contains(f.Text, "right now") {
			t.Errorf("%s: %v", name, err)
		}
		r.has(tc.want)
	}
}
