package freeze_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/kernel/tree"
)

var goProject = map[string]string{
	"go.mod": "module x\n", "main.go": "package main\n\nfunc main() {}\n", "internal/a/a.go": "package a\n", "internal/b/b.go": "package b\n",
	"README.md": "# x\n", "empty": "", "node_modules/left-pad/index.js": "module.exports = 1\n",
}

// What was frozen is what comes back, and freezing that gives the same hash.
func TestFolderComesBack(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"a\nb": "newline", "\xff\xfe.txt": "no UTF-8", "\uF7FFx": "private", "dir\xff/deep/er": "1", "CASE": "1", "case": "2", "-rf": "x", "日本": "語"}
	for k, v := range goProject {
		files[k] = v
	}
	files["large.bin"] = string(kerneltest.Random(1, 3<<20))
	w.write(files)
	w.must(errors.Join(os.Chmod(w.path("empty"), 0o755), os.Symlink("main.go", w.path("link")), os.Symlink("/nowhere/at all", w.path("dangling")), os.Mkdir(w.path("none"), 0o755)))
	ws := w.freeze("")
	if ws.Kind != "folder" || ws.Files != len(files)+2 || len(ws.Skipped) > 0 {
		t.Errorf("%+v", ws)
	}
	want := content(t, w.dir)
	w.equal(w.back(ws), want)
	if want["link"] != "l:main.go" || want["empty"] != "x:" {
		t.Errorf("the test's own folder is wrong: %q", want)
	}
	other := newWorld(t)
	_, err := tree.Materialise(ctx, nil, w.mem, ws, other.dir)
	w.must(err)
	if again := other.freeze(""); again.Tree != ws.Tree || again.Files != ws.Files || again.Bytes != ws.Bytes {
		t.Errorf("the copy is %+v, the original %+v", again, ws)
	}
}

func TestUnchangedReadsNothing(t *testing.T) {
	w := newWorld(t)
	w.write(goProject)
	w.must(os.Symlink("main.go", w.path("link")))
	first := w.freeze("")
	if n := w.disk.reads(); n != len(goProject) {
		t.Fatalf("%d reads of %d files", n, len(goProject))
	}
	w.disk.reset()
	w.same(w.freeze(""), first)
	if n := w.disk.reads(); n != 0 {
		t.Fatalf("%d files of an unchanged folder were read: %v", n, w.disk.read)
	}
	// One change: one read.
	w.write(map[string]string{"internal/a/a.go": "package b\n"})
	second := w.freeze("")
	if w.disk.reads() != 1 || w.disk.read["internal/a/a.go"] != 1 || second.Tree == first.Tree {
		t.Fatalf("after a change: %v", w.disk.read)
	}
	w.equal(w.back(second), content(t, w.dir))
	for name, change := range map[string]func() error{
		"added":   func() error { return os.WriteFile(w.path("internal", "new"), []byte("x"), 0o644) },
		"removed": func() error { return os.Remove(w.path("README.md")) },
		"renamed": func() error { return os.Rename(w.path("internal", "b"), w.path("internal", "c")) },
		"moved":   func() error { return os.Rename(w.path("go.mod"), w.path("internal", "go.mod")) },
		"mode":    func() error { return os.Chmod(w.path("main.go"), 0o755) },
		"link":    func() error { return errors.Join(os.Remove(w.path("link")), os.Symlink("go.mod", w.path("link"))) },
		"now file": func() error {
			return errors.Join(os.RemoveAll(w.path("internal", "a")), os.WriteFile(w.path("internal", "a"), nil, 0o644))
		},
		"swapped": func() error {
			return errors.Join(os.Rename(w.path("empty"), w.path("t")), os.Rename(w.path("main.go"), w.path("empty")), os.Rename(w.path("t"), w.path("main.go")))
		},
	} {
		w.must(change())
		w.equal(w.back(w.freeze("")), content(t, w.dir))
		if t.Failed() {
			t.Fatalf("after %s", name)
		}
	}
}

