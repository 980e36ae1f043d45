package isolation_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/kernel/tree"
	"witan/stages/isolation"
)

// shell is a kernel.Runner without supervision.
type shell struct{}

func (shell) Run(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, bytes.NewReader(c.Stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return kernel.CommandResult{}, kernel.E("shell", kernel.NotFound, err, "cannot start")
	}
	return kernel.CommandResult{Exit: cmd.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: errs.Bytes()}, nil
}

// world is a workspace with a store and places.
type world struct {
	t      *testing.T
	dir    string // the workspace
	packs  *kerneltest.Mem
	places *isolation.Places
	home   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: filepath.Join(base, "ws"), packs: kerneltest.NewMem(), home: base}
	w.must(os.Mkdir(w.dir, 0o755))
	w.places = &isolation.Places{Root: filepath.Join(base, "data", "places"), Run: shell{}, Packs: w.packs}
	return w
}

// newRepo is a repository with one commit of files.
func newRepo(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := newWorld(t)
	w.git("init", "-q", "-b", "trunk")
	w.write(w.dir, files)
	if len(files) > 0 {
		w.git("add", "-A")
		w.git("commit", "-q", "-m", "first")
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) git(args ...string) string { w.t.Helper(); return w.gitIn(w.dir, args...) }

func (w *world) gitIn(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// write makes files; a text "-> x" is a link to x, a name that ends with * an executable.
func (w *world) write(dir string, files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		name, exe := strings.CutSuffix(name, "*")
		p := filepath.Join(dir, filepath.FromSlash(name))
		w.must(os.MkdirAll(filepath.Dir(p), 0o755))
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			w.must(os.Symlink(target, p))
			continue
		}
		mode := fs.FileMode(0o644)
		if exe {
			mode = 0o755
		}
		w.must(os.WriteFile(p, []byte(text), mode))
		w.must(os.Chmod(p, mode))
	}
}

func (w *world) put(b string) kernel.Digest {
	w.t.Helper()
	d, err := w.packs.Put(context.Background(), "blob", []byte(b))
	w.must(err)
	return d
}

// look is a file as a snapshot has it.
func (w *world) look(p string) (d kernel.Digest, mode string, size int64) {
	w.t.Helper()
	fi, err := os.Lstat(p)
	w.must(err)
	if fi.Mode()&fs.ModeSymlink != 0 {
		l, err := os.Readlink(p)
		w.must(err)
		return w.put(l), "link", int64(len(l))
	}
	b, err := os.ReadFile(p)
	w.must(err)
	mode = "0644"
	if fi.Mode()&0o100 != 0 {
		mode = "0755"
	}
	return w.put(string(b)), mode, fi.Size()
}

// freeze is the snapshot of the workspace, at sub below the top of its repository.
func (w *world) freeze(sub string) kernel.Snapshot {
	w.t.Helper()
	ws := kernel.Workspace{Kind: "git", Path: filepath.Join(w.dir, sub), Sub: tree.EncodePath(sub)}
	if _, err := os.Stat(filepath.Join(w.dir, ".git")); err != nil {
		ws.Kind, ws.Tree = "folder", w.tree(w.dir)
		return kernel.Snapshot{Version: 1, Workspace: ws}
	}
	if out, err := exec.Command("git", "-C", w.dir, "rev-parse", "HEAD").Output(); err == nil {
		ws.Commit = strings.TrimSpace(string(out))
	}
	out := w.git("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
	for rec := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if rec == "" || strings.HasSuffix(rec, "/") {
			continue
		}
		d := kernel.DirtyFile{Path: tree.EncodePath(rec[3:]), Status: "modified"}
		if strings.HasPrefix(rec, "??") {
			d.Status = "untracked"
		}
		p := filepath.Join(w.dir, rec[3:])
		if _, err := os.Lstat(p); err != nil {
			d.Status = "deleted"
		} else {
			d.Hash, d.Mode, d.Bytes = w.look(p)
		}
		ws.Dirty = append(ws.Dirty, d)
	}
	slices.SortFunc(ws.Dirty, func(a, b kernel.DirtyFile) int { return strings.Compare(a.Path, b.Path) })
	return kernel.Snapshot{Version: 1, Workspace: ws}
}

