package receipt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stages/receipt"
)

// work runs the stage on a work turn that left files and changed some.
func work(t *testing.T, s kernel.Receipt, text string) kernel.Claim {
	t.Helper()
	ctx, packs := t.Context(), kerneltest.NewMem()
	put := func(v any) kernel.Digest {
		d, err := kernel.PutObject(ctx, packs, "x", v)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	turn := put(kernel.Turn{Version: 1, Phase: "work", Round: 1, Agent: "alpha", Extra: []byte(`{"item":{"id":"W1"}}`)})
	answer, err := packs.Put(ctx, "text", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r := kernel.Reply{Version: 1, Turn: turn, Delivery: put(kernel.Delivery{Version: 1, Turn: turn}), Text: answer, Stop: "end_turn",
		Tools: []kernel.ToolCall{{ID: "1"}}, MoreTool: 2, Changed: []kernel.Change{{Path: "a.go", What: "modified"}},
		Files:     []kernel.OutputFile{{Path: "notes.md", Hash: kernel.Sum([]byte("n")), Bytes: 1}},
		Candidate: put(kernel.Candidate{Version: 1, Files: []kernel.CandidateFile{{Path: "a.go", What: "modified", Hash: kernel.Sum([]byte("a"))}}})}
	c, err := s.Run(ctx, kernel.Env{Packs: packs}, r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func shown(c kernel.Claim) string {
	var out []string
	for _, o := range c.Outcomes {
		out = append(out, fmt.Sprintf("%s %s %s", o.Type, o.Kind, o.Path))
	}
	return strings.Join(out, "; ")
}

// What a turn made is an outcome of it, named or not; what it did not make is
// none, whoever names it.
func TestWorkMakesOutcomes(t *testing.T) {
	c := work(t, receipt.Strict(), "Done.\n"+wrap(`{"version":1,"phase":"work","summary":"the first part","item":"W1","artifacts":["./a.go","notes.md","other.go"],"claims":[]}`))
	if got := shown(c); got != "artifact file notes.md; artifact change a.go; artifact text ; evidence turn " {
		t.Error(got)
	}
	if !slices.Equal(c.Dropped, []string{`artifact "other.go"`}) || c.Source != "text" {
		t.Errorf("dropped %q, source %s", c.Dropped, c.Source)
	}
	ev := c.Outcomes[3]
	if ev.Level != "observed" || ev.Hash != c.Reply || ev.Summary != "turn of alpha: 3 tool calls, 1 files changed, 1 handed over" || c.Outcomes[2].Summary != "the first part" {
		t.Errorf("%+v", ev)
	}
}

// A receipt that is missing is made up only where it says nothing but that the
// turn ended, and only where that is allowed.
func TestSyntheticReceipt(t *testing.T) {
	c := work(t, receipt.Lenient(), "Done.")
	if c.Source != "synthetic" || !strings.Contains(string(c.Receipt), `"item":"W1"`) || len(c.Claims) != 0 {
		t.Errorf("%s %s", c.Source, c.Receipt)
	}
	if c := work(t, receipt.Lenient(), "Done."+wrap(`{"version":1,"phase":"work","item":"W2","summary":"s"}`)); c.Source != "none" || !slices.Contains(c.Dropped, "receipt_stale") {
		t.Errorf("%s %q", c.Source, c.Dropped)
	}
	for _, phase := range []string{"verification", "challenge", "proposal", "respond", "discuss"} {
		if c, _, err := run(t, receipt.Lenient(), phase, "text", ""); err != nil || c.Source != "none" || len(c.Receipt) > 0 {
			t.Errorf("%s: %s %s %v", phase, c.Source, c.Receipt, err)
		}
	}
}
