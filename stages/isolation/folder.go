package isolation

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"witan/kernel"
	"witan/kernel/tree"
)

// folderSource compares a folder without git with what was in it when the turn began.
type folderSource struct {
	packs kernel.Packs
	tree  kernel.Digest // of the snapshot
	root  *os.Root
	start map[string]tree.Found
	seen  map[string]fs.FileInfo // as start was; nil: nothing is taken for unchanged unread
}

// openFolder notes the beginning: of a copy it is known what was written, the
// person's folder is read.
func (pl *Place) openFolder(ctx context.Context) (source, error) {
	s, err := pl.places.folderAt(pl.Dir, pl.snap.Workspace.Tree)
	if err != nil {
		return nil, err
	}
	if pl.How == Copy {
		if err = s.laid(ctx, pl.cand); err == nil {
			s.seen = map[string]fs.FileInfo{}
			err = s.walk(ctx, func(p string, fi fs.FileInfo) error { s.seen[p] = fi; return nil })
			if !settled(ctx, pl.entry.at("clock.tmp")) {
				s.seen = nil
			}
		}
	} else {
		err = s.walk(ctx, func(p string, _ fs.FileInfo) (err error) {
			s.start[p], err = tree.Look(nil, s.root, p)
			return err
		})
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// settled waits until what is written now has another time than what was written
// before; false where that takes too long. Without it, a write right after a look
// could leave no trace.
func settled(ctx context.Context, temp string) bool {
	defer os.Remove(temp)
	var first time.Time
	for range 25 {
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return false
		}
		_, err = f.Write([]byte("x"))
		fi, serr := f.Stat()
		f.Close()
		switch {
		case err != nil || serr != nil:
			return false
		case first.IsZero():
			first = fi.ModTime()
		case fi.ModTime().After(first):
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
	return false
}

func (p *Places) folderAt(dir string, root kernel.Digest) (*folderSource, error) {
	s := &folderSource{packs: p.Packs, tree: root, start: map[string]tree.Found{}}
	var err error
	if s.root, err = os.OpenRoot(dir); err != nil {
		return nil, disk("isolation.Open", err, "the folder %s cannot be opened", dir)
	}
	return s, nil
}

func (s *folderSource) close() { _ = s.root.Close() }

// laid notes a checkout of the snapshot with a candidate over it.
func (s *folderSource) laid(ctx context.Context, c kernel.Candidate) error {
	if err := s.frozen(ctx, func(p string, f tree.Found) { s.start[p] = f }); err != nil {
		return err
	}
	for _, f := range c.Files {
		name := tree.DecodePath(f.Path)
		if delete(s.start, name); !f.Hash.IsZero() {
			s.start[name] = normal(f.Hash, f.Mode, f.Bytes)
		}
	}
	return nil
}

// frozen tells the files of the snapshot.
func (s *folderSource) frozen(ctx context.Context, f func(string, tree.Found)) error {
	return tree.Walk(ctx, s.packs, s.tree, func(name string, e tree.Entry) error {
		if e.Type != tree.Dir && !tree.IsGit(name) {
			f(name, tree.Found{Hash: e.Hash, Mode: tree.ModeOf(e.Type), Size: e.Size})
		}
		return nil
	})
}

// walk tells all that is not a folder. What cannot be listed is left out; read then
// says that it is not known.
func (s *folderSource) walk(ctx context.Context, f func(string, fs.FileInfo) error) error {
	var list func(dir string, depth int) error
	list = func(dir string, depth int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, _ := tree.List(s.root, filepath.FromSlash(dir))
		for _, e := range entries {
			name := e.Name()
			p := path.Join(dir, name)
			fi, err := s.root.Lstat(filepath.FromSlash(p))
			switch {
			case err != nil || tree.IsGit(name):
				continue
			case !fi.IsDir():
				err = f(p, fi)
			case depth < tree.MaxDepth:
				err = list(p, depth+1)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return list(".", 1)
}

func (s *folderSource) compare(ctx context.Context, w kernel.PackWriter) ([]delta, error) {
	var out []delta
	there := map[string]bool{}
	add := func(p string) error {
		is, err := tree.Look(w, s.root, p)
		if was := s.start[p]; err == nil && is != was {
			out = append(out, delta{p, was, is})
		}
		return err
	}
	err := s.walk(ctx, func(p string, fi fs.FileInfo) error {
		if there[p] = true; s.seen != nil && untouched(s.seen[p], fi) {
			return nil
		}
		return add(p)
	})
	for p := range s.start {
		if err == nil && !there[p] {
			err = add(p)
		}
	}
	slices.SortFunc(out, func(a, b delta) int { return strings.Compare(a.path, b.path) })
	return out, err
}

func (s *folderSource) base(ctx context.Context, w kernel.PackWriter, paths []string) (map[string]tree.Found, error) {
	want, out := map[string]bool{}, map[string]tree.Found{}
	for _, p := range paths {
		want[p] = true
	}
	err := s.frozen(ctx, func(p string, f tree.Found) {
		if want[p] {
			out[p] = f
		}
	})
	return out, err
}