func (w *world) tree(dir string) kernel.Digest {
	w.t.Helper()
	names, err := os.ReadDir(dir)
	w.must(err)
	var es []tree.Entry
	for _, n := range names {
		p := filepath.Join(dir, n.Name())
		e := tree.Entry{Name: n.Name(), Type: tree.Dir}
		if n.IsDir() {
			e.Hash = w.tree(p)
		} else if n.Type().IsRegular() || n.Type() == fs.ModeSymlink {
			var mode string
			e.Hash, mode, e.Size = w.look(p)
			e.Type = tree.TypeOf(mode)
		} else {
			continue
		}
		es = append(es, e)
	}
	return w.put(string(tree.Encode(nil, es)))
}

// open opens a place for a turn of the snapshot.
func (w *world) open(snap kernel.Snapshot, change ...func(*kernel.Turn)) *isolation.Place {
	w.t.Helper()
	pl, err := w.tryOpen(snap, change...)
	w.must(err)
	return pl
}

func (w *world) tryOpen(snap kernel.Snapshot, change ...func(*kernel.Turn)) (*isolation.Place, error) {
	w.t.Helper()
	d, err := kernel.PutObject(context.Background(), w.packs, "snapshot", snap)
	w.must(err)
	t := kernel.Turn{Version: 1, Run: "run_1", Agent: "alpha", Write: true, Snapshot: d}
	for _, c := range change {
		c(&t)
	}
	return w.places.Open(context.Background(), t, snap)
}

func inPlace(t *kernel.Turn) { t.InPlace = true }
func reader(t *kernel.Turn)  { t.Write = false }
func from(d kernel.Digest) func(*kernel.Turn) {
	return func(t *kernel.Turn) { t.Candidate = d }
}

// capture returns the candidate as "path what", and the changes of the turn likewise.
func (w *world) capture(pl *isolation.Place) (d kernel.Digest, files, changes []string) {
	w.t.Helper()
	d, c, ch, err := pl.Capture(context.Background())
	w.must(err)
	stored, err := kernel.GetObject[kernel.Candidate](context.Background(), w.packs, d)
	w.must(err)
	if a, _ := kernel.Canonical(stored); kernel.Sum(a) != d || len(stored.Files) != len(c.Files) {
		w.t.Errorf("what was stored is not what was told: %+v, %+v", stored, c)
	}
	for _, f := range c.Files {
		for _, d := range []kernel.Digest{f.Base, f.Hash} {
			if _, err := w.packs.Get(context.Background(), d); !d.IsZero() && err != nil {
				w.t.Errorf("%s: content %s is not stored: %v", f.Path, d, err)
			}
		}
		if (f.What == "added") != f.Base.IsZero() || (f.What == "deleted") != f.Hash.IsZero() {
			w.t.Errorf("%+v", f)
		}
		files = append(files, f.Path+" "+f.What)
	}
	for _, x := range ch {
		changes = append(changes, x.Path+" "+x.What)
	}
	return d, files, changes
}

func (w *world) close(pl *isolation.Place) {
	w.t.Helper()
	w.must(pl.Close(context.Background()))
}

// content is what is below dir, without git's folder.
func (w *world) content(dir string) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	w.must(filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return filepath.SkipDir
		case d.IsDir() || d.Name() == ".git":
			return nil
		case d.Type() == fs.ModeSymlink:
			l, err := os.Readlink(p)
			out[rel] = "-> " + l
			return err
		case !d.Type().IsRegular():
			out[rel] = "special"
			return nil
		}
		b, err := os.ReadFile(p)
		fi, ferr := d.Info()
		if ferr == nil && fi.Mode()&0o100 != 0 {
			rel += "*"
		}
		out[rel] = string(b)
		return errors.Join(err, ferr)
	}))
	return out
}

func (w *world) equal(got, want map[string]string) {
	w.t.Helper()
	for name, text := range want {
		if g, ok := got[name]; !ok || g != text {
			w.t.Errorf("%q is %q, want %q", name, g, text)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			w.t.Errorf("%q is there", name)
		}
	}
}

func (w *world) list(got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("got  %q\nwant %q", got, want)
	}
}

// nothingLeft fails when the root or the repository still has a place.
func (w *world) nothingLeft() {
	w.t.Helper()
	left, err := os.ReadDir(w.places.Root)
	if err != nil && !os.IsNotExist(err) || len(left) > 0 {
		w.t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, ".git")); err == nil {
		if out := w.git("worktree", "list", "--porcelain"); strings.Count(out, "worktree ") != 1 {
			w.t.Errorf("git still has\n%s", out)
		}
	}
}
