package deliver

import (
	"context"
	"strings"

	"witan/kernel"
	"witan/kernel/marker"
)

// Bounds of one delivery; what is beyond them is left out and said.
const (
	historyChars      = 60_000 // of earlier messages, except the person's first and last
	quotedChars       = 16_000 // of one earlier message of an agent; a person's are short by themselves
	instructionsBytes = 64 << 10
)

type stage struct{}

// New returns the stage "deliver/prompt".
func New() kernel.Deliver { return stage{} }

func (stage) Spec() kernel.Spec {
	return kernel.Spec{ID: "deliver/prompt", Version: 1, Class: kernel.Pure, Parallel: true, Touches: []string{"store"},
		Doc: "Builds the prompt with the turn block and fingerprints it", Options: kernel.NoOptions,
		In: kernel.Schema[kernel.Turn](), Out: kernel.Schema[kernel.Delivery]()}
}

func (stage) Run(ctx context.Context, env kernel.Env, t kernel.Turn) (kernel.Delivery, error) {
	snap, err := kernel.GetObject[kernel.Snapshot](ctx, env.Packs, t.Snapshot)
	if err != nil {
		return kernel.Delivery{}, err
	}
	block, err := turnBlock(t, snap)
	if err != nil {
		return kernel.Delivery{}, err
	}
	w := writer{packs: env.Packs, turn: t, snap: snap, complete: true}
	if err := w.prose(ctx); err != nil {
		return kernel.Delivery{}, err
	}
	prompt := []byte(strings.TrimLeft(marker.Neutralise(w.String()), "\n") + "\n" + marker.TurnOpen + "\n" + block + "\n" + marker.TurnClose + "\n")
	turn, err := kernel.Canonical(t)
	if err != nil {
		return kernel.Delivery{}, err
	}
	d := kernel.Delivery{Version: kernel.ObjectVersion, Turn: kernel.Sum(turn), Fingerprint: kernel.Fingerprint(prompt),
		Bytes: int64(len(prompt)), Session: session(t), Complete: w.complete}
	d.Prompt, err = env.Packs.Put(ctx, "prompt", prompt)
	return d, err
}

func session(t kernel.Turn) string {
	switch {
	case t.Continue:
		return "resume"
	case t.Rebuilt:
		return "rebuilt"
	}
	return "new"
}
