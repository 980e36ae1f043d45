package freeze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"witan/kernel"
	"witan/kernel/tree"
)

const (
	maxEntries = 2_000_000
	readsATime = 32        // files of one task
	keepBuffer = 256 << 10 // of a worker, from one directory to the next
)

// walker freezes a folder. Its work is a stack of tasks: to list a directory, or
// to read some files of one. Taking the newest task first keeps few directories
// open; a directory becomes a node as soon as the last thing below it is done.
type walker struct {
	ctx   context.Context
	packs kernel.Packs
	w     kernel.PackWriter
	root  string
	old   cache
	began int64 // ns; what changed since then is not trusted next time
	max   int64 // bytes of a file

	mu      sync.Mutex
	wake    *sync.Cond
	stack   []task           // guarded by mu, as all below
	open    map[*dir]bool    // directories that are not nodes yet
	skipped []kernel.Skipped // in any order
	entries int              // seen
	next    []byte           // the cache of this freeze
	err     error            // the first
	top     *item            // the root, when all is done
}

// task is to list directory from of d, or, with to > 0, to read its files
// unread[from:to].
type task struct {
	d        *dir
	from, to int
}

// dir is a directory on its way to a node. Its items are sorted by name.
type dir struct {
	parent  *dir
	index   int    // its item in parent
	path    string // below the root, "" for the root
	folder  Folder
	items   []item
	unread  []int // items whose content must be read
	old     cached
	same    bool // all but the directories in it is as in old
	pending int  // tasks and directories to wait for; guarded by walker.mu
}

// item is an entry on its way into a node.
type item struct {
	tree.Entry
	stat  Stat
	print fingerprint
	files int  // below a directory
	same  bool // a directory that is the node it was
	drop  bool // it is not in the node after all
}

// errStale means that the cache names what the store does not have.
var errStale = errors.New("the cache is ahead of the store")

// workers is how many list and read: more gain nothing on two cores and cost memory.
func workers() int { return min(2, runtime.GOMAXPROCS(0)) }

// folder freezes a plain folder. done saves the cache, to be called when all is
// stored. note, if set, says why a git folder is frozen as a plain one.
func (f stage) folder(ctx context.Context, env kernel.Env, w kernel.PackWriter, o options, root, note string) (ws kernel.Workspace, done func(), err error) {
	raw, err := f.cache.LoadStat(ctx, root)
	if err != nil && !kernel.IsKind(err, kernel.NotFound) {
		env.Log.Warn("stat cache not read", "err", err)
	}
	wk := &walker{packs: env.Packs, w: w, root: root, old: decodeCache(raw), max: o.maxFile()}
	err = wk.walk(ctx, f.disk)
	if errors.Is(err, errStale) {
		wk = &walker{packs: env.Packs, w: w, root: root, max: o.maxFile()}
		err = wk.walk(ctx, f.disk)
	}
	if err != nil {
		return ws, nil, err
	}
	if note != "" {
		wk.skipped = append(wk.skipped, kernel.Skipped{Path: ".git", Reason: note})
	}
	slices.SortFunc(wk.skipped, func(a, b kernel.Skipped) int { return cmp.Compare(a.Path, b.Path) })
	ws = kernel.Workspace{Kind: "folder", Path: root, Tree: wk.top.Hash, Files: wk.top.files, Bytes: wk.top.Size, Skipped: wk.skipped}
	return ws, func() {
		if wk.top.same {
			return
		}
		if err := f.cache.SaveStat(ctx, root, wk.next); err != nil {
			env.Log.Warn("stat cache not saved", "err", err)
		}
	}, nil
}

func (wk *walker) walk(ctx context.Context, disk Disk) error {
	wk.ctx, wk.began = ctx, time.Now().UnixNano()
	wk.wake = sync.NewCond(&wk.mu)
	wk.open = map[*dir]bool{}
	wk.next = []byte(cacheMagic)
	folder, err := disk.Open(wk.root)
	if err != nil {
		return unusable(wk.root, err)
	}
	// The root is the one item of a directory that is never listed.
	above := &dir{items: make([]item, 1), pending: 1}
	if err := wk.list(above, 0, "", folder, new([]byte)); err != nil {
		wk.err = err
	}
	var group sync.WaitGroup
	for range workers() {
		group.Go(wk.work)
	}
	group.Wait()
	for d := range wk.open { // after an error
		d.folder.Close()
	}
	if wk.err == nil && wk.top.same && !wk.w.Has(wk.top.Hash) {
		return errStale
	}
	return wk.err
}

