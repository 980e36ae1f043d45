package freeze

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"witan/kernel"
	"witan/kernel/tree"
)

const (
	maxDepth   = 256
	maxEntries = 2_000_000
)

// dir is a directory on its way to a node.
type dir struct {
	path    string // below the root, "" for the root
	entries []item
	subs    []*dir // by entry of type Dir, in order
	old     *cachedDir
	node    kernel.Digest
	size    int64
	files   int
}

// item is an entry with what tells whether it changed.
type item struct {
	tree.Entry
	stat stat
	sub  *dir
	drop bool // could not be read after all
}

// walker freezes a folder in two passes: walk it and hash what changed, then
// build the nodes bottom-up, taking those of unchanged directories from the cache.
type walker struct {
	ctx   context.Context
	w     kernel.PackWriter
	root  string
	old   *cache
	began int64 // ns; an entry changed since then is not trusted next time
	group *errgroup.Group
	work  chan job
	count int

	mu      sync.Mutex
	skipped []kernel.Skipped // guarded by mu
	reads   int              // guarded by mu; files whose content was read
}

type job struct {
	path string
	it   *item
}

// workers reading and hashing: more gain nothing on two cores and cost memory.
func workers() int { return min(2, runtime.GOMAXPROCS(0)) }

func (f stage) walk(ctx context.Context, env kernel.Env, w kernel.PackWriter, root string) (kernel.Workspace, error) {
	ws := kernel.Workspace{Kind: "folder", Path: root}
	raw, err := f.cache.LoadStat(ctx, root)
	if err != nil {
		raw = nil // a cache
	}
	wk := &walker{w: w, root: root, old: decodeCache(raw), began: time.Now().UnixNano(), work: make(chan job, 256)}
	wk.group, wk.ctx = errgroup.WithContext(ctx)
	for range workers() {
		wk.group.Go(wk.hash)
	}
	d, err := wk.dir("", 0)
	close(wk.work)
	if werr := wk.group.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return ws, err
	}
	next := &cacheWriter{began: wk.began}
	changed, err := wk.build(d, next)
	if err != nil {
		return ws, err
	}
	if changed {
		if err := f.cache.SaveStat(ctx, root, next.encode()); err != nil {
			env.Log.Warn("stat cache not saved", "err", err)
		}
	}
	slices.SortFunc(wk.skipped, func(a, b kernel.Skipped) int { return strings.Compare(a.Path, b.Path) })
	ws.Tree, ws.Files, ws.Bytes, ws.Skipped = d.node, d.files, d.size, wk.skipped
	return ws, nil
}

func (wk *walker) skip(path, reason string) {
	wk.mu.Lock()
	wk.skipped = append(wk.skipped, kernel.Skipped{Path: strings.ToValidUTF8(path, "\uFFFD"), Reason: reason})
	wk.mu.Unlock()
}

// dir reads a directory and hands its changed files to the workers.
func (wk *walker) dir(rel string, depth int) (*dir, error) {
	if err := wk.ctx.Err(); err != nil {
		return nil, err
	}
	d := &dir{path: rel, old: wk.old.dir(rel)}
	names, err := os.ReadDir(filepath.Join(wk.root, rel))
	if err != nil {
		if rel == "" {
			return nil, fail("workspace_unreadable", "the workspace "+wk.root+" cannot be read")
		}
		wk.skip(rel, "unreadable")
		return d, nil
	}
	if wk.count += len(names); wk.count > maxEntries {
		return nil, fail("workspace_too_large", "the workspace has more than 2,000,000 entries; choose a smaller folder")
	}
	d.entries = make([]item, 0, len(names))
	for _, n := range names {
		if err := wk.entry(d, n, depth); err != nil {
			return nil, err
		}
	}
	for i := range d.entries { // now the slice does not move any more
		it := &d.entries[i]
		if it.Type == tree.Dir || !it.Hash.IsZero() {
			continue
		}
		select {
		case wk.work <- job{filepath.Join(rel, it.Name), it}:
		case <-wk.ctx.Done():
			return nil, wk.ctx.Err()
		}
	}
	return d, nil
}

func (wk *walker) entry(d *dir, n fs.DirEntry, depth int) error {
	rel := filepath.Join(d.path, n.Name())
	if n.Name() == ".git" {
		return nil
	}
	fi, err := n.Info()
	if err != nil {
		wk.skip(rel, "unreadable")
		return nil
	}
	it := item{Entry: tree.Entry{Name: n.Name(), Size: fi.Size()}, stat: statOf(fi)}
	switch m := fi.Mode(); {
	case m.IsDir():
		if depth >= maxDepth {
			wk.skip(rel, "too_deep")
			return nil
		}
		it.Type, it.Size = tree.Dir, 0
		if it.sub, err = wk.dir(rel, depth+1); err != nil {
			return err
		}
	case m&os.ModeSymlink != 0:
		it.Type = tree.Link
	case m.IsRegular() && m&0o111 != 0:
		it.Type = tree.Exec
	case m.IsRegular():
		it.Type = tree.File
	default:
		wk.skip(rel, "special")
		return nil
	}
	if it.Type != tree.Dir {
		it.Hash = d.old.hash(&it)
	}
	d.entries = append(d.entries, it)
	return nil
}

// hash stores the content of changed files.
func (wk *walker) hash() error {
	for j := range wk.work {
		if wk.ctx.Err() != nil {
			continue // drain
		}
		if err := wk.read(j); err != nil {
			return err
		}
	}
	return nil
}

func (wk *walker) read(j job) error {
	path := filepath.Join(wk.root, j.path)
	wk.mu.Lock()
	wk.reads++
	wk.mu.Unlock()
	var err error
	if j.it.Type == tree.Link {
		var target string
		if target, err = os.Readlink(path); err == nil {
			j.it.Size = int64(len(target))
			j.it.Hash, err = wk.w.Add("blob", []byte(target))
			return err
		}
	} else {
		var f *os.File
		if f, err = openPlain(path); err == nil {
			defer f.Close()
			var n int64
			if j.it.Hash, n, err = wk.w.AddReader("blob", f, -1); err == nil {
				if n != j.it.Size { // it changes while it is read: true for now, not for the cache
					j.it.Size, j.it.stat = n, stat{}
				}
				return nil
			}
		}
	}
	if kernel.KindOf(err) != kernel.Internal {
		return err // the store's, not the file's
	}
	j.it.drop = true
	wk.skip(j.path, "unreadable")
	return nil
}

// build makes the nodes of d and everything below; it reports whether anything
// differs from the cache.
func (wk *walker) build(d *dir, next *cacheWriter) (changed bool, err error) {
	entries := make([]tree.Entry, 0, len(d.entries))
	same := d.old != nil
	for i := range d.entries {
		it := &d.entries[i]
		if it.drop {
			same = false
			continue
		}
		if it.sub != nil {
			c, err := wk.build(it.sub, next)
			if err != nil {
				return false, err
			}
			it.Hash, it.Size = it.sub.node, it.sub.size
			d.files += it.sub.files
			changed = changed || c
		} else {
			d.files++
		}
		d.size += it.Size
		entries = append(entries, it.Entry)
	}
	same = same && d.old.same(d.entries)
	if same {
		d.node = d.old.node
	} else if d.node, err = wk.w.Add("tree", tree.Encode(nil, entries)); err != nil {
		return false, err
	}
	next.add(d)
	return changed || !same, nil
}
