package gemini

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

// recorded is a script that plays what a program printed in one turn, and its exit.
func recorded(t *testing.T, name string) invoketest.Script {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Stdout, Stderr []string
		Exit           int
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	lines := func(s []string) string { return strings.Join(s, "\n") + "\n" }
	return invoketest.Steps(invoketest.Step{"stderr": lines(r.Stderr)}, invoketest.Step{"raw": lines(r.Stdout)}, invoketest.Step{"exit": r.Exit})
}

// Every stream was recorded from the program.
func TestSigns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, class, reason, text, kept string }{
		{"gemini-sign-in", kernel.ClassSignIn, "signed_out", "Incorrect API key provided.", ""},
		{"gemini-signed-out", kernel.ClassSignIn, "signed_out", "GEMINI_API_KEY", ""},
		{"gemini-quota", kernel.ClassRateLimit, "rate_limited", "current quota", ""},
		{"gemini-context", kernel.ClassContextOverflow, "context_overflow", "maximum number of tokens", ""},
		{"gemini-cut", kernel.ClassNetwork, "network_error", "terminated", "This stream will be cut in the"},
		{"gemini-in-stream", kernel.ClassProvider, "provider_error", "without a finish reason", ""}, // and exit 0
		{"qwen-sign-in", kernel.ClassSignIn, "signed_out", "401 Incorrect API key provided.", ""},
		{"qwen-signed-out", kernel.ClassSignIn, "signed_out", "Missing API key", ""},
		{"qwen-context", kernel.ClassContextOverflow, "context_overflow", "maximum context length", ""},
		{"qwen-cut", kernel.ClassNetwork, "network_error", "other side closed", strings.Repeat("This stream will be cut in the", 4)},
		{"qwen-in-stream", kernel.ClassContextOverflow, "context_overflow", "maximum context length", ""},
		{"qwen-refused", kernel.ClassNetwork, "network_error", "fetch failed", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			program, _, _ := strings.Cut(tc.name, "-")
			_, err := w.Invoke(t, open(t, w, program, recorded(t, tc.name), invoketest.Options{}), w.Request("x"))
			f := invoketest.Failed(t, err, tc.class, tc.reason)
			if !strings.Contains(f.Text, tc.text) || strings.Contains(f.Text, "API Error") || w.Partial(t, f) != tc.kept || w.Shown() != tc.kept {
				t.Errorf("%q, kept %q, shown %q", f.Text, w.Partial(t, f), w.Shown())
			}
			if want := map[bool]time.Duration{true: time.Hour}[tc.name == "gemini-quota"]; f.RetryAfter != want {
				t.Errorf("again after %s, want %s", f.RetryAfter, want)
			}
		})
	}
}

func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	wrote := func(path string) []kernel.ToolCall {
		return []kernel.ToolCall{{Kind: "edit", Title: "Write " + path, Status: "completed"}}
	}
	unknown := []kernel.ToolCall{{Kind: "other", Title: "no_such_tool", Status: "failed"}}
	for _, tc := range []struct {
		name, text string
		tools      []kernel.ToolCall
		in, out    int64
	}{
		{"gemini-write", "I will write the file.\n\nThe file out.txt is written.", wrote("/work/tree/out.txt"), 200, 32},
		{"gemini-unknown-tool", "Recovered from the unknown tool.", unknown, 200, 28},
		{"gemini-truncated", "This reply was truncated by the length", []kernel.ToolCall{}, 100, 19},
		{"qwen-write", "I will write the file.\n\nThe file out.txt is written.", wrote("/work/tree/out.txt"), 200, 32},
		{"qwen-unknown-tool", "Recovered from the unknown tool.", unknown, 200, 28},
		{"qwen-thinking", "Hello from the fake model. All is well.", []kernel.ToolCall{}, 200, 38},
	} {
		w := invoketest.NewWorld(t)
		program, _, _ := strings.Cut(tc.name, "-")
		r, err := w.Invoke(t, open(t, w, program, recorded(t, tc.name), invoketest.Options{}), w.Request("x"))
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		for i := range r.Tools {
			r.Tools[i].ID = ""
		}
		if w.Text(t, r) != tc.text || w.Shown() != tc.text || fmt.Sprint(r.Tools) != fmt.Sprint(tc.tools) {
			t.Errorf("%s: %q, shown %q, %+v", tc.name, w.Text(t, r), w.Shown(), r.Tools)
		}
		if u := r.Usage; !u.Complete || *u.Input != tc.in || *u.Output != tc.out || *u.Cached != 0 || u.CacheWrite != nil || u.Reasoning != nil {
			t.Errorf("%s: %+v", tc.name, u)
		}
	}
}

