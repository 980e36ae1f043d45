package commit_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"witan/kernel"
	"witan/stages/commit"
)

// dying is a store of a process that dies at its nth read, without another word.
type dying struct {
	kernel.Packs
	left int
}

func (d *dying) Get(ctx context.Context, h kernel.Digest) ([]byte, error) {
	if d.left--; d.left == 0 {
		os.Exit(9)
	}
	return d.Packs.Get(ctx, h)
}

func crashing(t *testing.T, dir string) *result {
	t.Helper()
	r := newResult(t, nil)
	r.dir, r.snap.Workspace.Path = dir, dir
	r.change("a", text, top)
	r.change("b*", "1", "2")
	r.change("d/x", "1", "")
	r.change("d", "", "now a file")
	r.change("l", "", "-> a")
	r.change("n/n", "", "new")
	return r
}

// The process dies at every read of the store: no file is half written, and the next
// try leaves nothing behind.
func TestApplyAfterACrash(t *testing.T) {
	if at, err := strconv.Atoi(os.Getenv("WITAN_TEST_CRASH_AT")); err == nil {
		r := crashing(t, os.Getenv("WITAN_TEST_CRASH_DIR"))
		v, env := r.verdict(), r.env(1)
		env.Packs = &dying{r.mem, at}
		_, err := commit.Apply(r.mem, shell{}).Run(t.Context(), env, v)
		r.must(err)
		return
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		dir := filepath.Join(t.TempDir(), "ws")
		r := crashing(t, dir)
		r.must(os.Mkdir(dir, 0o755))
		r.write(map[string]string{"a": bottom, "b": "1", "d/x": "1", "mine": "mine"})
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestApplyAfterACrash$")
		cmd.Env = append(os.Environ(), "WITAN_TEST_CRASH_AT="+strconv.Itoa(n), "WITAN_TEST_CRASH_DIR="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState.ExitCode() != 9 {
			t.Fatalf("%v\n%s", err, out)
		}
		if a, aerr := os.ReadFile(filepath.Join(dir, "a")); aerr != nil || string(a) != bottom && string(a) != both {
			t.Errorf("read %d: a is %q, %v", n, a, aerr)
		}
		r.must(r.apply())
		r.has(map[string]string{"a": both, "b*": "2", "d": "now a file", "l": "-> a", "n/n": "new", "mine": "mine"})
		if err == nil {
			if n < 8 {
				t.Errorf("only %d reads", n-1)
			}
			return
		}
	}
}
