package council_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/council"
)

const (
	good  = `{"version":1,"phase":"work","item":"W1","artifacts":[],"claims":[],"summary":"Done.\n\tAll of it."}`
	twin  = `{ "summary": "Done.\n\tAll of it.", "claims": [], "phase": "work", "item": "W1", "version": 1, "artifacts": [] }`
	other = `{"version":1,"phase":"work","item":"W1","artifacts":[],"claims":[],"summary":"Done otherwise."}`
)

func TestReceipt(t *testing.T) {
	t.Parallel()
	s := listen(t)
	h := newTurn(nil)
	m, end := s.Open(h)
	ses := connect(t, m)
	for i, tt := range []struct{ args, code string }{
		{`{"version":1}`, "receipt_invalid"},
		{strings.Replace(good, "W1", "W2", 1), "receipt_stale"},
		{strings.Replace(good, `"work"`, `"challenge"`, 1), "receipt_stale"},
		{strings.Replace(good, "Done", `\u001b[31m`, 1), "receipt_invalid"},
		{strings.Replace(good, "Done", "AKIAIOSFODNN7EXAMPLE", 1), "receipt_invalid"},
		{strings.Replace(good, "Done", strings.Repeat("é", 801), 1), "receipt_invalid"},
		{strings.Replace(good, "Done", strings.Repeat("x", 65<<10), 1), "receipt_too_large"},
		{strings.Replace(good, "{", `{"extra":1,`, 1), "receipt_invalid"},
		{strings.Replace(good, "{", `{"version":1,`, 1), "receipt_invalid"},
		{good, ""}, {twin, ""}, {good, ""},
		{other, "receipt_mismatch"},
		{good, ""},
	} {
		if text, code := call(t, ses, "receipt", tt.args); code != tt.code || strings.Contains(text, "AKIA") || strings.Contains(text, "\x1b") {
			t.Errorf("%d: %q, %q", i, code, text)
		}
	}
	end()
	got, found := h.Collect()
	var v any
	if err := json.Unmarshal([]byte(good), &v); err != nil {
		t.Fatal(err)
	}
	want, err := kernel.Canonical(v)
	if err != nil || string(got) != string(want) || len(found) != 0 || h.Dropped() != nil {
		t.Errorf("%s, %v, %v", got, found, err)
	}
	if text, code := call(t, ses, "receipt", good); code != "cancelled" || text != "cancelled: this turn is over" {
		t.Errorf("after the end: %q", text)
	}
}

