package commit

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"witan/kernel"
	"witan/kernel/tree"
)

// maxMerge bounds the files that are merged.
const maxMerge = 16 << 20

// merger merges texts with git.
type merger struct{ run kernel.Runner }

// three decides a file that both sides changed. size is that of theirs.
func (w *workspace) three(ctx context.Context, s step, base, theirs tree.Found, size int64) (step, string, error) {
	ours := found(s.was.Hash, s.was.Mode)
	if theirs.Absent() && w.sameText(ctx, s, base) {
		s.is = tree.Found{}
		return s, "", nil
	}
	switch {
	case theirs.Absent():
		return s, "was changed here, and the result deletes it", nil
	case ours.Mode == tree.ModeLink || theirs.Mode == tree.ModeLink || base.Mode == tree.ModeLink:
		return s, "is a link on one side", nil
	}
	if s.is.Mode = theirs.Mode; theirs.Mode == base.Mode {
		s.is.Mode = ours.Mode
	}
	switch {
	case ours.Hash == theirs.Hash || theirs.Hash == base.Hash:
		return s, "", nil // the mode, if anything
	case ours.Hash == base.Hash:
		s.is.Hash, s.is.Size = theirs.Hash, size
		return s, "", nil
	case s.was.Size > maxMerge || size > maxMerge:
		return s, "was changed here too, and is too large to merge", nil
	}
	a, err := w.root.ReadFile(filepath.FromSlash(s.name))
	if err != nil || kernel.Sum(a) != s.was.Hash {
		return s, "changes right now", nil
	}
	o, err := w.packs.Get(ctx, base.Hash)
	if err != nil {
		return s, "", err
	}
	b, err := w.packs.Get(ctx, theirs.Hash)
	if err != nil {
		return s, "", err
	}
	merged, why, err := w.merge.texts(ctx, a, o, b)
	if err != nil || why != "" {
		return s, why, err
	}
	s.is.Hash, s.is.Size = kernel.Sum(merged), int64(len(merged))
	if s.is.Hash != s.was.Hash {
		s.merged = merged
	}
	return s, "", nil
}

// sameText reports whether the file here differs from base by its line ends only.
func (w *workspace) sameText(ctx context.Context, s step, base tree.Found) bool {
	if s.was.Size > maxMerge || s.was.Mode != base.Mode || base.Mode == tree.ModeLink {
		return false
	}
	a, err := w.root.ReadFile(filepath.FromSlash(s.name))
	if err != nil {
		return false
	}
	o, err := w.packs.Get(ctx, base.Hash)
	return err == nil && bytes.Equal(as(ends(a), o), a)
}

// texts merges what theirs changed of base into ours. Where ours has other line ends
// throughout than base, it keeps them: git may have converted them on one side. A
// result counts only if merging again changes nothing, so that a repeat after a crash
// finds it done.
func (m merger) texts(ctx context.Context, ours, base, theirs []byte) (merged []byte, why string, err error) {
	for _, b := range [][]byte{ours, base, theirs} {
		if binary(b) {
			return nil, "was changed here too, and is no text", nil
		}
	}
	if to, from := ends(ours), ends(base); to != from && to != mixed && from != mixed {
		base = as(to, base)
		if ends(theirs) == from {
			theirs = as(to, theirs)
		}
	}
	switch {
	case bytes.Equal(ours, base):
		return theirs, "", nil
	case bytes.Equal(ours, theirs), bytes.Equal(base, theirs):
		return ours, "", nil
	}
	dir, err := os.MkdirTemp("", "witan-merge-")
	if err != nil {
		return nil, "", kernel.E("commit.Apply", kernel.ReadOnly, err, "there is no room to merge")
	}
	defer os.RemoveAll(dir)
	const clash = "was changed here too, at the same place"
	if merged, err = m.git(ctx, dir, ours, base, theirs); err == nil {
		var again []byte
		if again, err = m.git(ctx, dir, merged, base, theirs); err == nil && !bytes.Equal(again, merged) {
			return nil, clash, nil
		}
	}
	if kernel.IsKind(err, kernel.Unavailable) {
		return nil, clash, nil
	}
	return merged, "", err
}

func (m merger) git(ctx context.Context, dir string, ours, base, theirs []byte) ([]byte, error) {
	for name, b := range map[string][]byte{"ours": ours, "base": base, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return nil, kernel.E("commit.Apply", kernel.Internal, err, "there is no room to merge")
		}
	}
	g, err := tree.NewGit(ctx, m.run, dir)
	if err != nil {
		return nil, err
	}
	return g.Output(ctx, "merge-file", "-p", "-q", "ours", "base", "theirs")
}

// binary reports whether git would take b for one.
func binary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }

// Line ends of a text.
const (
	none = iota
	lf
	crlf
	mixed
)

func ends(b []byte) int {
	all, pairs := bytes.Count(b, []byte("\n")), bytes.Count(b, []byte("\r\n"))
	switch {
	case all == 0:
		return none
	case pairs == 0:
		return lf
	case pairs == all:
		return crlf
	}
	return mixed
}

// as gives b other line ends, if it has the same throughout.
func as(to int, b []byte) []byte {
	switch from := ends(b); {
	case from == lf && to == crlf:
		return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
	case from == crlf && to == lf:
		return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}
	return b
}
