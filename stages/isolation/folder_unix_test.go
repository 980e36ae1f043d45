//go:build unix

package isolation_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"witan/kernel"
	"witan/kernel/tree"
)

// What cannot be read or is no file is a change, but never a deletion, and no part
// of a candidate.
func TestWhatCannotBeReadIsNotDeleted(t *testing.T) {
	t.Parallel()
	base := map[string]string{"large": "1", "pipe": "1", "other": "1"}
	git, folder := newRepo(t, base), newWorld(t)
	folder.write(folder.dir, base)
	for _, w := range []*world{git, folder} {
		w.write(w.dir, map[string]string{"kept large": ""})
		w.must(os.Truncate(filepath.Join(w.dir, "kept large"), tree.MaxFile+1))
		for _, how := range []func(*kernel.Turn){func(*kernel.Turn) {}, inPlace} {
			snap := w.freezeWithout("kept large")
			pl := w.open(snap, how)
			w.must(os.Truncate(filepath.Join(pl.Dir, "large"), tree.MaxFile+1))
			w.must(os.Remove(filepath.Join(pl.Dir, "pipe")))
			w.must(syscall.Mkfifo(filepath.Join(pl.Dir, "pipe"), 0o600))
			w.write(pl.Dir, map[string]string{"other": "2"})
			_, files, changes := w.capture(pl)
			w.list(files, "other modified")
			w.list(changes, "large modified", "other modified", "pipe modified")
			w.close(pl)
			w.nothingLeft()
		}
	}
}

// freezeWithout is freeze with a file named as skipped.
func (w *world) freezeWithout(name string) kernel.Snapshot {
	w.t.Helper()
	from, to := filepath.Join(w.dir, name), filepath.Join(w.home, "aside")
	w.must(os.Rename(from, to))
	s := w.freeze("")
	w.must(os.Rename(to, from))
	s.Workspace.Skipped = []kernel.Skipped{{Path: name, Reason: "too_large"}}
	return s
}

// Nothing is unreadable for root, who therefore lets somebody else run the test.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		asNobody(t)
		return
	}
	w := newWorld(t)
	w.write(w.dir, map[string]string{"d/a": "1", "b": "1"})
	pl := w.open(w.freeze(""))
	w.must(os.Chmod(filepath.Join(pl.Dir, "d"), 0))
	w.must(os.Chmod(filepath.Join(pl.Dir, "b"), 0))
	w.write(pl.Dir, map[string]string{"r\xff/o": "1"})
	w.must(os.Chmod(filepath.Join(pl.Dir, "r\xff"), 0o555))
	_, files, changes := w.capture(pl)
	w.list(files, "r\uf7ff/o added")
	w.list(changes, "b modified", "d/a modified", "r\uf7ff/o added")
	w.close(pl)
	w.nothingLeft()
}

func asNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "nobody-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "test")
	// Copied by another process: a descriptor of ours that may write it would be in
	// what parallel tests fork, and a file that is open for writing is not started.
	if out, err := exec.Command("cp", self, exe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := errors.Join(os.Chmod(exe, 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestUnreadable$", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestUnreadable") {
		t.Errorf("%v\n%s", err, out)
	}
}