func (wk *walker) work() {
	var buf []byte
	wk.mu.Lock()
	defer wk.mu.Unlock()
	for {
		for len(wk.stack) == 0 && wk.err == nil && wk.top == nil {
			wk.wake.Wait()
		}
		if wk.err != nil || wk.top != nil {
			return
		}
		t := wk.stack[len(wk.stack)-1]
		wk.stack = wk.stack[:len(wk.stack)-1]
		wk.mu.Unlock()
		err := wk.do(t, &buf)
		wk.mu.Lock()
		if err != nil && wk.err == nil {
			wk.err = err
			wk.wake.Broadcast()
		}
	}
}

func (wk *walker) do(t task, buf *[]byte) error {
	if err := wk.ctx.Err(); err != nil {
		return err
	}
	if t.to > 0 {
		for _, i := range t.d.unread[t.from:t.to] {
			if err := wk.read(t.d, &t.d.items[i]); err != nil {
				return err
			}
		}
		return wk.finish(t.d, buf)
	}
	it := &t.d.items[t.from]
	below := path.Join(t.d.path, it.Name)
	folder, err := t.d.folder.Folder(it.Name)
	if err != nil {
		it.drop = true
		if isNotFolder(err) {
			wk.skip(below, changing)
		} else {
			wk.skip(below, reason(err))
		}
		return wk.finish(t.d, buf)
	}
	return wk.list(t.d, t.from, below, folder, buf)
}

func (wk *walker) skip(path, reason string) {
	if reason == gone {
		return
	}
	wk.mu.Lock()
	wk.skipped = append(wk.skipped, kernel.Skipped{Path: tree.EncodePath(path), Reason: reason})
	wk.mu.Unlock()
}

// list finds out what is in a directory and what of it must be read.
func (wk *walker) list(parent *dir, index int, below string, folder Folder, buf *[]byte) error {
	d := &dir{parent: parent, index: index, path: below, folder: folder}
	wk.mu.Lock()
	wk.open[d] = true
	wk.mu.Unlock()
	names, err := folder.Names()
	if err != nil {
		if below == "" {
			return unusable(wk.root, err)
		}
		parent.items[index].drop = true
		wk.skip(below, reason(err))
		wk.close(d)
		return wk.finish(parent, buf)
	}
	slices.Sort(names)
	d.items = make([]item, 0, len(names))
	for _, name := range names {
		wk.entry(d, name)
	}
	wk.compare(d)
	return wk.push(d, buf)
}

func (wk *walker) close(d *dir) {
	wk.mu.Lock()
	delete(wk.open, d)
	wk.mu.Unlock()
	d.folder.Close()
	d.folder = nil
}

func (wk *walker) entry(d *dir, name string) {
	if name == ".git" {
		return
	}
	st, err := d.folder.Stat(name)
	if err != nil {
		wk.skip(path.Join(d.path, name), reason(err))
		return
	}
	it := item{Entry: tree.Entry{Name: name, Size: st.Size, Type: typeOf(&st)}, stat: st, print: print(name, &st, wk.began)}
	why := ""
	switch {
	case st.Kind == Special:
		why = special
	case st.Kind == Regular && st.Size > wk.max:
		why = tooLarge
	case st.Kind == Directory && depth(d.path) > tree.MaxDepth:
		why = tooDeep
	}
	if why != "" {
		wk.skip(path.Join(d.path, name), why)
		return
	}
	d.items = append(d.items, it)
}

func typeOf(st *Stat) byte {
	switch {
	case st.Kind == Directory:
		return tree.Dir
	case st.Kind == Symlink:
		return tree.Link
	case st.Exec:
		return tree.Exec
	}
	return tree.File
}

func depth(path string) int {
	if path == "" {
		return 1
	}
	n := 2
	for i := range len(path) {
		if path[i] == '/' {
			n++
		}
	}
	return n
}

// compare holds a directory against the cache: hashes of files that did not
// change are taken over, the rest is noted as unread.
func (wk *walker) compare(d *dir) {
	var known bool
	if d.old, known = wk.old.dir(d.path); known {
		d.same = d.old.len() == len(d.items)
		for i := 0; i < len(d.items) && d.same; i++ {
			d.same = !d.items[i].print.isZero() && d.items[i].print == d.old.at(i)
		}
		if d.same {
			return // hashes are needed only if something below changed
		}
		wk.takeOver(d)
	}
	for i := range d.items {
		if it := &d.items[i]; it.Type != tree.Dir && it.Hash.IsZero() {
			d.unread = append(d.unread, i)
		}
	}
}

