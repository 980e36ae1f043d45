package runner

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"witan/kernel"
	"witan/kernel/secrets"
	"witan/stages/invoke/builtin/work"
)

// maxCopy is how much of a workspace is copied, in bytes.
const maxCopy = 1 << 30

// installed are folders with a project's dependencies, which git ignores and
// tests need.
var installed = []string{"node_modules", ".venv", "venv"}

// copied is the copy that tests run in.
type copied struct {
	f     *work.Folder
	base  string // our folder in the turn's state folder, links resolved
	root  string // the copy
	tools work.Tools
}

// open makes our folder and those that tests may write beside the copy.
func open(f *work.Folder, state string) (*copied, error) {
	base, err := os.MkdirTemp(state, "runner-")
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	c := &copied{f: f, base: base, root: filepath.Join(base, "copy")}
	if err == nil {
		err = os.Mkdir(c.root, 0o700)
	}
	if err == nil {
		c.tools, err = work.NewTools(base)
	}
	if err != nil {
		c.remove()
		return nil, kernel.E("builtin.runner", kernel.ReadOnly, err, "the turn's state folder cannot be written")
	}
	return c, nil
}

// size is how much would be copied, in bytes.
func (c *copied) size() int64 {
	var total int64
	for _, file := range c.f.Files {
		total += file.Size
	}
	return total
}

func (c *copied) fill(ctx context.Context, suites []suite) error {
	to, err := os.OpenRoot(c.root)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, file := range c.f.Files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.file(to, file); err != nil {
			return err
		}
	}
	// Links come last, so that nothing is ever written through one.
	for _, l := range c.f.Links {
		if c.f.Inside(l.Path, l.Target) {
			if err := mkdir(to, path.Dir(l.Path)); err != nil {
				return err
			}
			if err := to.Symlink(filepath.FromSlash(l.Target), filepath.FromSlash(l.Path)); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	for _, s := range suites {
		for _, name := range installed {
			c.install(to, path.Join(s.dir, name))
		}
	}
	return nil
}

func mkdir(to *os.Root, dir string) error { return to.MkdirAll(filepath.FromSlash(dir), 0o700) }

// file copies one file. One that has gone or cannot be read is left out: the
// tests will say whether they need it.
func (c *copied) file(to *os.Root, file work.File) error {
	r, err := c.f.Open(file.Path)
	if err != nil {
		return nil
	}
	defer r.Close()
	if err := mkdir(to, path.Dir(file.Path)); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if file.Exec {
		mode = 0o700
	}
	w, err := to.OpenFile(filepath.FromSlash(file.Path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	// A file that grows while it is read must not fill the disk.
	_, err = io.Copy(w, io.LimitReader(r, max(file.Size, 1<<20)))
	return errors.Join(err, w.Close())
}

// install links a folder of dependencies to the workspace's own.
func (c *copied) install(to *os.Root, name string) {
	if _, err := to.Lstat(filepath.FromSlash(name)); err == nil || !c.f.IsDir(name) {
		return
	}
	// Where it fails, the tests miss their dependencies and say so.
	_ = os.Symlink(filepath.Join(c.f.Path, filepath.FromSlash(name)), filepath.Join(c.root, filepath.FromSlash(name)))
}

// remove deletes the copy. Tests may have left folders without permissions.
func (c *copied) remove() {
	if c.base == "" {
		return
	}
	if os.RemoveAll(c.base) == nil {
		return
	}
	_ = filepath.WalkDir(c.base, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(c.base)
}

// times matches what test tools print about how long something took.
var times = regexp.MustCompile(`(duration_ms:? )[\d.]+|(\()\d+(?:\.\d+)?m?s(\))|(\t|\bin )\d+\.\d+s\b|(0x)[0-9a-f]{6,}|(finished in )\d+\.\d+s`)

// scrub leaves out of output what differs from one run to the next (where the
// copy is, times and addresses) and what looks like a secret.
func (c *copied) scrub(out string) string {
	out = strings.ReplaceAll(out, c.root+string(filepath.Separator), "")
	out = strings.ReplaceAll(out, c.root, ".")
	out = strings.ReplaceAll(out, c.base, "…")
	out = times.ReplaceAllString(out, "${1}${2}${4}${5}${6}_${3}")
	return work.ShowLines(secrets.Redact(strings.ToValidUTF8(out, "\uFFFD")))
}