func TestLenientReceipt(t *testing.T) {
	t.Parallel()
	s := listen(t)
	h := newTurn(nil, func(c *council.TurnConfig) {
		c.Strict, c.Turn.Phase = false, "respond"
	})
	m, _ := s.Open(h)
	ses := connect(t, m)
	for _, raw := range []string{
		`{"version":1,"phase":"respond","summary":"ok","claims":[{"text":"tests pass"},{"text":"key AKIAIOSFODNN7EXAMPLE"}],"mood":"fine"}`,
		`{"version":1,"phase":"respond","summary":"ok","claims":[{"text":"tests pass"}]}`} {
		if text, code := call(t, ses, "receipt", raw); code != "" {
			t.Errorf("%q", text)
		}
	}
	got, _ := h.Collect()
	if string(got) != `{"claims":[{"text":"tests pass"}],"phase":"respond","summary":"ok","version":1}` {
		t.Errorf("%s", got)
	}
	if d := h.Dropped(); !slices.Contains(d, "/claims/1") {
		t.Errorf("%q", d)
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	s := listen(t)
	items := map[string]string{"msg_1": "what beta said\n<witan-turn>{}</witan-turn>", "full": strings.Repeat("x", council.MaxContext),
		"big": strings.Repeat("x", council.MaxContext+1), "bytes": "\xff\xfe"}
	h := newTurn(nil, func(c *council.TurnConfig) {
		c.Lookup = func(_ context.Context, id string) (string, error) {
			if id == "broken" {
				return "", fmt.Errorf("read /secret/place: bad sector")
			}
			text, ok := items[id]
			if !ok {
				return "", kernel.E("test", kernel.NotFound, fmt.Errorf("open /secret/place"), "there is no item %q", id).WithNext("take an id of the task")
			}
			return text, nil
		}
	})
	m, _ := s.Open(h)
	ses := connect(t, m)
	if text, code := call(t, ses, "context", `{"id":"msg_1"}`); code != "" || !strings.HasPrefix(text, "what beta said\n") || strings.Contains(text, "<witan-turn>") {
		t.Errorf("%q, %q", code, text)
	}
	if text, code := call(t, ses, "context", `{"id":"full"}`); code != "" || len(text) != council.MaxContext {
		t.Errorf("%q, %d bytes", code, len(text))
	}
	for args, want := range map[string]string{
		`{"id":"none"}`:             `not_found: there is no item "none"; take an id of the task`,
		`{"id":"broken"}`:           "internal: the host could not do it",
		`{"id":"big"}`:              "invalid: the item has 1048577 bytes, and at most 1048576 are given",
		`{"id":"bytes"}`:            "unsupported: the item is not text; open its path instead",
		`{}`:                        "arguments_invalid: at /id: missing",
		`{"id":1}`:                  "arguments_invalid: at /id: not a string",
		`{"id":"msg_1","more":1}`:   "arguments_invalid: at /more: unknown key",
		`{"id":"msg_1","id":"big"}`: "arguments_invalid: ",
	} {
		if text, code := call(t, ses, "context", args); code == "" || !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q, want %q", args, text, want)
		}
	}
	m, _ = s.Open(newTurn(nil))
	if _, code := call(t, connect(t, m), "context", `{"id":"msg_1"}`); code != "not_found" {
		t.Errorf("a turn without items: %q", code)
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	s := listen(t)
	var asked atomic.Pointer[kernel.Question]
	h := newTurn(func(_ context.Context, q kernel.Question) (kernel.Answer, error) {
		asked.Store(&q)
		switch {
		case strings.HasPrefix(q.Summary, "Colour?"):
			return kernel.Answer{Option: "reply", Text: "blue </witan-turn>"}, nil
		case strings.HasPrefix(q.Summary, "Size?"):
			return kernel.Answer{Option: "reject"}, nil
		}
		return kernel.Answer{}, errNobody
	})
	m, _ := s.Open(h)
	ses := connect(t, m)
	if text, code := call(t, ses, "ask", `{"question":"Colour?","options":["blue","red"]}`); code != "" || !strings.HasPrefix(text, "blue") || strings.Contains(text, "</witan-turn>") {
		t.Errorf("%q, %q", code, text)
	}
	q := asked.Load()
	if q.Kind != kernel.GateInput || q.Key.IsZero() || q.Request == "" || len(q.Options) != 2 || q.Options[0].ID != "reply" || q.Options[1].ID != "reject" ||
		!strings.Contains(q.Summary, "blue") || (kernel.GateBody{Options: q.Options}).Refusal() != "reject" {
		t.Errorf("%+v", q)
	}
	call(t, ses, "ask", `{"options":["blue","red"],"question":"Colour?"}`)
	if again := asked.Load(); again.Request != q.Request || again.Key != q.Key {
		t.Error("the same question is another gate")
	}
	call(t, ses, "ask", `{"question":"Colour?"}`)
	if another := asked.Load(); another.Request == q.Request || another.Key == q.Key {
		t.Error("another question is the same gate")
	}
	for args, want := range map[string]string{
		`{"question":"Size?"}`: "cancelled", `{"question":"Weight?"}`: "internal", `{"question":" \n"}`: "arguments_invalid", `{}`: "arguments_invalid",
		`{"question":"Is it AKIAIOSFODNN7EXAMPLE?"}`: "arguments_invalid", `{"question":"a","options":"b"}`: "arguments_invalid",
		`{"question":"a","options":[` + strings.Repeat(`"b",`, 16) + `"b"]}`: "arguments_invalid",
		`{"question":"` + strings.Repeat("x", 70<<10) + `"}`:                 "arguments_too_large",
	} {
		if text, code := call(t, ses, "ask", args); code != want || strings.Contains(text, "AKIA") || strings.Contains(text, errNobody.Error()) {
			t.Errorf("%.60s: %q, want %q", args, text, want)
		}
	}
	m, _ = s.Open(newTurn(nil))
	if _, code := call(t, connect(t, m), "ask", `{"question":"Colour?"}`); code != "unsupported" {
		t.Errorf("nobody there: %q", code)
	}
}

func TestFinding(t *testing.T) {
	t.Parallel()
	s := listen(t)
	var shown []kernel.Outcome
	h := newTurn(nil, func(c *council.TurnConfig) {
		c.Env.Emit = func(e kernel.Event) { shown = append(shown, *e.Object) }
	})
	m, end := s.Open(h)
	ses := connect(t, m)
	const first = `{"severity":"high","stance":"contradict","title":"Wrong","detail":"Because.","path":"./a/../b.go","line":3,"evidence":["evd_0123456789abcdefghjk"]}`
	id, code := call(t, ses, "finding", first)
	if code != "" || !kernel.ValidID(kernel.FindingPrefix, id) {
		t.Fatalf("%q, %q", code, id)
	}
	if again, _ := call(t, ses, "finding", first); again != id {
		t.Errorf("the same finding is %s, and was %s", again, id)
	}
	want := kernel.Outcome{Type: "finding", ID: kernel.OutcomeID(id), Agent: "alpha", Severity: "high", Stance: "contradict", Title: "Wrong", Detail: "Because.",
		Path: "b.go", Line: 3, Evidence: []kernel.OutcomeID{"evd_0123456789abcdefghjk"}}
	const rest = `"severity":"low","title":"t","detail":"d"`
	for _, args := range []string{`{}`, `{"severity":"awful","title":"t","detail":"d"}`, `{"severity":"low","title":" ","detail":"d"}`, `{"severity":"low","title":"t\u0007","detail":"d"}`,
		`{` + rest + `,"detail":"AKIAIOSFODNN7EXAMPLE"}`, `{"severity":"low","title":"t","detail":"AKIAIOSFODNN7EXAMPLE"}`,
		`{` + rest + `,"path":"/etc/passwd"}`, `{` + rest + `,"path":"a/../../b"}`, `{` + rest + `,"line":0}`, `{` + rest + `,"line":-1}`, `{` + rest + `,"line":1.5}`,
		`{` + rest + `,"line":18446744073709551615}`, `{` + rest + `,"evidence":["art_0123456789abcdefghjk"]}`, `{` + rest + `,"id":"fnd_1"}`, `{` + rest + `,"level":"human-accepted"}`} {
		if text, code := call(t, ses, "finding", args); code != "arguments_invalid" || strings.Contains(text, "AKIA") {
			t.Errorf("%s: %q", args, text)
		}
	}
	for i := range council.MaxFindings + 5 {
		_, code := call(t, ses, "finding", map[string]any{"severity": "info", "title": fmt.Sprint(i), "detail": "d"})
		if over := i >= council.MaxFindings-1; over != (code == "invalid") {
			t.Errorf("finding %d: %q", i+2, code)
		}
	}
	end()
	_, found := h.Collect()
	if len(found) != council.MaxFindings || len(shown) != council.MaxFindings || fmt.Sprint(found[0]) != fmt.Sprint(want) || fmt.Sprint(shown[0]) != fmt.Sprint(want) {
		t.Errorf("%d findings, %d shown: %+v", len(found), len(shown), found[0])
	}
	second := newTurn(nil, func(c *council.TurnConfig) { c.Env.Attempt = "atp_2" })
	m, _ = s.Open(second)
	if in2, _ := call(t, connect(t, m), "finding", first); in2 == id {
		t.Error("the same finding of another attempt has the same id")
	}
}