// takeOver gives unchanged files the hashes that they have in the old node. It
// reports whether the store has the node.
func (wk *walker) takeOver(d *dir) bool {
	b, err := wk.packs.Get(wk.ctx, d.old.node)
	if err != nil {
		return false
	}
	old, err := tree.Decode(b)
	if err != nil || len(old) != d.old.len() {
		return false
	}
	j := 0
	for i := range d.items {
		it := &d.items[i]
		for j < len(old) && old[j].Name < it.Name {
			j++
		}
		if j < len(old) && old[j].Name == it.Name && it.Type != tree.Dir && old[j].Type == it.Type && !it.print.isZero() && it.print == d.old.at(j) {
			it.Hash, it.Size = old[j].Hash, old[j].Size
		}
	}
	return true
}

// push hands out what is to be done in a directory that was listed.
func (wk *walker) push(d *dir, buf *[]byte) error {
	var tasks []task
	for i := range slices.Backward(d.items) {
		if d.items[i].Type == tree.Dir {
			tasks = append(tasks, task{d: d, from: i})
		}
	}
	for from := 0; from < len(d.unread); from += readsATime {
		tasks = append(tasks, task{d, from, min(from+readsATime, len(d.unread))})
	}
	wk.mu.Lock()
	d.pending = len(tasks) + 1
	wk.stack = append(wk.stack, tasks...)
	if wk.entries += len(d.items); wk.entries > maxEntries {
		wk.mu.Unlock()
		return fail("workspace_too_large", fmt.Sprintf("the workspace has more than %d entries; choose a smaller folder", maxEntries))
	}
	wk.wake.Broadcast()
	wk.mu.Unlock()
	return wk.finish(d, buf)
}

// read stores one file or link.
func (wk *walker) read(d *dir, it *item) error {
	k, why, err := keep(wk.w, d.folder, it.Name, it.stat)
	if err != nil || why != "" {
		it.drop = true
		if why != "" {
			wk.skip(path.Join(d.path, it.Name), why)
		}
		return err
	}
	it.Hash, it.Size, it.stat = k.hash, k.size, k.stat
	it.Type, it.print = typeOf(&k.stat), print(it.Name, &k.stat, wk.began)
	return nil
}

// finish counts one thing of d as done; after the last one it makes the node, and
// that may be the last thing of the directory above.
func (wk *walker) finish(d *dir, buf *[]byte) error {
	for {
		wk.mu.Lock()
		d.pending--
		last := d.pending == 0
		if last && d.parent == nil { // above the root
			wk.top = &d.items[0]
			wk.wake.Broadcast()
		}
		wk.mu.Unlock()
		if !last || d.parent == nil {
			return nil
		}
		if err := wk.node(d, buf); err != nil {
			return err
		}
		wk.close(d)
		d = d.parent
	}
}

// node makes the node of a directory in which everything is done.
func (wk *walker) node(d *dir, buf *[]byte) (err error) {
	same := d.same
	for i := range d.items {
		if it := &d.items[i]; it.drop || it.Type == tree.Dir && !it.same {
			same = false
		}
	}
	if d.same && !same && !wk.takeOver(d) {
		return errStale
	}
	up, kept := &d.parent.items[d.index], 0
	up.Size, up.files, up.same = 0, 0, same
	*buf = tree.Begin((*buf)[:0])
	for i := range d.items {
		it := &d.items[i]
		if it.drop {
			continue
		}
		if it.Type != tree.Dir {
			it.files = 1
		}
		up.Size, up.files, kept = up.Size+it.Size, up.files+it.files, kept+1
		if !same {
			*buf = tree.Append(*buf, &it.Entry)
		}
	}
	if same {
		up.Hash = d.old.node
	} else if up.Hash, err = wk.w.Add("tree", *buf); err != nil {
		return err
	}
	if cap(*buf) > keepBuffer {
		*buf = nil
	}
	wk.mu.Lock()
	defer wk.mu.Unlock()
	wk.next = appendCached(wk.next, d.path, up.Hash, kept)
	for i := range d.items {
		if it := &d.items[i]; !it.drop {
			wk.next = append(wk.next, it.print[:]...)
		}
	}
	return nil
}
