package isolation

import (
	"context"
	"os"
	"path/filepath"

	"witan/kernel"
	"witan/kernel/tree"
)

// Where a turn works.
const (
	Worktree  = "worktree"  // of the repository, below the root
	Copy      = "copy"      // below the root
	InPlace   = "in-place"  // the workspace itself, for a writer with consent
	Workspace = "workspace" // the workspace itself, not to be written
)

// Places makes the folders of turns below Root. Two hosts must not share a root.
type Places struct {
	Root  string
	Run   kernel.Runner // for git
	Packs kernel.Packs
}

// worktreeTries is how often a command on worktrees is run.
const worktreeTries = 4

// worktrees runs a command on the worktrees of a repository. Git looks at all of them
// when it adds one, and gives up at one that is half made: we wait for each other, and
// for what else runs git there it is asked again; it leaves nothing behind then.
func worktrees(ctx context.Context, g *tree.Git, repository string, args ...string) (out []byte, err error) {
	defer lock(repository)()
	for range worktreeTries {
		b, again := g.Output(ctx, append([]string{"worktree"}, args...)...)
		if again == nil {
			return b, nil
		}
		if err == nil {
			err = again // the first says what is wrong
		}
		if !kernel.IsKind(again, kernel.Unavailable) {
			break
		}
	}
	return nil, err
}

// Open gives turn t of a snapshot its folder. A writer gets a worktree or a copy, or
// with consent the workspace itself; a reader of a candidate a worktree or a copy;
// everybody else the workspace. After an error nothing is left, unless its removal
// failed too: then Leftovers has it.
func (p *Places) Open(ctx context.Context, t kernel.Turn, snap kernel.Snapshot) (*Place, error) {
	ws := snap.Workspace
	apart := t.Write && !t.InPlace || !t.Write && !t.Candidate.IsZero()
	if !apart && !t.Write {
		return &Place{Dir: ws.Path, How: Workspace}, nil
	}
	if err := p.usable(ctx, ws); err != nil {
		return nil, err
	}
	cand, err := p.candidate(ctx, t)
	if err != nil {
		return nil, err
	}
	e, err := p.create(t, ws)
	if err != nil {
		return nil, err
	}
	pl := &Place{places: p, entry: e, turn: t, snap: snap, cand: cand}
	if apart {
		err = pl.apart(ctx)
	} else {
		err = pl.inPlace(ctx)
	}
	if err == nil {
		e.Ready = true
		err = e.save()
	}
	if err != nil {
		pl.drop()
		return nil, err
	}
	if !t.Write {
		pl.Top = ""
	}
	return pl, nil
}

// usable refuses a workspace that nobody can work on.
func (p *Places) usable(ctx context.Context, ws kernel.Workspace) error {
	switch ws.Kind {
	case "git":
		return nil
	case "folder":
		if bare, err := p.bare(ctx, ws.Tree); err != nil || !bare {
			return err
		}
		return kernel.E("isolation.Open", kernel.Unsupported, nil, "the workspace %s is a bare repository, which has no files to work on", ws.Path).
			WithNext("clone it and choose the clone")
	}
	return kernel.E("isolation.Open", kernel.Invalid, nil, "the snapshot holds no folder to work on").WithNext("use freeze/workspace")
}

// bare reports whether the root of a frozen folder is what git keeps of a repository.
func (p *Places) bare(ctx context.Context, root kernel.Digest) (bool, error) {
	b, err := p.Packs.Get(ctx, root)
	if err != nil {
		return false, err
	}
	entries, err := tree.Decode(b)
	parts := 0
	for _, e := range entries {
		if (e.Name == "objects" || e.Name == "refs") == (e.Type == tree.Dir) && (e.Name == "objects" || e.Name == "refs" || e.Name == "HEAD") {
			parts++
		}
	}
	return parts == 3, err
}

// candidate is what the turn goes on from.
func (p *Places) candidate(ctx context.Context, t kernel.Turn) (kernel.Candidate, error) {
	if t.Candidate.IsZero() {
		return kernel.Candidate{Snapshot: t.Snapshot}, nil
	}
	c, err := kernel.GetObject[kernel.Candidate](ctx, p.Packs, t.Candidate)
	if err == nil && c.Snapshot != t.Snapshot {
		err = kernel.E("isolation.Open", kernel.Invalid, nil, "the candidate belongs to another snapshot than the turn")
	}
	return c, err
}

// apart fills a place of its own.
func (pl *Place) apart(ctx context.Context) error {
	ws, p := pl.snap.Workspace, pl.places
	pl.How, pl.Dir = pl.entry.How, pl.entry.dir()
	if pl.How == Worktree {
		if err := pl.worktree(ctx); err != nil {
			return err
		}
	} else if err := os.Mkdir(pl.entry.dir(), 0o700); err != nil {
		return disk("isolation.Open", err, "the copy cannot be made")
	}
	at := pl.entry.dir()
	switch {
	case ws.Kind == "folder":
		if err := tree.Checkout(ctx, p.Packs, ws.Tree, at); err != nil {
			return err
		}
	default:
		if err := tree.Overlay(ctx, p.Packs, tree.Dirty(ws.Dirty), at); err != nil {
			return err
		}
		at = filepath.Join(at, filepath.FromSlash(tree.DecodePath(ws.Sub)))
		if err := os.MkdirAll(at, 0o755); err != nil {
			return disk("isolation.Open", err, "the workspace cannot be made in its copy")
		}
	}
	if err := tree.Overlay(ctx, p.Packs, pl.cand.Files, at); err != nil {
		return err
	}
	pl.Dir, pl.Top = at, at
	return pl.watch(ctx)
}

// inPlace notes the state of the person's folder before the turn.
func (pl *Place) inPlace(ctx context.Context) error {
	pl.How, pl.Dir, pl.Top = InPlace, pl.snap.Workspace.Path, pl.snap.Workspace.Path
	return pl.watch(ctx)
}

// watch prepares the comparison of what the turn leaves with what is there now.
func (pl *Place) watch(ctx context.Context) (err error) {
	if pl.snap.Workspace.Kind == "git" {
		pl.src, err = pl.openGit(ctx)
	} else {
		pl.src, err = pl.openFolder(ctx)
	}
	return err
}

// disk is an error of the file system.
func disk(op string, err error, what string, args ...any) error {
	kind := kernel.Internal
	if os.IsPermission(err) {
		kind = kernel.ReadOnly
	}
	return kernel.E(op, kind, err, what, args...)
}
