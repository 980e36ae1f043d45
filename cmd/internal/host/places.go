package host

import (
	"context"
	"path/filepath"

	"witan/kernel"
	"witan/stages/invoke"
	"witan/stages/isolation"
)

// places makes the folders in which writers work and candidates are read.
func (h *Host) places() *isolation.Places {
	return &isolation.Places{Root: filepath.Join(h.opts.Home, "places"), Run: h.runner(), Packs: h.store.Packs}
}

// place is the folder of a turn.
func (h *Host) place(ctx context.Context, env kernel.Env, t kernel.Turn, s kernel.Snapshot) (invoke.Place, error) {
	p, err := h.places().Open(ctx, t, s)
	if err != nil {
		return invoke.Place{}, err
	}
	if p.How == isolation.Workspace {
		return invoke.Place{Dir: p.Dir}, nil
	}
	if t.Write {
		env.Emit(kernel.Event{Type: "notice", Code: "isolation", Text: where[p.How]})
	}
	out := invoke.Place{Dir: p.Dir, Brief: p.How != isolation.InPlace, Close: p.Close}
	if t.Write {
		out.Capture = func(ctx context.Context) (kernel.Digest, []kernel.Change, error) {
			d, _, changes, err := p.Capture(ctx)
			return d, changes, err
		}
	}
	return out, nil
}

// where says in one clause where a writer works.
var where = map[string]string{isolation.Worktree: "writes in a git worktree of its own", isolation.Copy: "writes in a copy of the folder",
	isolation.InPlace: "writes in the folder itself, as you asked"}

// tidyPlaces takes away what runs of a dead host left; what they had not handed
// over is kept. What cannot be proved to be ours stays, and doctor names it.
func (h *Host) tidyPlaces(ctx context.Context) {
	p := h.places()
	left, err := p.Leftovers(ctx, h.engine.Active)
	if err != nil {
		h.opts.Log.Error("places not listed", "err", err)
		return
	}
	for _, l := range left {
		kept, err := p.Remove(ctx, l.Name)
		h.opts.Log.Info("place of a dead run", "name", l.Name, "kept", kept, "err", err)
	}
}
