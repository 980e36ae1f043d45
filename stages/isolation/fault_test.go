package isolation_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"witan/kernel"
	"witan/stages/isolation"
)

// dying is a runner of a host that dies at its nth call: that one may still run, and
// none after it.
type dying struct {
	mu    sync.Mutex
	n     int
	last  bool // the nth runs, and nobody hears of it
	calls int
}

func (d *dying) Run(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
	d.mu.Lock()
	d.calls++
	n := d.calls
	d.mu.Unlock()
	if n < d.n || n == d.n && d.last {
		r, err := shell{}.Run(ctx, c)
		if n < d.n {
			return r, err
		}
	}
	return kernel.CommandResult{}, kernel.E("dying", kernel.Interrupted, nil, "the host is gone")
}

// The host dies at every call of git in Open: what is left goes away without a trace.
func TestOpenCutOff(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	w.write(w.dir, map[string]string{"a.txt": "person"})
	snap, status := w.freeze(""), w.git("status", "--porcelain")
	for n := 1; ; n++ {
		for _, last := range []bool{false, true} {
			d := &dying{n: n, last: last}
			w.places.Run = d
			pl, err := w.tryOpen(snap)
			w.places.Run = shell{}
			if err == nil {
				if n < 6 {
					t.Fatalf("only %d calls", d.calls)
				}
				w.close(pl)
				w.nothingLeft()
				return
			}
			if !kernel.IsKind(err, kernel.Interrupted) {
				t.Errorf("call %d: %v", n, err)
			}
			for _, l := range w.leftovers() {
				if kept := w.remove(l); kept != "" {
					t.Errorf("call %d: kept %q", n, kept)
				}
			}
			w.nothingLeft()
		}
		if got := w.git("status", "--porcelain"); got != status {
			t.Fatalf("call %d: the workspace is %q", n, got)
		}
	}
}

// The host dies at every call of git in Close: the work is kept once, or still there.
func TestCloseCutOff(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	snap := w.freeze("")
	for n := 1; ; n++ {
		for _, last := range []bool{false, true} {
			pl := w.open(snap)
			w.write(pl.Dir, map[string]string{"a.txt": "agent"})
			w.gitIn(pl.Dir, "commit", "-q", "--allow-empty", "-m", "by the agent")
			d := &dying{n: n, last: last}
			w.places.Run = d
			err := pl.Close(t.Context())
			w.places.Run = shell{}
			if err == nil && d.calls < n {
				if n < 8 {
					t.Fatalf("only %d calls", d.calls)
				}
				return
			}
			for _, l := range w.leftovers() {
				w.remove(l)
			}
			refs := w.git("for-each-ref", "--format=%(refname)", "refs/witan/kept/"+filepath.Base(pl.Dir))
			moved, _ := filepath.Glob(filepath.Join(w.places.Root, "kept", filepath.Base(pl.Dir), "a.txt"))
			switch {
			case len(moved) == 1:
				if got := w.content(filepath.Dir(moved[0]))["a.txt"]; got != "agent" {
					t.Errorf("call %d: kept %q", n, got)
				}
			case refs == "" || w.git("show", refs+":a.txt") != "agent":
				t.Errorf("call %d: the work is lost: %q", n, refs)
			}
			if refs == "" || !strings.Contains(w.git("log", "--format=%s", refs), "by the agent") {
				t.Errorf("call %d: the commit is lost", n)
			}
			if out := w.git("worktree", "list", "--porcelain"); strings.Count(out, "worktree ") != 1 || len(w.leftovers()) > 0 {
				t.Errorf("call %d: git still has\n%s", n, out)
			}
		}
	}
}

// Members of a council get their places at the same time.
func TestPlacesAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	snap := w.freeze("")
	d, err := kernel.PutObject(t.Context(), w.packs, "snapshot", snap)
	w.must(err)
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		places := &isolation.Places{Root: w.places.Root, Run: shell{}, Packs: w.packs} // nothing but the repository is shared
		wg.Go(func() {
			pl, err := places.Open(t.Context(), kernel.Turn{Version: 1, Run: "run_1", Write: true, Snapshot: d}, snap)
			if err == nil {
				_, _, _, err = pl.Capture(t.Context())
			}
			if err == nil {
				err = pl.Close(t.Context())
			}
			if err == nil {
				_, err = places.Leftovers(t.Context(), nil)
			}
			errs <- err
		})
	}
	wg.Wait()
	for range cap(errs) {
		w.must(<-errs)
	}
	w.nothingLeft()
}

// The person's own folder may be a worktree or a submodule itself.
func TestWorkspaceIsAWorktreeOrSubmodule(t *testing.T) {
	t.Parallel()
	w := newRepo(t, project)
	lib := newRepo(t, map[string]string{"a.txt": "lib"})
	w.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", lib.dir, "lib")
	linked := filepath.Join(w.home, "linked")
	w.git("worktree", "add", "-q", "-b", "other", linked)
	for _, dir := range []string{linked, filepath.Join(w.dir, "lib")} {
		in := *w
		in.dir = dir
		snap := in.freeze("")
		snap.Workspace.Commit = in.git("rev-parse", "HEAD")
		pl := in.open(snap)
		if pl.How != isolation.Worktree {
			t.Errorf("%+v", pl)
		}
		in.write(pl.Dir, map[string]string{"a.txt": "agent"})
		_, files, _ := in.capture(pl)
		in.list(files, "a.txt modified")
		in.close(pl)
		if out := in.git("worktree", "list", "--porcelain"); strings.Contains(out, in.places.Root) || in.git("status", "--porcelain") != "" {
			t.Errorf("git still has\n%s", out)
		}
		pl = in.open(snap, inPlace)
		in.write(dir, map[string]string{"a.txt": "agent"})
		_, files, _ = in.capture(pl)
		in.list(files, "a.txt modified")
		in.close(pl)
	}
}
