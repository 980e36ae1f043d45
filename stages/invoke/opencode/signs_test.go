package opencode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/turn"
)

// recorded is a script that plays a recorded stream of one turn, and does what follows.
func recorded(t *testing.T, name string, then ...invoketest.Step) invoketest.Script {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return plain(string(b), then...)
}

// plain is a script that prints lines, and does what follows.
func plain(lines string, then ...invoketest.Step) invoketest.Script {
	return invoketest.Steps(append([]invoketest.Step{{"raw": lines}}, then...)...).With("bare", true).With("load", true)
}

// Every stream was recorded from the program.
func TestSigns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, class, reason, text string
		wait                      time.Duration
	}{
		{"sign-in", kernel.ClassSignIn, "signed_out", "Incorrect API key", 0},
		{"rate-limit", kernel.ClassRateLimit, "rate_limited", "Rate limit reached", time.Second},
		{"server", kernel.ClassProvider, "provider_error", "The server had an error", 0},
		{"in-stream", kernel.ClassContextOverflow, "context_overflow", "This model's maximum context", 0},
		{"unknown-model", kernel.ClassProvider, "provider_error", "Unexpected server error", 0},
	} {
		for _, code := range []int{1, 0} { // a failure is one by any exit code
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				w := invoketest.NewWorld(t)
				_, err := w.Invoke(t, open(t, w, recorded(t, tc.name, invoketest.Step{"exit": code}), invoketest.Options{}), w.Request("x"))
				f := invoketest.Failed(t, err, tc.class, tc.reason)
				if !strings.HasPrefix(f.Text, tc.text) || f.RetryAfter != tc.wait || f.Partial != nil {
					t.Errorf("%q, %s, %v", f.Text, f.RetryAfter, f.Partial)
				}
			})
		}
	}
}

// A stream that stalls is silence.
func TestStall(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	o := invoketest.Options{Watchdog: turn.Watchdog{NoOutput: time.Second}}
	_, err := w.Invoke(t, open(t, w, recorded(t, "stall", invoketest.Step{"hang": true}), o), w.Request("x"))
	invoketest.Failed(t, err, kernel.ClassTimeout, "stalled")
}

const (
	step = `{"type":"step_start","sessionID":"ses_1","part":{}}` + "\n"
	say  = `{"type":"text","sessionID":"ses_1","part":{"text":"words"}}` + "\n"

	refused = `{"type":"tool_use","sessionID":"ses_1","part":{"tool":"bash","callID":"c","state":{"status":"error","error":"The user rejected permission to use this."}}}` + "\n"
)

func ended(reason string) string {
	return `{"type":"step_finish","sessionID":"ses_1","part":{"reason":"` + reason + `"}}` + "\n"
}

func fails(name, data string) string {
	return `{"type":"error","sessionID":"ses_1","error":{"name":"` + name + `","data":{` + data + `}}}` + "\n"
}

// Ends that the program has, and that no stream was recorded of.
func TestSignsWithoutARecording(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		out           string
		code          int
		class, reason string
	}{
		"no key":                  {step + say + fails("ProviderAuthError", `"message":"none"`), 1, kernel.ClassSignIn, "signed_out"},
		"output limit":            {step + say + fails("MessageOutputLengthError", ``), 1, kernel.ClassExecution, "output_limit"},
		"aborted":                 {step + say + fails("MessageAbortedError", `"message":"Aborted"`), 1, kernel.ClassCancelled, "cancelled_by_agent"},
		"of another shape":        {step + say + `{"type":"error","sessionID":"ses_1","error":"it broke"}` + "\n", 1, kernel.ClassProvider, "provider_error"},
		"headers of other shapes": {step + say + fails("APIError", `"responseHeaders":{"x":["y"]},"statusCode":401,"message":"no"`), 1, kernel.ClassSignIn, "signed_out"},
		"after a good step":       {step + say + ended("stop") + fails("APIError", `"statusCode":503,"message":"no"`), 0, kernel.ClassProvider, "provider_error"},
		"refused":                 {step + say + ended("content-filter"), 0, kernel.ClassExecution, "refused"},
		"no end of the step":      {step + say, 0, kernel.ClassExecution, "agent_died"},
		"no step after the tools": {step + say + ended("tool-calls"), 0, kernel.ClassExecution, "agent_died"},
		"a step without its end":  {step + say + ended("stop") + step, 0, kernel.ClassExecution, "agent_died"},
		"refused, then allowed":   {step + say + refused + ended("tool-calls") + step + ended("tool-calls"), 0, kernel.ClassExecution, "agent_died"},
		"refused, and died":       {step + say + refused + ended("tool-calls"), 3, kernel.ClassExecution, "agent_died"},
		"a page as the answer":    {step + say + fails("APIError", `"statusCode":503,"message":"no","responseBody":"`+strings.Repeat("quota ", 400)+`"`), 1, kernel.ClassProvider, "provider_error"},
		"an answer in words":      {step + say + fails("APIError", `"statusCode":400,"message":"no","responseBody":"insufficient_quota"`), 1, kernel.ClassRateLimit, "rate_limited"},
		"full, and no room made":  {step + say + fails("ContextOverflowError", `"message":"full"`) + step + ended("stop"), 1, kernel.ClassContextOverflow, "context_overflow"},
		"an answer of no shape":   {step + say + `{"type":"text","sessionID":"ses_1","part":{"text":7}}` + "\n", 0, kernel.ClassProtocol, "protocol_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			_, err := w.Invoke(t, open(t, w, plain(tc.out, invoketest.Step{"exit": tc.code}), invoketest.Options{}), w.Request("x"))
			if f := invoketest.Failed(t, err, tc.class, tc.reason); w.Partial(t, f) != "words" {
				t.Errorf("kept %q", w.Partial(t, f))
			}
		})
	}
}

