package commit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"witan/kernel"
	"witan/kernel/tree"
)

// workspace is the person's folder. Nothing in it is followed, and nothing outside
// of it can be reached.
type workspace struct {
	root  *os.Root
	packs kernel.Packs
	run   kernel.RunID
	merge merger
	goes  map[string]bool // files that the plan deletes, or that are gone already
}

// step is one file that must be written or deleted.
type step struct {
	name   string // slash-separated
	was    tree.Found
	is     tree.Found
	merged []byte // the content, where it is in no pack
}

// plan compares the folder with the candidate, and says what to do and what stands
// against it. It writes nothing.
func (w *workspace) plan(ctx context.Context, files []kernel.CandidateFile) (steps []step, conflicts []string, err error) {
	for _, f := range files {
		if err := tree.CheckPath(f.Path); err != nil {
			return nil, nil, err
		}
	}
	for _, deleted := range []bool{true, false} { // a file may come where a folder goes
		for _, f := range files {
			if f.Hash.IsZero() != deleted {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			s, why, err := w.decide(ctx, f)
			switch {
			case err != nil:
				return nil, nil, err
			case why != "":
				conflicts = append(conflicts, quote(s.name)+" "+why)
				continue
			case s.is != s.was:
				steps = append(steps, s)
			}
			w.goes[s.name] = deleted
		}
	}
	return steps, conflicts, nil
}

// decide says what one file becomes; why is what stands against it.
func (w *workspace) decide(ctx context.Context, f kernel.CandidateFile) (s step, why string, err error) {
	s.name = tree.DecodePath(f.Path)
	base, theirs := found(f.Base, f.BaseMode), found(f.Hash, f.Mode)
	if s.was, why, err = w.ours(s.name); err != nil {
		return s, "", err
	}
	s.is = s.was
	if theirs.Absent() && (why != "" || s.was.Absent()) {
		return s, "", nil // no such file: gone already
	}
	ours := found(s.was.Hash, s.was.Mode)
	switch {
	case why != "":
		return s, why, nil
	case s.was.Skip != "":
		return s, "cannot be read (" + s.was.Skip + ")", nil
	case ours == theirs:
		return s, "", nil
	case ours == base:
		s.is = theirs
		s.is.Size = f.Bytes
		return s, "", nil
	case base.Absent():
		return s, "was added here too", nil
	case ours.Absent():
		return s, "was deleted here", nil
	}
	return w.three(ctx, s, base, theirs, f.Bytes)
}

// found is a file as a candidate names it. Size is not compared.
func found(d kernel.Digest, mode string) tree.Found {
	if d.IsZero() {
		return tree.Found{}
	}
	return tree.Found{Hash: d, Mode: tree.ModeOf(tree.TypeOf(mode))}
}

// ours is what is at name. why says that something stands where the file, or a
// folder of its path, must be, and that the plan does not take it away.
func (w *workspace) ours(name string) (is tree.Found, why string, err error) {
	for i := range name {
		if name[i] != '/' {
			continue
		}
		fi, err := w.root.Lstat(filepath.FromSlash(name[:i]))
		switch {
		case err != nil && !os.IsNotExist(err):
			return is, "cannot be looked at", nil
		case err != nil || !fi.IsDir() && w.goes[name[:i]]:
			return is, "", nil
		case !fi.IsDir():
			return is, "lies behind a file or link", nil
		}
	}
	fi, err := w.root.Lstat(filepath.FromSlash(name))
	if err == nil && fi.IsDir() {
		if !w.empties(name) {
			return is, "is a folder here", nil
		}
		return is, "", nil
	}
	is, err = tree.Look(nil, w.root, name)
	return is, "", err
}

// empties reports whether the plan deletes all files in a folder.
func (w *workspace) empties(dir string) bool {
	entries, err := tree.List(w.root, filepath.FromSlash(dir))
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if e.IsDir() && !w.empties(p) || !e.IsDir() && !w.goes[p] {
			return false
		}
	}
	return err == nil
}

