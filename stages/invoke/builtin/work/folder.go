package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"witan/kernel"
)

// Bounds of a Folder. What lies beyond is left out and said in Notes.
const (
	MaxFiles = 20_000  // files listed
	MaxRead  = 5 << 20 // bytes of a file that Read returns
	MaxDepth = 64      // components of a path
)

// Folder is a workspace opened for reading.
type Folder struct {
	Path  string // absolute, links resolved
	Git   bool   // Files come from git's index and ignore rules
	Files []File // regular files, sorted by path
	Links []Link // symbolic links, sorted by path
	Notes []string

	root *os.Root
}

// File is a regular file of the folder.
type File struct {
	Path    string // relative, with slashes
	Size    int64
	Exec    bool
	Tracked bool // by git
}

// Link is a symbolic link, with its target as written.
type Link struct{ Path, Target string }

// skipped are folders that hold what tools made or fetched. They count only
// where git does not say what belongs to the project.
var skipped = []string{".git", ".hg", ".svn", ".bzr", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache",
	".ruff_cache", "__pycache__", "node_modules", "bower_components", "vendor", "third_party", "dist", "build", "target",
	"out", ".next", ".nuxt", ".gradle", ".idea", ".cache", ".terraform", "coverage"}

// Open lists the workspace: by git's rules where it is a git folder, else all
// of it but the folders that tools make. Errors are Invalid (not a folder) and
// NotFound. Close releases it.
func Open(ctx context.Context, dir string, run kernel.Runner) (*Folder, error) {
	const op = "builtin.Open"
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		kind := kernel.Invalid
		if errors.Is(err, fs.ErrNotExist) {
			kind = kernel.NotFound
		}
		return nil, kernel.E(op, kind, err, "the workspace cannot be opened")
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, kernel.E(op, kernel.Invalid, err, "the workspace cannot be opened")
	}
	f := &Folder{Path: real, root: root}
	if err := f.list(ctx, run); err != nil {
		root.Close()
		return nil, err
	}
	return f, nil
}

func (f *Folder) Close() error { return f.root.Close() }

func (f *Folder) list(ctx context.Context, run kernel.Runner) error {
	if names, ok := f.gitNames(ctx, run); ok {
		f.Git = true
		for _, n := range names {
			if !f.add(n.path, n.tracked) {
				break
			}
		}
	} else if err := f.walk(ctx); err != nil {
		return err
	}
	slices.SortFunc(f.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(f.Links, func(a, b Link) int { return strings.Compare(a.Path, b.Path) })
	if err := ctx.Err(); err != nil {
		return kernel.E("builtin.Open", kernel.Cancelled, context.Cause(ctx), "stopped while listing the workspace")
	}
	return nil
}

// add looks at one name and lists it; false when the list is full. A name that
// is gone or neither file nor link is left out.
func (f *Folder) add(name string, tracked bool) bool {
	if len(f.Files)+len(f.Links) >= MaxFiles {
		f.Notes = append(f.Notes, fmt.Sprintf("The workspace holds more than %d files; the rest was not looked at.", MaxFiles))
		return false
	}
	if strings.Count(name, "/") >= MaxDepth {
		return true
	}
	info, err := f.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return true
	}
	switch {
	case info.Mode().IsRegular():
		f.Files = append(f.Files, File{Path: name, Size: info.Size(), Exec: info.Mode()&0o111 != 0, Tracked: tracked})
	case info.Mode()&fs.ModeSymlink != 0:
		if target, err := f.root.Readlink(filepath.FromSlash(name)); err == nil {
			f.Links = append(f.Links, Link{Path: name, Target: filepath.ToSlash(target)})
		}
	}
	return true
}

type gitName struct {
	path    string
	tracked bool
}

