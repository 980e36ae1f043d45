package acp

import (
	"encoding/json"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

func text(u kernel.Usage) string {
	b, _ := json.Marshal(u)
	return string(b)
}

func TestUsage(t *testing.T) {
	const none = `{"input":null,"output":null,"cached":null,"cache_write":null,"reasoning":null,"cost_usd_micros":null,"complete":false}`
	in := func(input, output string) string {
		return `{"input":` + input + `,"output":` + output + `,"cached":null,"cache_write":null,"reasoning":null,"cost_usd_micros":null,"complete":true}`
	}
	for name, tc := range map[string]struct {
		rule    UsageRule
		unknown bool // what the session counted before
		results []string
		want    []string // "" = nothing was counted
	}{
		"turns":     {results: []string{`{"usage":{"inputTokens":5,"outputTokens":2}}`, `{"usage":{"inputTokens":4,"outputTokens":1}}`}, want: []string{in("5", "2"), in("4", "1")}},
		"nothing":   {results: []string{`{}`, `{"usage":null}`, `7`}, want: []string{"", "", ""}},
		"in part":   {results: []string{`{"usage":{"outputTokens":2}}`}, want: []string{`{"input":null,"output":2,"cached":null,"cache_write":null,"reasoning":null,"cost_usd_micros":null,"complete":false}`}},
		"in _meta":  {results: []string{`{"_meta":{"quota":{"token_count":{"input_tokens":9,"output_tokens":3}}}}`, `{"_meta":{"quota":{"token_count":null}}}`}, want: []string{in("9", "3"), ""}},
		"all parts": {results: []string{`{"usage":{"inputTokens":5,"outputTokens":4,"cachedReadTokens":3,"cachedWriteTokens":2,"thoughtTokens":1}}`}, want: []string{`{"input":5,"output":4,"cached":3,"cache_write":2,"reasoning":1,"cost_usd_micros":null,"complete":true}`}},
		"without cache": {rule: UsageRule{InputExcludesCache: true}, results: []string{`{"usage":{"inputTokens":5,"outputTokens":4,"cachedReadTokens":3,"cachedWriteTokens":2}}`},
			want: []string{`{"input":10,"output":4,"cached":3,"cache_write":2,"reasoning":null,"cost_usd_micros":null,"complete":true}`}},
		"totals": {rule: UsageRule{SessionTotal: true}, results: []string{`{"usage":{"inputTokens":5,"outputTokens":2}}`, `{"usage":{"inputTokens":5,"outputTokens":2}}`,
			`{"usage":{"inputTokens":9,"outputTokens":3}}`, `{"usage":{"inputTokens":4,"outputTokens":1}}`, `{"usage":{"inputTokens":6,"outputTokens":1}}`},
			want: []string{in("5", "2"), in("0", "0"), in("4", "1"), in("4", "1"), in("2", "0")}},
		"totals of a loaded session": {rule: UsageRule{SessionTotal: true}, unknown: true, results: []string{`{"usage":{"inputTokens":500,"outputTokens":200}}`, `{"usage":{"inputTokens":501,"outputTokens":203}}`},
			want: []string{none, in("1", "3")}},
	} {
		t.Run(name, func(t *testing.T) {
			c := counter{known: !tc.unknown}
			for i, res := range tc.results {
				u, ok := c.add(tc.rule, json.RawMessage(res))
				if got := text(u); ok != (tc.want[i] != "") || ok && got != tc.want[i] {
					t.Errorf("turn %d: %s %v, want %s", i+1, got, ok, tc.want[i])
				}
			}
		})
	}
}

func TestUsageOfAReply(t *testing.T) {
	w := invoketest.NewWorld(t)
	c := config(w, invoketest.Options{}, Process(w.Program(t, invoketest.Steps(invoketest.Say("ok"), invoketest.Step{"usage": map[string]any{"inputTokens": 7, "outputTokens": 3}}), nil, nil)))
	c.Usage.SessionTotal = true
	a := New(c)
	defer a.Close()
	for turn, want := range []int64{7, 0} { // the second is in the same session, with the same total
		r, err := w.Invoke(t, a, w.Request("x", func(tn *kernel.Turn) { tn.Continue = turn > 0 }))
		if err != nil {
			t.Fatal(err)
		}
		if r.Usage.Input == nil || *r.Usage.Input != want || !r.Usage.Complete {
			t.Errorf("turn %d: %s", turn+1, text(r.Usage))
		}
	}
}
