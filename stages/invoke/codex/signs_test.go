package codex

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
	return invoketest.Steps(append([]invoketest.Step{{"raw": string(b)}}, then...)...).With("bare", true)
}

// Every stream was recorded from the program.
func TestSigns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, class, reason, text, kept string }{
		{"sign-in", kernel.ClassSignIn, "signed_out", "Incorrect API key", ""},
		{"rate-limit", kernel.ClassRateLimit, "rate_limited", "429 Too Many Requests", ""},
		{"quota", kernel.ClassRateLimit, "rate_limited", "Quota exceeded", ""},
		{"server", kernel.ClassProvider, "provider_error", "high demand", ""},
		{"context", kernel.ClassContextOverflow, "context_overflow", "ran out of room", ""},
		{"in-stream", kernel.ClassContextOverflow, "context_overflow", "ran out of room", ""},
		{"cut", kernel.ClassNetwork, "network_error", "stream disconnected", ""},
		{"output-limit", kernel.ClassExecution, "output_limit", "max_output_tokens", "This reply was truncated by the length"},
	} {
		for _, code := range []int{1, 0} { // a failure is one by any exit code
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				w := invoketest.NewWorld(t)
				_, err := w.Invoke(t, open(t, w, recorded(t, tc.name, invoketest.Step{"exit": code}), invoketest.Options{}), w.Request("x"))
				f := invoketest.Failed(t, err, tc.class, tc.reason)
				if !strings.Contains(f.Text, tc.text) || w.Partial(t, f) != tc.kept || w.Shown() != tc.kept {
					t.Errorf("%q, kept %q, shown %q", f.Text, w.Partial(t, f), w.Shown())
				}
			})
		}
	}
}

// Without a network the program tries for ever, and says so.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	o := invoketest.Options{Watchdog: turn.Watchdog{NoOutput: time.Second}}
	_, err := w.Invoke(t, open(t, w, recorded(t, "no-network", invoketest.Step{"hang": true}), o), w.Request("x"))
	f := invoketest.Failed(t, err, kernel.ClassTimeout, "stalled")
	if !strings.Contains(f.Text, "waiting for network") || w.Notices("provider_retry") != 4 {
		t.Errorf("%s; %d notices", f.Text, w.Notices("provider_retry"))
	}
}

// Ends that the program tells on stderr alone, as recorded.
func TestSignsOnStderr(t *testing.T) {
	t.Parallel()
	const warning = "WARNING: proceeding, even though we could not create PATH aliases\n"
	for _, tc := range []struct {
		name, stderr  string
		code          int
		class, reason string
	}{
		{"no such thread", "Error: thread/resume: thread/resume failed: no rollout found for thread id thread-recorded (code -32600)\n", 1, kernel.ClassSession, "session_gone"},
		{"damaged thread", "Error: thread/resume: thread/resume failed: failed to read thread: thread-store internal error: failed to read session metadata /home/x/rollout.jsonl: rollout at /home/x/rollout.jsonl is empty (code -32603)\n", 1, kernel.ClassSession, "session_gone"},
		{"unknown flag", "error: unexpected argument '--nope' found\n\n  tip: to pass '--nope' as a value, use '-- --nope'\n\nUsage: codex exec [OPTIONS] [PROMPT]\n", 2, kernel.ClassCompatibility, "cannot_start"},
		{"anything else", "thread 'main' panicked\n", 101, kernel.ClassExecution, "agent_died"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			keep(t, w, "thread-recorded")
			s := invoketest.Steps(invoketest.Step{"stderr": warning + tc.stderr}, invoketest.Step{"exit": tc.code}).With("bare", true).With("load", true)
			_, err := w.Invoke(t, open(t, w, s, invoketest.Options{}), w.Request("x", invoketest.Continue))
			f := invoketest.Failed(t, err, tc.class, tc.reason)
			if strings.Contains(f.Text, "thread-recorded") {
				t.Error(f.Text)
			}
			if got := kept(t, w); (got == "") != (tc.class == kernel.ClassSession) {
				t.Errorf("the session is %q", got)
			}
		})
	}
}

func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		tools      []kernel.ToolCall
		in, out    int64
		retries    int
	}{
		{name: "thinking", text: "Hello from the fake model. All is well.", in: 100, out: 19},
		{name: "unknown-tool", text: "Recovered from the unknown tool.", in: 200, out: 28},
		{name: "got-over", text: "Recovered after 500.", in: 100, out: 15, retries: 1},
		{name: "command", text: "Running a command.\n\nThe command has run.", in: 200, out: 29,
			tools: []kernel.ToolCall{{ID: "item_2", Kind: "execute", Title: "echo hi-from-tool > shell.txt; ls", Status: "completed"}}},
		{name: "refused-write", text: "I will write the file.\n\nThe file out.txt is written.", in: 200, out: 32,
			tools: []kernel.ToolCall{{ID: "item_2", Kind: "execute", Title: `/bin/bash -lc "printf %s 'written by fake ' > '/ws/out.txt'"`, Status: "failed"}}},
		{name: "tool-server", text: "Tool done.", in: 200, out: 22,
			tools: []kernel.ToolCall{{ID: "item_1", Kind: "other", Title: "probe: echo", Status: "completed"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			r, err := w.Invoke(t, open(t, w, recorded(t, tc.name, invoketest.Step{"exit": 1}), invoketest.Options{}), w.Request("x"))
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Text(t, r); got != tc.text || w.Notices("provider_retry") != tc.retries {
				t.Errorf("%q; %+v", got, w.Events("notice"))
			}
			if len(r.Tools) != len(tc.tools) {
				t.Fatalf("%+v", r.Tools)
			}
			for i := range r.Tools {
				if r.Tools[i] != tc.tools[i] {
					t.Errorf("%+v, want %+v", r.Tools[i], tc.tools[i])
				}
			}
			u := r.Usage
			if !u.Complete || *u.Input != tc.in || *u.Output != tc.out || *u.Cached != 0 || *u.CacheWrite != 0 || *u.Reasoning != 0 || u.Cost != nil {
				t.Errorf("%+v", u)
			}
		})
	}
}
