package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

// recorded is a script that plays a recorded stream of one turn.
func recorded(t *testing.T, name string) invoketest.Script {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return invoketest.Steps(invoketest.Step{"raw": string(b)}, invoketest.Step{"unanswered": true})
}

// Every stream was recorded from the program; all but the last say "success".
func TestSigns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, class, reason, text, kept string }{
		{"sign-in", kernel.ClassSignIn, "signed_out", "401 Incorrect API key", ""},
		{"signed-out", kernel.ClassSignIn, "signed_out", "Please run /login", ""},
		{"rate-limit", kernel.ClassRateLimit, "rate_limited", "(429)", ""},
		{"quota", kernel.ClassRateLimit, "rate_limited", "current quota", ""},
		{"server", kernel.ClassProvider, "provider_error", "500", ""},
		{"context", kernel.ClassContextOverflow, "context_overflow", "too long", ""},
		{"cut", kernel.ClassNetwork, "network_error", "ECONNRESET", "This stream will be cut in the"},
		{"in-stream", kernel.ClassSession, "empty_turn", "without an answer", ""},
		{"output-limit", kernel.ClassExecution, "output_limit", "output token maximum", strings.Repeat("This reply was truncated by the length", 4)},
		{"interrupted", kernel.ClassCancelled, "cancelled_by_agent", "error_during_execution", "one tw"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			_, err := w.Invoke(t, open(t, w, recorded(t, tc.name), invoketest.Options{}), w.Request("x"))
			f := invoketest.Failed(t, err, tc.class, tc.reason)
			if !strings.Contains(f.Text, tc.text) || w.Partial(t, f) != tc.kept || w.Shown() != tc.kept {
				t.Errorf("%q, kept %q, shown %q", f.Text, w.Partial(t, f), w.Shown())
			}
		})
	}
}

// Ends that the program has, and that no stream was recorded of.
func TestSignsWithoutARecording(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ result, class, reason string }{
		{`"is_error":true,"subtype":"success","api_error_type":"overloaded_error","result":"Overloaded"`, kernel.ClassProvider, "provider_error"},
		{`"is_error":true,"subtype":"success","api_error":"billing_error","result":"Credit balance is too low"`, kernel.ClassSignIn, "billing"},
		{`"is_error":true,"subtype":"success","api_error_type":"not_found_error","result":"no such model"`, kernel.ClassCompatibility, "unknown_model"},
		{`"is_error":true,"subtype":"success","api_error_type":"timeout_error","result":"too slow"`, kernel.ClassTimeout, "provider_timeout"},
		{`"is_error":true,"subtype":"error_max_turns"`, kernel.ClassBudget, "agent_limit"},
		{`"is_error":false,"subtype":"error_max_budget_usd"`, kernel.ClassBudget, "agent_limit"},
		{`"is_error":false,"subtype":"success","stop_reason":"refusal","result":"no"`, kernel.ClassExecution, "refused"},
		{`"is_error":true,"subtype":"success","result":"HTTP 429, retry-after: 7"`, kernel.ClassRateLimit, "rate_limited"},
		{`"is_error":true,"subtype":"error_during_execution","errors":["something new"]`, kernel.ClassProvider, "provider_error"},
	} {
		w := invoketest.NewWorld(t)
		s := invoketest.Steps(invoketest.Say("words"), invoketest.Step{"raw": `{"type":"result",` + tc.result + "}\n"}, invoketest.Step{"unanswered": true})
		_, err := w.Invoke(t, open(t, w, s, invoketest.Options{}), w.Request("x"))
		if f := invoketest.Failed(t, err, tc.class, tc.reason); w.Partial(t, f) != "words" {
			t.Errorf("%s: kept %q", tc.result, w.Partial(t, f))
		}
	}
}

func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		tools      []kernel.ToolCall
		in, out    int64
	}{
		{"thinking", "Hello from the fake model. All is well.", []kernel.ToolCall{}, 100, 19},
		{"unknown-tool", "Recovered from the unknown tool.", []kernel.ToolCall{{Kind: "other", Title: "no_such_tool", Status: "failed"}}, 200, 28},
		{"sub-agent", "The helper is done.", []kernel.ToolCall{{Kind: "think", Title: "Task look around", Status: "completed"}}, 400, 0},
	} {
		w := invoketest.NewWorld(t)
		r, err := w.Invoke(t, open(t, w, recorded(t, tc.name), invoketest.Options{}), w.Request("x"))
		if err != nil {
			t.Fatal(err)
		}
		if w.Text(t, r) != tc.text || w.Shown() != tc.text || r.Stop != "end_turn" {
			t.Errorf("%s: %q, shown %q, stop %q", tc.name, w.Text(t, r), w.Shown(), r.Stop)
		}
		for i := range r.Tools {
			r.Tools[i].ID = ""
		}
		if fmt.Sprint(r.Tools) != fmt.Sprint(tc.tools) {
			t.Errorf("%s: %+v", tc.name, r.Tools)
		}
		if u := r.Usage; !u.Complete || *u.Input != tc.in || tc.out > 0 && *u.Output != tc.out || *u.Cached != 0 {
			t.Errorf("%s: %+v", tc.name, u)
		}
	}
}

// A sub-agent that changed something makes the turn one that must not be repeated.
func TestSubAgentHasEffects(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	s := recorded(t, "sub-agent")
	raw, _, _ := strings.Cut(s["steps"].([]invoketest.Step)[0]["raw"].(string), "\n{\"stop_reason\"") // its result
	a := open(t, w, invoketest.Steps(invoketest.Step{"raw": raw + "\n"}, invoketest.Step{"exit": 1}), invoketest.Options{})
	_, err := w.Invoke(t, a, w.Request("x", invoketest.Write))
	if f := invoketest.Failed(t, err, kernel.ClassExecution, "agent_died"); !f.Effects {
		t.Error("what the sub-agent did is not counted")
	}
}

func TestRetriesAreTold(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	_, err := w.Invoke(t, open(t, w, recorded(t, "rate-limit"), invoketest.Options{}), w.Request("x"))
	invoketest.Failed(t, err, kernel.ClassRateLimit, "rate_limited")
	if w.Notices("provider_retry") != 1 {
		t.Errorf("%+v", w.Events("notice"))
	}
}

// A stream that ends in the middle of a message is explained by the end of the
// process, or by nothing.
func TestCutStream(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		end           invoketest.Step
		class, reason string
	}{
		{invoketest.Step{"exit": 3}, kernel.ClassExecution, "agent_died"},
		{invoketest.Step{"crash": true}, kernel.ClassExecution, "agent_died"},
		{invoketest.Step{"exit": 0}, kernel.ClassProtocol, "protocol_error"},
	} {
		w := invoketest.NewWorld(t)
		s := invoketest.Steps(invoketest.Say("half"), invoketest.Step{"raw": `{"type":"result","subtype":"succ`}, tc.end)
		_, err := w.Invoke(t, open(t, w, s, invoketest.Options{}), w.Request("x"))
		if f := invoketest.Failed(t, err, tc.class, tc.reason); w.Partial(t, f) != "half" {
			t.Errorf("%v: kept %q", tc.end, w.Partial(t, f))
		}
	}
}
