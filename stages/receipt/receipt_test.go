package receipt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stages/receipt"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	good  = `{"version":1,"phase":"respond","summary":"done","claims":[{"text":"tests pass","command":"go test","exit":0}]}`
	canon = `{"claims":[{"command":"go test","exit":0,"text":"tests pass"}],"phase":"respond","summary":"done","version":1}`
)

func wrap(r string) string { return "\n<witan-receipt>\n" + r + "\n</witan-receipt>\n" }

// run gives a reply with the text and, if not empty, the tool's receipt.
func run(t *testing.T, s kernel.Receipt, phase, text, tool string) (kernel.Claim, string, error) {
	t.Helper()
	ctx, packs := context.Background(), kerneltest.NewMem()
	must := func(d kernel.Digest, err error) kernel.Digest {
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	r := kernel.Reply{Version: 1, Stop: "end_turn", Outcomes: []kernel.Outcome{{Type: "evidence", ID: "evd_1"}}}
	r.Turn = must(kernel.PutObject(ctx, packs, "turn", kernel.Turn{Version: 1, Phase: phase, Round: 1, Agent: "alpha", Extra: json.RawMessage(`{"item":{"id":"W1"}}`)}))
	r.Delivery = must(kernel.PutObject(ctx, packs, "delivery", kernel.Delivery{Version: 1, Turn: r.Turn, Session: "resume"}))
	if text != "" {
		r.Text = must(packs.Put(ctx, "text", []byte(text)))
	}
	if tool != "" {
		r.Receipt = json.RawMessage(tool)
	}
	reply := must(kernel.PutObject(ctx, packs, "reply", r))
	c, err := s.Run(ctx, kernel.Env{Packs: packs}, r)
	if err != nil {
		return c, "", err
	}
	if c.Reply != reply || c.Turn != r.Turn || c.Session != "resume" || len(c.Outcomes) == 0 || c.Outcomes[0].ID != "evd_1" {
		t.Errorf("does not lead back to the reply: %+v", c)
	}
	if c.Text.IsZero() {
		return c, "", nil
	}
	b, err := packs.Get(ctx, c.Text)
	if err != nil {
		t.Fatal(err)
	}
	return c, string(b), nil
}

func TestWhereAReceiptComesFrom(t *testing.T) {
	for _, tc := range []struct{ name, text, tool, source, visible string }{
		{"in the text", "Hello" + wrap(good), "", "text", "Hello"},
		{"by the tool", "Hello", good, "mcp", "Hello"},
		{"both, written differently", "Hello" + wrap(good), canon, "mcp", "Hello"},
		{"nothing else", wrap(good), "", "text", ""},
		{"only by the tool", "", good, "mcp", ""},
	} {
		for _, s := range []kernel.Receipt{receipt.Strict(), receipt.Lenient()} {
			c, visible, err := run(t, s, "respond", tc.text, tc.tool)
			if err != nil || c.Source != tc.source || string(c.Receipt) != canon || visible != tc.visible || len(c.Dropped) != 0 {
				t.Errorf("%s, %s: %+v, %q, %v", tc.name, s.Spec().ID, c, visible, err)
				continue
			}
			if len(c.Claims) != 1 || c.Claims[0].Command != "go test" || c.Claims[0].Exit == nil || *c.Claims[0].Exit != 0 {
				t.Errorf("%s, %s: claims %+v", tc.name, s.Spec().ID, c.Claims)
			}
		}
	}
}

func TestWhatIsWrong(t *testing.T) {
	other := strings.Replace(good, "done", "undone", 1)
	for _, tc := range []struct{ name, text, tool, code, visible string }{
		{"missing", "Hello", "", "receipt_missing", "Hello"},
		{"nothing at all", "", "", "receipt_missing", ""},
		{"not at the end", wrap(good) + "Hello", "", "receipt_missing", strings.TrimRight(wrap(good)+"Hello", "\n")},
		{"never closed", "Hello<witan-receipt>" + good, "", "receipt_missing", "Hello<witan-receipt>" + good},
		{"invalid in the text", "Hello" + wrap("{"), "", "receipt_invalid", "Hello"},
		{"invalid by the tool", "Hello", `{"version":1}`, "receipt_invalid", "Hello"},
		{"of another phase", "Hello" + wrap(`{"version":1,"phase":"work","summary":"s"}`), "", "receipt_stale", "Hello"},
		{"too large", "Hello" + wrap("{"+strings.Repeat(" ", 65_536)+good[1:]), "", "receipt_too_large", "Hello"},
		{"two that differ", "Hello" + wrap(good), other, "receipt_mismatch", "Hello"},
	} {
		_, _, err := run(t, receipt.Strict(), "respond", tc.text, tc.tool)
		var f *kernel.Failure
		if !errors.As(err, &f) || f.Class != kernel.ClassProtocol || f.Reason != tc.code || f.Text == "" {
			t.Errorf("%s, strict: %v", tc.name, err)
		}
		if tc.name == "invalid by the tool" {
			continue // lenient reading takes what is there: see TestLenientKeepsWhatItCan
		}
		c, visible, err := run(t, receipt.Lenient(), "respond", tc.text, tc.tool)
		want := []string{tc.code}
		if tc.code == "receipt_missing" {
			want = nil // none is fine
		}
		if err != nil || c.Source != "none" || c.Receipt != nil || len(c.Claims) != 0 || visible != tc.visible || !slices.Equal(c.Dropped, want) {
			t.Errorf("%s, lenient: %+v, %q, %v", tc.name, c, visible, err)
		}
	}
}

func TestStrictNamesThePlace(t *testing.T) {
	_, _, err := run(t, receipt.Strict(), "respond", wrap(`{"version":1,"phase":"respond","summary":"s","claims":[{"text":1}]}`), "")
	if err == nil || !strings.Contains(err.Error(), "/claims/0/text") {
		t.Errorf("%v", err)
	}
	if _, _, err = run(t, receipt.Strict(), "work", wrap(`{"version":1,"phase":"work","summary":"s","item":"W2","artifacts":[],"claims":[]}`), ""); err == nil || !strings.Contains(err.Error(), "receipt_stale") {
		t.Errorf("another item: %v", err)
	}
}

func TestLenientKeepsWhatItCan(t *testing.T) {
	c, _, err := run(t, receipt.Lenient(), "respond", wrap(`{"version":1,"phase":"respond","summary":7,"mood":"good","claims":[{"text":"a"},{"text":1}]}`), "")
	if err != nil || string(c.Receipt) != `{"claims":[{"text":"a"}],"phase":"respond","version":1}` || len(c.Claims) != 1 || len(c.Dropped) == 0 {
		t.Errorf("%+v, %v", c, err)
	}
	for name, tc := range map[string]struct{ text, tool, source string }{
		"the text is wrong": {wrap("{"), good, "mcp"},
		"the tool is wrong": {wrap(good), "[]", "text"},
	} {
		c, _, err := run(t, receipt.Lenient(), "respond", tc.text, tc.tool)
		if err != nil || c.Source != tc.source || string(c.Receipt) != canon || !slices.Contains(c.Dropped, "receipt_invalid") {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestNoneLooksForNothing(t *testing.T) {
	c, visible, err := run(t, receipt.None(), "respond", "Hello"+wrap(good), good)
	if err != nil || c.Source != "none" || c.Receipt != nil || len(c.Claims) != 0 || visible != "Hello" {
		t.Errorf("%+v, %q, %v", c, visible, err)
	}
}

func TestFindingsBecomeOutcomes(t *testing.T) {
	text := wrap(`{"version":1,"phase":"challenge","summary":"s","verdict":"contradict","findings":[
		{"severity":"high","stance":"contradict","title":"T","detail":"D","path":"a.go","line":3},{"severity":"low","title":"U","detail":"E"}]}`)
	a, _, err := run(t, receipt.Strict(), "challenge", text, "")
	if err != nil || len(a.Outcomes) != 3 {
		t.Fatalf("%+v, %v", a.Outcomes, err)
	}
	f := a.Outcomes[1]
	want := kernel.Outcome{Type: "finding", ID: f.ID, Agent: "alpha", Severity: "high", Stance: "contradict", Title: "T", Detail: "D", Path: "a.go", Line: 3}
	if got, _ := kernel.Canonical(f); !bytes.Equal(got, must(kernel.Canonical(want))) || !strings.HasPrefix(string(f.ID), kernel.FindingPrefix) || f.ID == a.Outcomes[2].ID {
		t.Errorf("%+v", f)
	}
	b, _, err := run(t, receipt.Strict(), "challenge", text, "")
	if x, y := must(kernel.Canonical(a)), must(kernel.Canonical(b)); err != nil || !bytes.Equal(x, y) {
		t.Errorf("the same reply gave another claim:\n%s\n%s", x, y)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestSpecs(t *testing.T) {
	for _, s := range []kernel.Receipt{receipt.Strict(), receipt.Lenient(), receipt.None()} {
		b, err := json.MarshalIndent(s.Spec(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		p := filepath.Join("testdata", strings.ReplaceAll(s.Spec().ID, "/", "-")+".json")
		if *update {
			if err := os.WriteFile(p, append(b, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(p)
		if err != nil || !bytes.Equal(append(b, '\n'), want) {
			t.Errorf("%s differs (-update writes it anew), %v", p, err)
		}
	}
}
