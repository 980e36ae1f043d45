package mend

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// unfinished begins the name of a file that is being written.
const unfinished = ".tmp-witan-mend-"

// Apply makes the changes and returns those it made. What could not be changed
// is said in notes.
func Apply(f *work.Folder, changes []Change) (made []Change, notes []string, err error) {
	root, err := os.OpenRoot(f.Path)
	if err != nil {
		return nil, nil, kernel.E("builtin.mend", kernel.Unavailable, err, "the workspace cannot be opened")
	}
	defer root.Close()
	for _, file := range f.Files {
		if strings.HasPrefix(path.Base(file.Path), unfinished) && !file.Tracked {
			_ = root.Remove(filepath.FromSlash(file.Path)) // of a turn that ended too early
		}
	}
	for _, c := range changes {
		if err := write(root, c); err != nil {
			notes = append(notes, fmt.Sprintf("%s was not changed: %s.", work.Code(c.Path), reason(err)))
			continue
		}
		made = append(made, c)
	}
	return made, notes, nil
}

var errChanged = errors.New("its content is another by now")

func reason(err error) string {
	if errors.Is(err, errChanged) {
		return err.Error()
	}
	return "it cannot be written"
}

// write puts the new content in the place of the old one: whole or not at all,
// and never through another name of the same file.
func write(root *os.Root, c Change) error {
	name := filepath.FromSlash(c.Path)
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errChanged
	}
	// A file that must not be written is not replaced either.
	old, err := root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(old, work.MaxRead+1))
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	if kernel.Sum(b) != c.old {
		return errChanged
	}
	tmp := filepath.Join(filepath.Dir(name), unfinished+rand.Text())
	if err = create(root, tmp, c.new, info.Mode().Perm()); err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		_ = root.Remove(tmp)
	}
	return err
}

func create(root *os.Root, name string, b []byte, mode fs.FileMode) error {
	w, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	err = errors.Join(err, w.Chmod(mode), w.Close())
	return err
}