// Ends without a result.
func TestExits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		program, stderr string
		exit            int
		class, reason   string
	}{
		{Gemini, "Reached max session turns for this session.", 53, kernel.ClassBudget, "agent_limit"},
		{Qwen, "aborted: wall-clock budget exceeded", 55, kernel.ClassBudget, "agent_limit"},
		{Gemini, "Please set an Auth method in your settings.json", 41, kernel.ClassSignIn, "signed_out"},
		{Qwen, "Out of memory", 55, kernel.ClassBudget, "agent_limit"},
		{Qwen, "the sky fell", 7, kernel.ClassExecution, "agent_died"},
		{Gemini, "", 0, kernel.ClassExecution, "agent_died"}, // 0 is no success
	} {
		w := invoketest.NewWorld(t)
		s := invoketest.Steps(invoketest.Say("words"), invoketest.Step{"stderr": tc.stderr + "\n"}, invoketest.Step{"exit": tc.exit})
		_, err := w.Invoke(t, open(t, w, tc.program, s, invoketest.Options{}), w.Request("x"))
		if f := invoketest.Failed(t, err, tc.class, tc.reason); w.Partial(t, f) != "words" {
			t.Errorf("%+v: kept %q", tc, w.Partial(t, f))
		}
	}
}

// What looks like an error is an answer if the result says so.
func TestAnAnswerThatLooksLikeAnError(t *testing.T) {
	t.Parallel()
	const text = "It printed [API Error: 500] and went on."
	w := invoketest.NewWorld(t)
	if got := w.Good(t, open(t, w, Qwen, invoketest.Steps(invoketest.Say(text[:20]), invoketest.Say(text[20:])), invoketest.Options{}), w.Request("x")); got != text {
		t.Errorf("%q", got)
	}
	if got := w.Good(t, open(t, w, Qwen, invoketest.Steps(invoketest.Say("First. "), invoketest.Say("[API Error: "), invoketest.Say("x]")), invoketest.Options{}), w.Request("x")); got != "First. [API Error: x]" {
		t.Errorf("%q", got)
	}
}

// A sub-agent works: its words are not those of the answer, its deeds count.
func TestSubAgents(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	folded := func(content string) invoketest.Step {
		return invoketest.Step{"raw": `{"type":"assistant","parent_tool_use_id":"call-1","message":{"content":[` + content + `]}}` + "\n"}
	}
	s := invoketest.Steps(folded(`{"type":"text","text":"words of the helper"}`), folded(`{"type":"tool_use","id":"c","name":"write_file","input":{"file_path":"/x"}}`),
		invoketest.Say("done"), invoketest.Step{"exit": 9})
	_, err := w.Invoke(t, open(t, w, Qwen, s, invoketest.Options{}), w.Request("x", invoketest.Write))
	if f := invoketest.Failed(t, err, kernel.ClassExecution, "agent_died"); w.Partial(t, f) != "done" || !f.Effects {
		t.Errorf("kept %q, effects %t", w.Partial(t, f), f.Effects)
	}
}

func TestRetriesAreTold(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	s := invoketest.Steps(invoketest.Step{"raw": `{"type":"system","subtype":"retry","data":{"attempt":1,"maxRetries":10,"delayMs":60000}}` + "\n"}, invoketest.Say("ok"))
	w.Good(t, open(t, w, Qwen, s, invoketest.Options{}), w.Request("x"))
	if n := w.Events("notice"); len(n) != 1 || n[0].Code != "provider_retry" || !strings.Contains(n[0].Text, "1 of 10 follows in 1m0s") {
		t.Errorf("%+v", n)
	}
}