// A byte that changed while size and time were put back still has another change time.
func TestSameSizeAndTime(t *testing.T) {
	w := newWorld(t)
	w.write(goProject)
	first := w.freeze("")
	fi, err := os.Stat(w.path("main.go"))
	w.must(err)
	w.must(os.WriteFile(w.path("main.go"), []byte(strings.Replace(goProject["main.go"], "main()", "niam()", 1)), 0o644))
	w.must(os.Chtimes(w.path("main.go"), fi.ModTime(), fi.ModTime()))
	if now, err := os.Stat(w.path("main.go")); err != nil || now.Size() != fi.Size() || !now.ModTime().Equal(fi.ModTime()) {
		t.Fatalf("the test cannot put size and time back: %v", err)
	}
	second := w.freeze("")
	if second.Tree == first.Tree {
		t.Error("the change was not noticed")
	}
	w.equal(w.back(second), content(t, w.dir))
}

// A file as young as a tick of the clock may change again within the tick.
func TestYoungFilesAreReadAgain(t *testing.T) {
	w := newWorld(t)
	w.disk.age = 0
	w.write(goProject)
	first := w.freeze("")
	w.disk.reset()
	w.same(w.freeze(""), first)
	if n := w.disk.reads(); n != len(goProject) {
		t.Errorf("%d of %d young files were read again", n, len(goProject))
	}
}

func TestDeterminism(t *testing.T) {
	var first kernel.Workspace
	for i := range 5 {
		w := newWorld(t)
		w.write(goProject)
		ws := w.freeze("")
		ws.Path = ""
		if i == 0 {
			first = ws
		}
		w.same(ws, first)
	}
}

func TestSkipped(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{"a": "1", "locked/x": "1", "denied": "1", "sick": "1", "gone": "1", "big": strings.Repeat("x", 2<<20), "\xff/denied": "1"})
	w.must(syscall.Mkfifo(w.path("pipe"), 0o600))
	w.must(os.Symlink(".", w.path("loop")))
	w.must(os.Symlink("loop/loop2", w.path("loop2")))
	w.disk.broken["locked"], w.disk.broken["denied"], w.disk.broken["\xff/denied"] = true, true, true
	w.disk.reading["sick"] = func() bool { return true }
	deep := strings.Repeat("d/", tree.MaxDepth+3)
	w.must(os.MkdirAll(w.path(deep), 0o755))
	for range 2 { // also with a cache
		ws := w.freeze(`{"max_file_mib":1}`)
		want := []string{"big too_large", strings.Repeat("d/", tree.MaxDepth) + "d too_deep", "denied unreadable", "locked unreadable", "pipe special", "sick unreadable", "\uF7FF/denied unreadable"}
		if got := skipped(ws); !slices.Equal(got, want) {
			t.Errorf("skipped:\n%q\nwant\n%q", got, want)
		}
		w.equal(w.back(ws), map[string]string{"a": "1", "gone": "1", "loop": "l:.", "loop2": "l:loop/loop2"})
	}
	// What can be read again is there again.
	clear(w.disk.broken)
	clear(w.disk.reading)
	w.must(os.RemoveAll(w.path("d")))
	ws := w.freeze("")
	if got := skipped(ws); !slices.Equal(got, []string{"pipe special"}) {
		t.Errorf("skipped: %q", got)
	}
	w.equal(w.back(ws), content(t, w.dir))
}

func TestListingThatFails(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{"a/x": "1", "b/y": "1"})
	w.disk.broken["a/"] = true
	ws := w.freeze("")
	if got := skipped(ws); !slices.Equal(got, []string{"a unreadable"}) {
		t.Errorf("skipped: %q", got)
	}
	w.equal(w.back(ws), map[string]string{"b/y": "1"})
}

// A file that is written to while it is read is read again, and left out if
// that does not end.
func TestChangingFiles(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{"log": "0\n", "once": "old\n", "calm": "1"})
	n := 0
	w.disk.reading["log"] = func() bool {
		n++
		w.must(os.WriteFile(w.path("log"), []byte(strings.Repeat("x\n", n)), 0o644))
		return false
	}
	changed := false
	w.disk.reading["once"] = func() bool {
		if !changed {
			changed = true
			w.must(os.WriteFile(w.path("once"), []byte("newer\n"), 0o644))
		}
		return false
	}
	ws := w.freeze("")
	if got := skipped(ws); !slices.Equal(got, []string{"log changing"}) {
		t.Errorf("skipped: %q", got)
	}
	w.equal(w.back(ws), map[string]string{"once": "newer\n", "calm": "1"})
	delete(w.disk.reading, "log")
	w.equal(w.back(w.freeze("")), content(t, w.dir))
}

