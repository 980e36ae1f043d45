package isolation

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"witan/kernel"
	"witan/kernel/tree"
)

// maxChanges bounds the files that a turn may change.
const maxChanges = 20_000

// Place is the folder of one turn.
type Place struct {
	Dir string // where the turn works
	Top string // the folder that it may write; empty: none
	How string // worktree, copy, in-place, workspace

	places   *Places
	entry    *entry // nil: nothing was made
	turn     kernel.Turn
	snap     kernel.Snapshot
	cand     kernel.Candidate // what the turn started from
	src      source
	captured bool
}

// source compares what is there with the beginning of the turn. Paths are
// slash-separated and below the workspace; those outside of it begin with "../".
type source interface {
	// compare tells the files that differ, sorted by path; their new content is
	// stored where w is not nil.
	compare(ctx context.Context, w kernel.PackWriter) ([]delta, error)
	// base stores and tells what the snapshot has at paths.
	base(ctx context.Context, w kernel.PackWriter, paths []string) (map[string]tree.Found, error)
	close()
}

// delta is a file that differs from the beginning of the turn.
type delta struct {
	path          string
	before, after tree.Found
}

func (d delta) what() string {
	switch {
	case d.before.Absent():
		return "added"
	case d.after.Absent():
		return "deleted"
	}
	return "modified"
}

// Capture says what the turn left: the candidate, relative to the snapshot, which is
// stored, and what changed since the turn began. Of a place that nobody writes both
// are nothing. In the person's own folder only what changed since Open counts. It
// may be called again.
func (pl *Place) Capture(ctx context.Context) (kernel.Digest, kernel.Candidate, []kernel.Change, error) {
	var none kernel.Candidate
	if pl.entry == nil {
		return kernel.Digest{}, none, nil, nil
	}
	w, err := pl.places.Packs.Begin(ctx)
	if err != nil {
		return kernel.Digest{}, none, nil, err
	}
	defer w.Abort()
	deltas, err := pl.src.compare(ctx, w)
	if err != nil {
		return kernel.Digest{}, none, nil, err
	}
	if len(deltas) > maxChanges {
		return kernel.Digest{}, none, nil, kernel.E("isolation.Capture", kernel.Unsupported, nil, "the turn changed %d files, and a candidate may have %d", len(deltas), maxChanges).
			WithNext("let git ignore what is not part of the work")
	}
	cand, err := pl.build(ctx, w, deltas)
	if err != nil {
		return kernel.Digest{}, none, nil, err
	}
	if err := w.Seal(); err != nil {
		return kernel.Digest{}, none, nil, err
	}
	d, err := kernel.PutObject(ctx, pl.places.Packs, "candidate", cand)
	if err != nil {
		return kernel.Digest{}, none, nil, err
	}
	pl.captured = true
	return d, cand, changes(deltas), nil
}

func changes(deltas []delta) []kernel.Change {
	out := []kernel.Change{}
	for _, d := range deltas {
		out = append(out, kernel.Change{Path: tree.EncodePath(d.path), What: d.what()})
	}
	return out
}

// build carries over what the turn did not touch of the candidate that it started
// from, and adds what differs from the snapshot of what it did.
func (pl *Place) build(ctx context.Context, w kernel.PackWriter, deltas []delta) (kernel.Candidate, error) {
	out := kernel.Candidate{Version: kernel.ObjectVersion, Snapshot: pl.turn.Snapshot, Files: []kernel.CandidateFile{}}
	touched, ours := map[string]bool{}, []delta{}
	var paths []string
	for _, d := range deltas {
		if outside(d.path) || tree.IsGit(d.path) || strings.HasSuffix(d.path, "/") {
			continue // no file of a candidate
		}
		if touched[d.path] = true; d.after.Skip == "" {
			ours, paths = append(ours, d), append(paths, d.path)
		}
	}
	base, err := pl.src.base(ctx, w, paths)
	if err != nil {
		return out, err
	}
	for _, f := range pl.cand.Files {
		if !touched[tree.DecodePath(f.Path)] {
			out.Files = append(out.Files, f)
		}
	}
	for _, d := range ours {
		if was := base[d.path]; was != d.after {
			out.Files = append(out.Files, candidateFile(d.path, was, d.after))
		}
	}
	slices.SortFunc(out.Files, func(a, b kernel.CandidateFile) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

func outside(path string) bool { return strings.HasPrefix(path, "../") }

func candidateFile(path string, was, is tree.Found) kernel.CandidateFile {
	return kernel.CandidateFile{Path: tree.EncodePath(path), What: delta{before: was, after: is}.what(),
		Base: was.Hash, BaseMode: was.Mode, Hash: is.Hash, Mode: is.Mode, Bytes: is.Size}
}

// normal is a file as a candidate or a snapshot names it.
func normal(d kernel.Digest, mode string, size int64) tree.Found {
	if d.IsZero() {
		return tree.Found{}
	}
	return tree.Found{Hash: d, Mode: tree.ModeOf(tree.TypeOf(mode)), Size: size}
}

// Close removes what Open made. Content that was not captured is kept first. An
// error leaves the place as it is, for Leftovers to list.
func (pl *Place) Close(ctx context.Context) error {
	if pl.entry == nil {
		return nil
	}
	keep := !pl.captured
	if keep && pl.How != InPlace {
		deltas, err := pl.src.compare(ctx, nil)
		keep = err != nil || len(deltas) > 0 // who cannot tell keeps
	}
	pl.src.close()
	_, err := pl.places.remove(ctx, pl.entry.Name, keep)
	return err
}

// drop takes away what a failed Open made; the turn has not begun.
func (pl *Place) drop() {
	if pl.src != nil {
		pl.src.close()
	}
	_, _ = pl.places.remove(context.Background(), pl.entry.Name, false)
}
