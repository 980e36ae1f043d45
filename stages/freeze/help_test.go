package freeze_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/kernel/tree"
	"witan/stages/freeze"
)

var ctx = context.Background()

// runner starts programs without supervision.
type runner struct{}

func (runner) Run(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.Dir, c.Env, bytes.NewReader(c.Stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return kernel.CommandResult{}, kernel.E("test", kernel.NotFound, err, "%s cannot be started", c.Argv[0])
	}
	return kernel.CommandResult{Exit: cmd.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: errs.Bytes()}, nil
}

// without is a machine that has no git.
type without struct{}

func (without) Run(context.Context, kernel.Command) (kernel.CommandResult, error) {
	return kernel.CommandResult{}, kernel.E("test", kernel.NotFound, nil, "git is not there")
}

// disk is the real one with faults in between. Paths are below the workspace.
type disk struct {
	freeze.Disk
	mu       sync.Mutex
	read     map[string]int         // times a file was opened
	age      int64                  // ns by which files are older than they are
	broken   map[string]bool        // cannot be opened or listed
	opening  map[string]func()      // called before a folder is opened
	statting map[string]func()      // called once, after a file was looked at
	reading  map[string]func() bool // called when a file is read; true is an I/O error
}

// newDisk has files that are an hour older than they are: young ones are read
// again, since a clock may stand still between two changes.
func newDisk() *disk {
	return &disk{Disk: freeze.OS(), age: int64(time.Hour), read: map[string]int{}, broken: map[string]bool{}, opening: map[string]func(){}, statting: map[string]func(){}, reading: map[string]func() bool{}}
}

func (d *disk) reads() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, k := range d.read {
		n += k
	}
	return n
}

func (d *disk) reset() {
	d.mu.Lock()
	clear(d.read)
	d.mu.Unlock()
}

var errFault = errors.New("fault")

func (d *disk) Open(path string) (freeze.Folder, error) {
	if d.broken[""] {
		return nil, errFault
	}
	f, err := d.Disk.Open(path)
	if err != nil {
		return nil, err
	}
	return &folder{f, d, ""}, nil
}

type folder struct {
	real
	d    *disk
	path string
}

type real = freeze.Folder

func (f *folder) Names() ([]string, error) {
	if f.d.broken[f.path+"/"] {
		return nil, errFault
	}
	names, err := f.real.Names()
	slices.Reverse(names) // the order is nobody's
	return names, err
}

func (f *folder) Folder(name string) (freeze.Folder, error) {
	path := strings.TrimPrefix(f.path+"/"+name, "/")
	if f.d.broken[path] {
		return nil, errFault
	}
	if hook := f.d.opening[path]; hook != nil {
		hook()
	}
	sub, err := f.real.Folder(name)
	if err != nil {
		return nil, err
	}
	return &folder{sub, f.d, path}, nil
}

func (f *folder) File(name string) (freeze.File, error) {
	path := strings.TrimPrefix(f.path+"/"+name, "/")
	if f.d.broken[path] {
		return nil, errFault
	}
	f.d.mu.Lock()
	f.d.read[path]++
	hook := f.d.reading[path]
	f.d.mu.Unlock()
	file, err := f.real.File(name)
	if err != nil {
		return nil, err
	}
	return &hooked{file, f.d, hook}, nil
}

func (f *folder) Stat(name string) (freeze.Stat, error) {
	st, err := f.real.Stat(name)
	path := strings.TrimPrefix(f.path+"/"+name, "/")
	f.d.mu.Lock()
	hook := f.d.statting[path]
	delete(f.d.statting, path)
	f.d.mu.Unlock()
	if hook != nil {
		hook()
	}
	return f.d.older(st), err
}

func (d *disk) older(st freeze.Stat) freeze.Stat {
	st.Mtime, st.Ctime = st.Mtime-d.age, st.Ctime-d.age
	return st
}

type hooked struct {
	freeze.File
	d    *disk
	hook func() bool
}

func (h *hooked) Read(b []byte) (int, error) {
	if h.hook != nil && h.hook() {
		return 0, errFault
	}
	return h.File.Read(b)
}

func (h *hooked) Stat() (freeze.Stat, error) {
	st, err := h.File.Stat()
	return h.d.older(st), err
}

// world is a workspace, a store and a disk.
type world struct {
	t    *testing.T
	mem  *kerneltest.Mem
	disk *disk
	run  kernel.Runner
	dir  string
}

func newWorld(t *testing.T) *world {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, kerneltest.NewMem(), newDisk(), runner{}, dir}
}

func (w *world) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

// write makes files.
func (w *world) write(files map[string]string) {
	w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(w.path(name)), 0o755), os.WriteFile(w.path(name), []byte(files[name]), 0o644)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) env(options string) kernel.Env {
	env := kernel.Env{Now: time.Now, Log: slog.New(slog.DiscardHandler), Packs: w.mem}
	if options != "" {
		env.Options = []byte(options)
	}
	return env
}

func task(dir string) kernel.Task {
	return kernel.Task{Version: kernel.ObjectVersion, Conversation: "conv_1", Text: "do it", Workspace: dir}
}

func (w *world) stage() kernel.Freeze {
	return freeze.Workspace(w.run, w.mem, freeze.WithDisk(w.disk))
}

func (w *world) try(dir, options string) (kernel.Workspace, error) {
	s, err := w.stage().Run(ctx, w.env(options), task(dir))
	return s.Workspace, err
}

func (w *world) freeze(options string) kernel.Workspace {
	w.t.Helper()
	ws, err := w.try(w.dir, options)
	w.must(err)
	return ws
}

// same fails unless the workspaces are one to the byte.
func (w *world) same(a, b kernel.Workspace) {
	w.t.Helper()
	ab, err1 := kernel.Canonical(a)
	bb, err2 := kernel.Canonical(b)
	w.must(errors.Join(err1, err2))
	if !bytes.Equal(ab, bb) {
		w.t.Fatalf("snapshots differ:\n%s\n%s", ab, bb)
	}
}

// skipped lists what a snapshot does not hold, as "path reason".
func skipped(ws kernel.Workspace) []string {
	var out []string
	for _, s := range ws.Skipped {
		out = append(out, s.Path+" "+s.Reason)
	}
	return out
}

// back writes a snapshot to a new folder and returns what is in it: content by
// path, with "x:" before that of an executable, "l:" before the target of a link.
func (w *world) back(ws kernel.Workspace) map[string]string {
	w.t.Helper()
	dir := w.t.TempDir()
	_, err := tree.Materialise(ctx, w.run, w.mem, ws, dir)
	w.must(err)
	return content(w.t, dir)
}

func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() && e.Name() != ".git" {
			return err
		}
		if e.IsDir() {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			out[rel] = "l:" + target
			return err
		}
		fi, err := e.Info()
		if err != nil || !fi.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		out[rel] = string(b)
		if fi.Mode()&0o111 != 0 {
			out[rel] = "x:" + out[rel]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) equal(got, want map[string]string) {
	w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; !ok || g != want[name] {
			w.t.Errorf("%q: %.80q, want %.80q", name, g, want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			w.t.Errorf("%q is too much: %.80q", name, got[name])
		}
	}
}

// wantFailure fails unless err is a Failure of class execution with the reason
// and a sentence.
func wantFailure(t *testing.T, err error, reason string) {
	t.Helper()
	var f *kernel.Failure
	if !errors.As(err, &f) || f.Class != kernel.ClassExecution || f.Reason != reason || f.Text == "" || strings.Contains(f.Text, "\n") {
		t.Errorf("%v, want a failure %s", err, reason)
	}
}