// A folder that somebody replaces by a link is not followed.
func TestFolderBecomesLink(t *testing.T) {
	w := newWorld(t)
	outside := t.TempDir()
	w.must(os.WriteFile(filepath.Join(outside, "secret"), []byte("mine"), 0o600))
	w.write(map[string]string{"a": "1", "z/x": "1"})
	w.disk.opening["z"] = func() {
		w.must(errors.Join(os.RemoveAll(w.path("z")), os.Symlink(outside, w.path("z"))))
	}
	ws := w.freeze("")
	if got := skipped(ws); !slices.Equal(got, []string{"z changing"}) {
		t.Errorf("skipped: %q", got)
	}
	w.equal(w.back(ws), map[string]string{"a": "1"})
}

// Neither is a file that somebody replaces by a link, nor waited for a pipe.
func TestFileBecomesSomethingElse(t *testing.T) {
	w := newWorld(t)
	secret := filepath.Join(t.TempDir(), "secret")
	w.must(os.WriteFile(secret, []byte("mine"), 0o600))
	w.write(map[string]string{"a/link": "1", "a/pipe": "1", "a/gone": "1", "b": "1"})
	w.disk.statting["a/link"] = func() { w.must(errors.Join(os.Remove(w.path("a/link")), os.Symlink(secret, w.path("a/link")))) }
	w.disk.statting["a/pipe"] = func() { w.must(errors.Join(os.Remove(w.path("a/pipe")), syscall.Mkfifo(w.path("a/pipe"), 0o600))) }
	w.disk.statting["a/gone"] = func() { w.must(os.Remove(w.path("a/gone"))) }
	ws := w.freeze("")
	if got := skipped(ws); !slices.Equal(got, []string{"a/pipe changing"}) {
		t.Errorf("skipped: %q", got)
	}
	w.equal(w.back(ws), map[string]string{"a/link": "l:" + secret, "b": "1"})
}

func TestHugeDirectoryAndFile(t *testing.T) {
	w := newWorld(t)
	const n = 20_000
	for i := range n {
		w.must(os.WriteFile(w.path(fmt.Sprintf("f%06d", i)), []byte{byte(i), byte(i >> 8)}, 0o644))
	}
	f, err := os.Create(w.path("huge"))
	w.must(err)
	w.must(errors.Join(f.Truncate(40<<20), f.Close()))
	ws := w.freeze("")
	if ws.Files != n+1 || ws.Bytes != 2*n+40<<20 {
		t.Errorf("%d files, %d bytes", ws.Files, ws.Bytes)
	}
	w.disk.reset()
	w.same(w.freeze(""), ws)
	if w.disk.reads() != 0 {
		t.Errorf("%d reads", w.disk.reads())
	}
	w.must(os.WriteFile(w.path("f000007"), []byte("other"), 0o644))
	if w.freeze("").Tree == ws.Tree || w.disk.reads() != 1 {
		t.Errorf("%d reads", w.disk.reads())
	}
}

func TestWorkspacesThatAreNone(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{"file": "1"})
	for reason, dir := range map[string]string{"workspace_missing": w.path("gone"), "workspace_not_folder": w.path("file")} {
		_, err := w.try(dir, "")
		wantFailure(t, err, reason)
	}
	w.must(os.Symlink(w.dir, w.path("to self")))
	if ws, err := w.try(w.path("to self"), ""); err != nil || ws.Files != 2 {
		t.Errorf("a workspace that is a link to a folder: %+v, %v", ws, err)
	}
	w.disk.broken["/"] = true
	_, err := w.try(w.dir, "")
	wantFailure(t, err, "workspace_unreadable")
	w.disk.broken[""] = true
	_, err = w.try(w.dir, "")
	wantFailure(t, err, "workspace_unreadable")
}

func TestEmptyFolder(t *testing.T) {
	w := newWorld(t)
	ws := w.freeze("")
	if ws.Kind != "folder" || ws.Files != 0 || ws.Tree.IsZero() {
		t.Errorf("%+v", ws)
	}
	w.same(w.freeze(""), ws)
	w.equal(w.back(ws), map[string]string{})
}