// gitNames asks git for tracked and other, not ignored, files below the
// workspace. ok is false where git cannot or may not say. The settings given
// keep git from running programs that the repository's own configuration names.
func (f *Folder) gitNames(ctx context.Context, run kernel.Runner) (names []gitName, ok bool) {
	res, err := Git(ctx, run, f.Path, "ls-files", "-t", "-z", "-c", "-o", "--exclude-standard")
	if err != nil || res.Exit != 0 || res.Cut > 0 {
		return nil, false
	}
	for _, entry := range strings.Split(string(res.Stdout), "\x00") {
		if tag, p, found := strings.Cut(entry, " "); found {
			names = append(names, gitName{p, tag != "?"})
		}
	}
	slices.SortFunc(names, func(a, b gitName) int { return strings.Compare(a.path, b.path) })
	// A file in conflict has several entries.
	names = slices.CompactFunc(names, func(a, b gitName) bool { return a.path == b.path })
	// No name at all: the folder itself may be ignored by a repository around it.
	return names, len(names) > 0
}

// Git runs git in dir, without its optional locks and without anything that the
// repository's own configuration could start. Output is kept up to 64 MiB.
func Git(ctx context.Context, run kernel.Runner, dir string, args ...string) (kernel.CommandResult, error) {
	argv := append([]string{"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull,
		"-c", "core.quotePath=false", "-c", "log.showSignature=false", "--no-pager", "--no-optional-locks"}, args...)
	return run.Run(ctx, kernel.Command{Argv: argv, Dir: dir, Env: gitEnviron(), Timeout: time.Minute, Confine: true, Limit: 64 << 20})
}

func (f *Folder) walk(ctx context.Context) error {
	todo := []string{"."}
	for len(todo) > 0 && ctx.Err() == nil {
		dir := todo[0]
		todo = todo[1:]
		entries, err := f.readDir(dir)
		if err != nil {
			f.Notes = append(f.Notes, fmt.Sprintf("The folder %s could not be read.", Show(dir)))
			continue
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			switch {
			case !e.IsDir():
				if !f.add(name, false) {
					return nil
				}
			case !slices.Contains(skipped, e.Name()) && strings.Count(name, "/") < MaxDepth-1:
				todo = append(todo, name)
			}
		}
	}
	return nil
}

// readDir reads at most MaxFiles entries of a folder.
func (f *Folder) readDir(name string) ([]fs.DirEntry, error) {
	d, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(MaxFiles)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// ErrTooLarge is what Read returns for a file beyond MaxRead.
var ErrTooLarge = errors.New("file is too large to read")

// Read returns the content of a regular file. Errors are the system's, or
// ErrTooLarge; a file may be gone since it was listed.
func (f *Folder) Read(name string) ([]byte, error) {
	r, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, MaxRead+1))
	if len(b) > MaxRead {
		return nil, ErrTooLarge
	}
	return b, err
}

// Open opens a regular file below the root for reading. It never blocks on a
// pipe that has taken the place of a file.
func (f *Folder) Open(name string) (*os.File, error) {
	r, err := f.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := r.Stat(); err != nil || !info.Mode().IsRegular() {
		r.Close()
		return nil, fmt.Errorf("%s: %w: not a regular file", name, fs.ErrInvalid)
	}
	return r, nil
}

// Exists reports whether something has this name, ignored by git or not. A link
// that leaves the workspace exists; what it points to is not asked.
func (f *Folder) Exists(name string) bool {
	name = filepath.FromSlash(name)
	if _, err := f.root.Stat(name); err == nil {
		return true
	}
	info, err := f.root.Lstat(name)
	if err != nil {
		return false
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return true
	}
	target, err := f.root.Readlink(name)
	return err == nil && !f.Inside(filepath.ToSlash(name), filepath.ToSlash(target))
}

// IsDir reports whether name is a folder below the root.
func (f *Folder) IsDir(name string) bool {
	info, err := f.root.Stat(filepath.FromSlash(name))
	return err == nil && info.IsDir()
}

// Has reports whether the file is listed.
func (f *Folder) Has(name string) bool {
	_, ok := slices.BinarySearchFunc(f.Files, name, func(x File, n string) int { return strings.Compare(x.Path, n) })
	return ok
}

// Inside reports whether a link at name with this target stays, as written,
// below the root.
func (f *Folder) Inside(name, target string) bool {
	if path.IsAbs(target) || filepath.IsAbs(target) || filepath.VolumeName(target) != "" {
		return false
	}
	return filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), target)))
}
