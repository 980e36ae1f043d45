package verify

import (
	"cmp"
	"context"
	"path"
	"slices"

	"witan/kernel"
	"witan/kernel/tree"
)

// subject is the content that the claims of an answer are about: what was frozen,
// with the candidate over it. Of a git folder untracked files of the person are no
// part of it, unless the candidate has them: a check that passes only thanks to one
// would fail everywhere else.
type subject struct {
	ws      kernel.Workspace
	files   []kernel.CandidateFile
	content kernel.Digest // of exactly this
	stale   bool          // the turn changed files, and nobody knows how
}

// subjectOf finds it: the candidate that the turn left or, if it wrote nothing, the
// one that it was given to read.
func subjectOf(ctx context.Context, p kernel.Packs, cl kernel.Claim) (s subject, err error) {
	t, err := kernel.GetObject[kernel.Turn](ctx, p, cl.Turn)
	if err != nil {
		return s, err
	}
	r, err := kernel.GetObject[kernel.Reply](ctx, p, cl.Reply)
	if err != nil {
		return s, err
	}
	snap, err := kernel.GetObject[kernel.Snapshot](ctx, p, t.Snapshot)
	if err != nil {
		return s, err
	}
	s.ws, s.stale = snap.Workspace, len(r.Changed) > 0 && r.Candidate.IsZero()
	s.ws.Dirty = slices.DeleteFunc(slices.Clone(s.ws.Dirty), func(d kernel.DirtyFile) bool { return d.Status == "untracked" })
	if id := cmp.Or(r.Candidate, t.Candidate); !id.IsZero() {
		c, err := kernel.GetObject[kernel.Candidate](ctx, p, id)
		if err != nil {
			return s, err
		}
		if c.Snapshot != t.Snapshot {
			return s, kernel.E("verify", kernel.Invalid, nil, "the candidate belongs to another snapshot than the turn")
		}
		s.files = c.Files
	}
	s.content, err = s.sum()
	return s, err
}

// sum names the content: the commit or tree, and the files that differ from it.
func (s subject) sum() (kernel.Digest, error) {
	type file struct {
		Hash kernel.Digest `json:"hash,omitzero"`
		Mode string        `json:"mode,omitempty"`
	}
	differs := map[string]file{}
	put := func(name string, d kernel.Digest, mode string) {
		if differs[name] = (file{}); !d.IsZero() {
			differs[name] = file{d, tree.ModeOf(tree.TypeOf(mode))}
		}
	}
	for _, d := range s.ws.Dirty {
		put(d.Path, d.Hash, d.Mode)
	}
	for _, f := range s.files {
		put(path.Join(s.ws.Sub, f.Path), f.Hash, f.Mode)
	}
	b, err := kernel.Canonical(struct {
		Kind   string          `json:"kind"`
		Commit string          `json:"commit,omitempty"`
		Sub    string          `json:"sub,omitempty"`
		Tree   kernel.Digest   `json:"tree,omitzero"`
		Files  map[string]file `json:"files"`
	}{s.ws.Kind, s.ws.Commit, s.ws.Sub, s.ws.Tree, differs})
	return kernel.SumDomain("candidate/1", b), err
}