// What a turn used before it failed is known, and that it is not all.
func TestUsageOfAFailedTurn(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	out := step + say + `{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","tokens":{"input":7,"output":2,"reasoning":0,"cache":{"read":1,"write":0}}}}` + "\n" + fails("APIError", `"statusCode":503,"message":"no"`)
	_, err := w.Invoke(t, open(t, w, plain(out), invoketest.Options{}), w.Request("x"))
	f := invoketest.Failed(t, err, kernel.ClassProvider, "provider_error")
	if u := f.Partial.(kernel.Reply).Usage; u.Complete || *u.Input != 8 || *u.Output != 2 {
		t.Errorf("%+v", u)
	}
}

func n(v int64) *int64 { return &v }

func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text, stop string
		code             int
		tools            []kernel.ToolCall
		used             kernel.Usage
	}{
		{name: "thinking", text: "Hello from the fake model. All is well.", used: kernel.Usage{Input: n(100), Output: n(19)}},
		{name: "cached", text: "Default reply.", used: kernel.Usage{Input: n(100), Output: n(13), Cached: n(30), Reasoning: n(4)}},
		{name: "output-limit", text: "This reply was truncated by the length", stop: "max_tokens", used: kernel.Usage{Input: n(100), Output: n(19)}},
		{name: "compacted", text: "Default reply from the fake model.", code: 1, used: kernel.Usage{Input: n(200), Output: n(31)}},
		{name: "unknown-tool", text: "Recovered from the unknown tool.", used: kernel.Usage{Input: n(200), Output: n(28)},
			tools: []kernel.ToolCall{{ID: "call_61_0", Kind: "think", Title: "Invalid Tool", Status: "completed"}}},
		{name: "command", text: "Running a command.\n\nThe command has run.", used: kernel.Usage{Input: n(200), Output: n(29)},
			tools: []kernel.ToolCall{{ID: "call_12_0", Kind: "execute", Title: "echo hi-from-tool > shell.txt; ls", Status: "completed"}}},
		{name: "write", text: "I will write the file.\n\nThe file out.txt is written.", used: kernel.Usage{Input: n(200), Output: n(32)},
			tools: []kernel.ToolCall{{ID: "call_9_0", Kind: "edit", Title: "write /ws/out.txt", Status: "completed"}}},
		{name: "rejected", text: "I will write.", used: kernel.Usage{Input: n(100), Output: n(13)},
			tools: []kernel.ToolCall{{ID: "call_25_0", Kind: "execute", Title: "echo x > out.txt; echo rc=$?", Status: "failed"}}},
		{name: "sub-agent", text: "Delegating.\n\nTask done.", used: kernel.Usage{Input: n(200), Output: n(24), Cached: n(60), Reasoning: n(8)},
			tools: []kernel.ToolCall{{ID: "call_5_0", Kind: "other", Title: "task look", Status: "completed"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			r, err := w.Invoke(t, open(t, w, recorded(t, tc.name, invoketest.Step{"exit": tc.code}), invoketest.Options{}), w.Request("x"))
			if err != nil {
				t.Fatal(err)
			}
			if tc.stop == "" {
				tc.stop = "end_turn"
			}
			if got := w.Text(t, r); got != tc.text || r.Stop != tc.stop {
				t.Errorf("%q, %s", got, r.Stop)
			}
			if len(r.Tools) != len(tc.tools) {
				t.Fatalf("%+v", r.Tools)
			}
			for i := range r.Tools {
				if r.Tools[i] != tc.tools[i] {
					t.Errorf("%+v, want %+v", r.Tools[i], tc.tools[i])
				}
			}
			want := tc.used
			for _, p := range []**int64{&want.Cached, &want.CacheWrite, &want.Reasoning} {
				if *p == nil {
					*p = n(0)
				}
			}
			if got := r.Usage; !got.Complete || !same(got, want) || got.Cost != nil {
				t.Errorf("%s", kernelText(t, got))
			}
		})
	}
}