// The cache is never believed against the store, and never needed.
func TestCacheAndStore(t *testing.T) {
	w := newWorld(t)
	w.write(goProject)
	first := w.freeze("")
	for name, spoil := range map[string]func(b []byte) []byte{
		"empty":   func(b []byte) []byte { return nil },
		"cut":     func(b []byte) []byte { return b[:len(b)-3] },
		"noise":   func(b []byte) []byte { return kerneltest.Random(1, len(b)) },
		"other":   func(b []byte) []byte { return append([]byte("witan-stat-1\n"), b...) },
		"lengths": func(b []byte) []byte { b = slices.Clone(b); b[13] = 0xff; return b },
	} {
		b, err := w.mem.LoadStat(ctx, w.dir)
		w.must(err)
		w.must(w.mem.SaveStat(ctx, w.dir, spoil(b)))
		w.same(w.freeze(""), first)
		if t.Failed() {
			t.Fatalf("with a cache that is %s", name)
		}
	}
	// Another store has nothing of what the cache says.
	b, err := w.mem.LoadStat(ctx, w.dir)
	w.must(err)
	fresh := kerneltest.NewMem()
	w.must(fresh.SaveStat(ctx, w.dir, b))
	w.mem = fresh
	ws := w.freeze("")
	w.same(ws, first)
	w.equal(w.back(ws), content(t, w.dir))
	// The same with a change deep down, so that old nodes are asked for.
	fresh = kerneltest.NewMem()
	w.must(fresh.SaveStat(ctx, w.dir, b))
	w.mem = fresh
	w.write(map[string]string{"internal/a/a.go": "package changed\n"})
	w.equal(w.back(w.freeze("")), content(t, w.dir))
}

// Every call of the store may fail: then so does the stage, with that error, and
// the next freeze is right.
func TestStoreFaults(t *testing.T) {
	fault := kernel.E("test", kernel.NoSpace, nil, "the disk is full")
	for n := 1; ; n++ {
		w := newWorld(t)
		w.write(goProject)
		w.must(func() error { _, err := w.try(w.dir, ""); return err }())
		w.write(map[string]string{"internal/a/a.go": fmt.Sprint(n), "new": "1"})
		p := &failing{Packs: w.mem, left: n, err: fault}
		env := w.env("")
		env.Packs = p
		_, err := w.stage().Run(ctx, env, task(w.dir))
		if p.left > 0 {
			w.must(err)
			if n < 5 {
				t.Fatalf("only %d calls", n)
			}
			return
		}
		if !errors.Is(err, fault) && !p.forgiven {
			t.Fatalf("call %d: %v", n, err)
		}
		w.equal(w.back(w.freeze("")), content(t, w.dir))
	}
}

// failing lets one call fail. A failed Get of an old node is made good by reading.
type failing struct {
	kernel.Packs
	err      error
	mu       sync.Mutex
	left     int // guarded by mu, as forgiven
	forgiven bool
}

func (f *failing) fail() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left == 0 {
		return f.err
	}
	return nil
}

func (f *failing) Begin(c context.Context) (kernel.PackWriter, error) {
	if err := f.fail(); err != nil {
		return nil, err
	}
	w, err := f.Packs.Begin(c)
	return &failingWriter{w, f}, err
}

func (f *failing) Get(c context.Context, d kernel.Digest) ([]byte, error) {
	if err := f.fail(); err != nil {
		f.mu.Lock()
		f.forgiven = true
		f.mu.Unlock()
		return nil, err
	}
	return f.Packs.Get(c, d)
}

type failingWriter struct {
	kernel.PackWriter
	f *failing
}

func (w *failingWriter) Add(kind string, b []byte) (kernel.Digest, error) {
	if err := w.f.fail(); err != nil {
		return kernel.Digest{}, err
	}
	return w.PackWriter.Add(kind, b)
}

func (w *failingWriter) AddReader(kind string, r io.Reader, size int64) (kernel.Digest, int64, error) {
	if err := w.f.fail(); err != nil {
		return kernel.Digest{}, 0, err
	}
	return w.PackWriter.AddReader(kind, r, size)
}

func (w *failingWriter) Seal() error {
	if err := w.f.fail(); err != nil {
		return err
	}
	return w.PackWriter.Seal()
}
