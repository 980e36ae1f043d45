package host

import (
	"context"
	"encoding/json"

	"witan/kernel"
	"witan/kernel/engine"
)

// outcomeKinds are the records that `outcomes` lists.
var outcomeKinds = map[kernel.RecordKind]bool{kernel.FindingRec: true, kernel.EvidenceRec: true, kernel.ArtifactRec: true,
	kernel.VerifyRec: true, kernel.AdoptionRec: true}

func opOutcomes(ctx context.Context, h *Host, a RunRef, emit Emit) error {
	if _, err := h.run(ctx, a.Run); err != nil {
		return err
	}
	l := engine.NewLines(h.store.Packs, kernel.RunID(a.Run))
	for r, err := range h.store.Ledger.Read(ctx, kernel.RunID(a.Run), 1) {
		if err != nil {
			return err
		}
		if !outcomeKinds[r.Kind] {
			continue
		}
		lines, err := l.Record(ctx, r)
		if err != nil {
			return err
		}
		for _, ln := range lines {
			if err := emit(ln); err != nil {
				return err
			}
		}
	}
	return nil
}

// AdoptArgs says what a person makes of a finding.
type AdoptArgs struct {
	Finding string `json:"finding"`
	Word    string `json:"word"` // accept, reject, reopen
}

// adoptions are the words of a person and the states they lead to.
var adoptions = map[string]string{"accept": "accepted", "reject": "rejected", "reopen": "reopened"}

func opAdopt(ctx context.Context, h *Host, a AdoptArgs, emit Emit) error {
	const op = "host.adopt"
	state, ok := adoptions[a.Word]
	if !ok {
		return kernel.E(op, kernel.Invalid, nil, "%q is no decision about a finding", a.Word).WithNext("use accept, reject or reopen")
	}
	run, last, err := h.finding(ctx, kernel.OutcomeID(a.Finding))
	if err != nil {
		return err
	}
	b := kernel.AdoptionBody{By: "person", ID: kernel.OutcomeID(a.Finding), State: state}
	if last != state { // the same again is nothing new
		if err := h.engine.Adopt(ctx, run, b); err != nil {
			return err
		}
	}
	return give(emit, struct {
		Type string       `json:"type"`
		Run  kernel.RunID `json:"run"`
		kernel.AdoptionBody
	}{"adoption", run, b})
}

// finding finds the run of a finding, newest run first, and its last adoption.
func (h *Host) finding(ctx context.Context, id kernel.OutcomeID) (kernel.RunID, string, error) {
	unknown := kernel.E("host.finding", kernel.NotFound, nil, "finding %q is unknown", id).WithNext("see witan outcomes RUN")
	if !kernel.ValidID(kernel.FindingPrefix, string(id)) {
		return "", "", unknown
	}
	for sum, err := range h.store.Ledger.Summaries(ctx) {
		if err != nil {
			return "", "", err
		}
		found, state := false, ""
		for r, err := range h.store.Ledger.Read(ctx, sum.Run, 1) {
			if err != nil {
				break // named by ledger verify; the finding may be in another run
			}
			if r.Kind != kernel.FindingRec && r.Kind != kernel.AdoptionRec {
				continue
			}
			var b struct {
				ID    kernel.OutcomeID `json:"id"`
				State string           `json:"state"`
			}
			if json.Unmarshal(r.Body, &b) == nil && b.ID == id {
				found, state = true, b.State
			}
		}
		if found {
			return sum.Run, state, nil
		}
	}
	return "", "", unknown
}
