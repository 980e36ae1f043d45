package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/stages/invoke/invoketest"
)

// lay puts files and links into the workspace, and a secret outside of it.
func lay(t *testing.T, w *invoketest.World) (outside string) {
	t.Helper()
	outside = filepath.Join(filepath.Dir(w.Workspace), "outside")
	for name, text := range map[string]string{outside: "secret", filepath.Join(w.Workspace, "a.txt"): "one\ntwo\nthree\n", filepath.Join(w.Workspace, "bad"): "x\xffy"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"in": "a.txt", "out": outside, "up": "../outside", "new": filepath.Join(filepath.Dir(outside), "made")} {
		if err := os.Symlink(to, filepath.Join(w.Workspace, link)); err != nil {
			t.Fatal(err)
		}
	}
	return outside
}

func TestReadFile(t *testing.T) {
	w := invoketest.NewWorld(t)
	outside := lay(t, w)
	for path, want := range map[string]string{
		filepath.Join(w.Workspace, "a.txt"): `{"content":"one\ntwo\nthree\n"}`,
		"a.txt":                             `{"content":"one\ntwo\nthree\n"}`,
		"in":                                `{"content":"one\ntwo\nthree\n"}`,
		"bad":                               `{"content":"x` + "\uFFFD" + `y"}`,
		"out":                               "outside of the workspace",
		"up":                                "outside of the workspace",
		outside:                             "outside of the workspace",
		"../outside":                        "outside of the workspace",
		"no-such":                           "no such file",
		".":                                 "no regular file",
	} {
		a := host(t, w, invoketest.Steps(invoketest.Step{"open": path}))
		if got := w.Good(t, a, w.Request("x")); !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestLines(t *testing.T) {
	for _, tc := range []struct {
		line, limit int
		want        string
	}{{0, 0, "a\nb\nc"}, {1, 0, "a\nb\nc"}, {2, 0, "b\nc"}, {2, 1, "b\n"}, {0, 1, "a\n"}, {9, 1, ""}, {-1, 2, "a\nb\n"}} {
		if got := lines("a\nb\nc", tc.line, tc.limit); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

func TestWriteFile(t *testing.T) {
	w := invoketest.NewWorld(t)
	outside := lay(t, w)
	save := func(path string, write bool) string {
		t.Helper()
		a := host(t, w, invoketest.Steps(invoketest.Step{"save": map[string]any{"path": path, "text": "written"}}))
		if write {
			return w.Good(t, a, w.Request("x", invoketest.Write))
		}
		return w.Good(t, a, w.Request("x"))
	}
	if got := save("a.txt", false); !strings.Contains(got, "read-only") {
		t.Error(got)
	}
	if b, _ := os.ReadFile(filepath.Join(w.Workspace, "a.txt")); string(b) != "one\ntwo\nthree\n" {
		t.Errorf("a read-only turn wrote %q", b)
	}
	for _, path := range []string{"a.txt", "deep/er/new.txt", filepath.Join(w.Workspace, "b.txt")} {
		got := save(path, true)
		if !filepath.IsAbs(path) {
			path = filepath.Join(w.Workspace, path)
		}
		if b, err := os.ReadFile(path); string(b) != "written" {
			t.Errorf("%s: %q %v: %s", path, b, err, got)
		}
	}
	for _, path := range []string{"out", "up", "new", outside, "../made", "."} {
		if got := save(path, true); !strings.Contains(got, "-32602") && !strings.Contains(got, "outside") && !strings.Contains(got, "regular") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if b, _ := os.ReadFile(outside); string(b) != "secret" {
		t.Errorf("outside is %q", b)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(outside), "made")); err == nil {
		t.Error("a file was made outside of the workspace")
	}
}
