package host

import (
	"context"
	"encoding/json"
	"errors"

	"witan/cmd/internal/say"
	"witan/kernel"
)

// StageArgs is `witan stage NAME < in.json`: Input is the envelope as read.
type StageArgs struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type stageIn struct {
	Version int             `json:"version"`
	Stage   string          `json:"stage"`
	Options json.RawMessage `json:"options"`
	In      json.RawMessage `json:"in"`
}

type stageOut struct {
	Version int             `json:"version"`
	Out     json.RawMessage `json:"out"`
	Hash    kernel.Digest   `json:"hash"`
	Usage   *kernel.Usage   `json:"usage"`
}

// opStage runs one stage alone, on an object given inline or by hash.
func opStage(ctx context.Context, h *Host, a StageArgs, emit Emit) error {
	const op = "host.stage"
	node, ok := h.engine.Registry.Lookup(a.Name)
	if !ok {
		var known []string
		for _, s := range h.engine.Registry.Specs() {
			known = append(known, s.ID)
		}
		return unknown("stage", a.Name, known)
	}
	var in stageIn
	if err := kernel.DecodeStrict(a.Input, &in); err != nil {
		return kernel.E(op, kernel.Invalid, err, "the input is not a stage envelope").
			WithNext(`give {"version":1,"stage":"%s","options":{},"in":{…}}`, a.Name)
	}
	if in.Version != 1 || in.Stage != "" && in.Stage != a.Name {
		return kernel.E(op, kernel.Invalid, nil, "the envelope is of version %d for stage %q", in.Version, in.Stage).
			WithNext("use version 1 and stage %q", a.Name)
	}
	obj, err := h.stageObject(ctx, in.In)
	if err != nil {
		return err
	}
	env := kernel.Env{Run: "", Attempt: "atp_alone", Now: h.engine.Clock.Now, Log: h.opts.Log, Packs: h.store.Packs, Options: in.Options,
		Emit: func(kernel.Event) {}, Note: func(context.Context, kernel.RecordKind, any) error { return nil }}
	out, err := node.RunJSON(ctx, env, obj)
	if err != nil {
		return stageError(a.Name, err)
	}
	d, err := h.store.Packs.Put(ctx, "stage.out", out)
	if err != nil {
		return err
	}
	res := stageOut{Version: 1, Out: out, Hash: d}
	var u struct {
		Usage *kernel.Usage `json:"usage"`
	}
	if json.Unmarshal(out, &u) == nil {
		res.Usage = u.Usage
	}
	return give(emit, res)
}

// stageObject resolves {"hash":…} and brings the object into canonical form.
func (h *Host) stageObject(ctx context.Context, in json.RawMessage) ([]byte, error) {
	var ref struct {
		Hash kernel.Digest `json:"hash"`
	}
	if kernel.DecodeStrict(in, &ref) == nil && !ref.Hash.IsZero() {
		return h.store.Packs.Get(ctx, ref.Hash)
	}
	b, err := kernel.CanonicalJSON(in)
	if err != nil {
		return nil, kernel.E("host.stage", kernel.Invalid, err, `"in" is neither an object nor {"hash":…}`).WithNext("see witan stage list --json")
	}
	return b, nil
}

// stageError tells a stage's own failure with exit code 3.
func stageError(name string, err error) error {
	var f *kernel.Failure
	if !errors.As(err, &f) {
		return err
	}
	return &say.Exit{Code: say.Unwell, Text: name + " failed: " + f.Error()}
}

func opStageList(ctx context.Context, h *Host, _ none, emit Emit) error {
	for _, s := range h.engine.Registry.Specs() {
		if err := give(emit, s); err != nil {
			return err
		}
	}
	return nil
}
