package builtin

import (
	"cmp"
	"fmt"
	"slices"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// held shows what an agent does and holds back what it found until it is known
// what to make of it.
type held struct {
	work.Emit
	all []outcome
}

type outcome struct {
	kernel.Outcome
	content []byte
}

func (h *held) Outcome(o kernel.Outcome, content []byte) {
	h.all = append(h.all, outcome{o, content})
}

// release sends what was held, but for the findings that skip names.
func (h *held) release(skip func(kernel.Outcome) bool) {
	for _, o := range h.all {
		if o.Type != "finding" || !skip(o.Outcome) {
			h.Emit.Outcome(o.Outcome, o.content)
		}
	}
	h.all = nil
}

func none(kernel.Outcome) bool { return false }

// findings are those held, the worst first.
func (h *held) findings() []kernel.Outcome {
	var out []kernel.Outcome
	for _, o := range h.all {
		if o.Type == "finding" {
			out = append(out, o.Outcome)
		}
	}
	rank := []string{"high", "medium", "low", "info"}
	slices.SortStableFunc(out, func(a, b kernel.Outcome) int {
		return cmp.Compare(slices.Index(rank, a.Severity), slices.Index(rank, b.Severity))
	})
	return out
}

// quiet is for an analysis that nobody is to see.
type quiet struct{}

func (quiet) Plan([]work.Step)               {}
func (quiet) Tool(_, _ string) func(bool)    { return func(bool) {} }
func (quiet) Outcome(kernel.Outcome, []byte) {}

// at names the place of a finding and what it is.
func at(o kernel.Outcome) string {
	place := o.Path
	if o.Line > 0 {
		place = fmt.Sprintf("%s:%d", o.Path, o.Line)
	}
	return work.Code(place) + ": " + work.Show(o.Title)
}
