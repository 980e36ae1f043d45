package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
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

// do lets one agent do all steps in one turn and returns its line about each.
func do(t *testing.T, w *invoketest.World, steps []invoketest.Step, change ...func(*kernel.Turn)) []string {
	t.Helper()
	got := strings.Split(strings.TrimSuffix(w.Good(t, host(t, w, invoketest.Steps(steps...)), w.Request("x", change...)), "\n"), "\n")
	if len(got) != len(steps) {
		t.Fatalf("%q", got)
	}
	return got
}

func TestReadFile(t *testing.T) {
	w := invoketest.NewWorld(t)
	outside := lay(t, w)
	paths := [][2]string{
		{filepath.Join(w.Workspace, "a.txt"), `{"content":"one\ntwo\nthree\n"}`},
		{"a.txt", `{"content":"one\ntwo\nthree\n"}`},
		{"in", `{"content":"one\ntwo\nthree\n"}`},
		{"bad", `{"content":"x` + "\uFFFD" + `y"}`},
		{"out", "outside of the workspace"},
		{"up", "outside of the workspace"},
		{outside, "outside of the workspace"},
		{"../outside", "outside of the workspace"},
		{"no-such", "no such file"},
		{".", "no regular file"},
	}
	var steps []invoketest.Step
	for _, p := range paths {
		steps = append(steps, invoketest.Step{"open": p[0]})
	}
	for i, got := range do(t, w, steps) {
		if !strings.Contains(got, paths[i][1]) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s", paths[i][0], got)
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
	save := func(path string) invoketest.Step {
		return invoketest.Step{"save": map[string]any{"path": path, "text": "written"}}
	}
	if got := do(t, w, []invoketest.Step{save("a.txt")}); !strings.Contains(got[0], "read-only") {
		t.Error(got)
	}
	if b, _ := os.ReadFile(filepath.Join(w.Workspace, "a.txt")); string(b) != "one\ntwo\nthree\n" {
		t.Errorf("a read-only turn wrote %q", b)
	}
	good := []string{"a.txt", "deep/er/new.txt", "b.txt"}
	bad := []string{"out", "up", "new", outside, "../made", "."}
	steps := []invoketest.Step{save(good[0]), save(good[1]), save(filepath.Join(w.Workspace, good[2]))}
	for _, p := range bad {
		steps = append(steps, save(p))
	}
	said := do(t, w, steps, invoketest.Write)
	for i, p := range good {
		if b, err := os.ReadFile(filepath.Join(w.Workspace, p)); string(b) != "written" {
			t.Errorf("%s: %q %v: %s", p, b, err, said[i])
		}
	}
	for i, p := range bad {
		if got := said[len(good)+i]; !strings.Contains(got, `"code":-32602`) {
			t.Errorf("%s: %s", p, got)
		}
	}
	if b, _ := os.ReadFile(outside); string(b) != "secret" {
		t.Errorf("outside is %q", b)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(outside), "made")); err == nil {
		t.Error("a file was made outside of the workspace")
	}
}