// do makes one step. Whatever happens in between, the file is the old or the new one.
func (w *workspace) do(ctx context.Context, s step) error {
	local := filepath.FromSlash(s.name)
	var err error
	switch {
	case s.is.Absent():
		err = w.remove(local)
	case !s.was.Absent() && s.is.Hash == s.was.Hash && s.merged == nil && s.is.Mode != tree.ModeLink && s.was.Mode != tree.ModeLink:
		err = w.root.Chmod(local, w.perm(local, s.is.Mode))
	default:
		if err = w.room(local); err == nil {
			err = w.replace(ctx, s, local)
		}
	}
	if _, typed := err.(*kernel.Error); err == nil || typed {
		return err
	}
	kind := kernel.Internal
	switch {
	case os.IsPermission(err):
		kind = kernel.ReadOnly
	case errors.Is(err, syscall.ENOSPC):
		kind = kernel.NoSpace
	}
	return kernel.E("commit.Apply", kind, err, "%s cannot be written in the workspace", quote(s.name)).WithNext("see what is wrong there; then the commit goes on where it stopped")
}

// remove deletes a file and the folders that it leaves empty, as git does.
func (w *workspace) remove(local string) error {
	if err := w.root.Remove(local); err != nil && !os.IsNotExist(err) {
		return err
	}
	dir := filepath.Dir(local)
	for ; dir != "."; dir = filepath.Dir(dir) {
		if w.root.Remove(dir) != nil {
			break // it is not empty
		}
	}
	return w.sync(dir)
}

// room makes the folders of a path, and takes away empty ones at its end.
func (w *workspace) room(local string) error {
	if err := w.folders(filepath.Dir(local)); err != nil {
		return err
	}
	fi, err := w.root.Lstat(local)
	if err != nil || !fi.IsDir() {
		return nil
	}
	return w.prune(local)
}

// prune removes a folder in which there are only folders.
func (w *workspace) prune(dir string) error {
	entries, err := tree.List(w.root, dir)
	for _, e := range entries {
		if err == nil && e.IsDir() {
			err = w.prune(filepath.Join(dir, e.Name()))
		}
	}
	if err == nil {
		err = w.root.Remove(dir) // fails if there is a file
	}
	return err
}

func (w *workspace) folders(dir string) error {
	if fi, err := w.root.Lstat(dir); dir == "." || err == nil && fi.IsDir() {
		return nil
	}
	if err := w.folders(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := w.root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := w.root.Chmod(dir, 0o755); err != nil { // whatever the umask
		return err
	}
	return w.sync(filepath.Dir(dir))
}

// perm are the permissions of a file: those it has, but for execution.
func (w *workspace) perm(local, mode string) fs.FileMode {
	perm := fs.FileMode(0o644)
	if fi, err := w.root.Lstat(local); err == nil && fi.Mode().IsRegular() {
		perm = fi.Mode().Perm() &^ 0o111
	}
	if mode == "0755" {
		perm |= perm & 0o444 >> 2
	}
	return perm
}

// replace writes beside the file and renames. The name beside it follows from run
// and path, so that what a crash leaves is taken away by the next try.
func (w *workspace) replace(ctx context.Context, s step, local string) (err error) {
	sum := kernel.SumDomain("apply/1", []byte(w.run), []byte{0}, []byte(s.name))
	temp := filepath.Join(filepath.Dir(local), ".tmp-witan-"+sum.String()[7:23])
	if err := w.root.Remove(temp); err != nil && !os.IsNotExist(err) {
		return err
	}
	defer func() {
		if err != nil {
			_ = w.root.Remove(temp)
		}
	}()
	if s.is.Mode == tree.ModeLink {
		target, err := w.packs.Get(ctx, s.is.Hash)
		if err != nil {
			return err
		}
		if err := w.root.Symlink(string(target), temp); err != nil {
			return err
		}
	} else if err := w.file(ctx, s, temp, w.perm(local, s.is.Mode)); err != nil {
		return err
	}
	if err := w.root.Rename(temp, local); err != nil {
		return err
	}
	return w.sync(filepath.Dir(local))
}

func (w *workspace) file(ctx context.Context, s step, temp string, perm fs.FileMode) error {
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if s.merged != nil {
		_, err = f.Write(s.merged)
	} else {
		err = tree.Content(ctx, w.packs, s.is.Hash, s.is.Size, f)
	}
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// sync makes names in a folder durable, where the system can.
func (w *workspace) sync(dir string) error {
	d, err := w.root.Open(path.Clean(dir))
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
