package host

import (
	"context"
	"regexp"

	"witan/kernel"
	"witan/kernel/tree"
)

// contentKinds are packs that are what somebody wrote, and name nothing: a
// digest in them is a word.
var contentKinds = map[string]bool{"text": true, "prompt": true, "blob": true, "artifact": true, "stderr": true}

var digestText = regexp.MustCompile(`"sha256:[0-9a-f]{64}"`)

// references counts for each pack how many records of ledgers, messages and
// other packs name it. It reads everything, so it is for people who look and not for
// anything that works. What is damaged counts nothing: check names it.
func (h *Host) references(ctx context.Context) (map[kernel.Digest]int, error) {
	refs := map[kernel.Digest]int{}
	for s, err := range h.store.Ledger.Summaries(ctx) {
		if err != nil {
			return nil, err
		}
		for r, err := range h.store.Ledger.Read(ctx, s.Run, 1) {
			if err != nil {
				break
			}
			count(refs, named(r.Body))
		}
	}
	for c, err := range h.store.Conversations.Conversations(ctx) {
		if err != nil {
			return nil, err
		}
		for m, err := range h.store.Conversations.Messages(ctx, c.ID, 0) {
			if err != nil {
				break
			}
			names := []kernel.Digest{m.Text}
			for _, at := range m.Attachments {
				names = append(names, at.Hash)
			}
			count(refs, names)
		}
	}
	for p, err := range h.store.Packs.List(ctx) {
		if err != nil {
			return nil, err
		}
		if contentKinds[p.Kind] {
			continue
		}
		b, err := h.store.Packs.Get(ctx, p.Hash)
		if err != nil {
			continue
		}
		if p.Kind == "tree" {
			count(refs, below(b))
			continue
		}
		count(refs, named(b))
	}
	return refs, ctx.Err()
}

// count adds one for each of a source's digests, however often it names it.
func count(refs map[kernel.Digest]int, named []kernel.Digest) {
	seen := make(map[kernel.Digest]bool, len(named))
	for _, d := range named {
		if !seen[d] {
			seen[d] = true
			refs[d]++
		}
	}
}

// named are the digests in JSON.
func named(b []byte) []kernel.Digest {
	var out []kernel.Digest
	for _, m := range digestText.FindAll(b, -1) {
		if d, err := kernel.ParseDigest(string(m[1 : len(m)-1])); err == nil {
			out = append(out, d)
		}
	}
	return out
}

// below are the digests in a folder.
func below(b []byte) []kernel.Digest {
	entries, err := tree.Decode(b)
	if err != nil {
		return nil
	}
	var out []kernel.Digest
	for _, e := range entries {
		out = append(out, e.Hash)
	}
	return out
}
