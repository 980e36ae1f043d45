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
	const before = "WARNING: proceeding, even though we could not create PATH aliases\n"
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
			s := invoketest.Steps(invoketest.Step{"stderr": before + tc.stderr}, invoketest.Step{"exit": tc.code}).With("bare", true).With("load", true)
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

const (
	begun   = `{"type":"thread.started","thread_id":"t-recorded"}` + "\n" + `{"type":"turn.started"}` + "\n"
	words   = `{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"words"}}` + "\n"
	over    = `{"type":"turn.completed"}` + "\n"
	warning = `{"type":"item.completed","item":{"id":"item_0","type":"error","message":"the disk is slow"}}` + "\n"
)

func tells(message string) string { return `{"type":"error","message":"` + message + `"}` + "\n" }

func fails(message string) string {
	return `{"type":"turn.failed","error":{"message":"` + message + `"}}` + "\n"
}

// plain is a script that prints lines and ends.
func plain(lines string, code int) invoketest.Script {
	return invoketest.Steps(invoketest.Step{"raw": lines}, invoketest.Step{"exit": code}).With("bare", true)
}

// Ends that the program has, and that no stream was recorded of.
func TestSignsWithoutARecording(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		out                 string
		code                int
		class, reason, text string
	}{
		"refused":             {begun + words + fails("Incomplete response returned, reason: content_filter"), 1, kernel.ClassExecution, "refused", ""},
		"no words":            {begun + words + fails(""), 1, kernel.ClassProvider, "provider_error", "turn failed"},
		"gave up":             {begun + words + tells("Reconnecting... waiting for network (Connection failed)"), 1, kernel.ClassNetwork, "network_error", ""},
		"told, and not ended": {begun + words + tells("unexpected status 401 Unauthorized"), 1, kernel.ClassSignIn, "signed_out", ""},
		"got over, then died": {begun + tells("unexpected status 401 Unauthorized") + words, 1, kernel.ClassExecution, "agent_died", "exited with 1"},
		"told, then crashed":  {begun + words + tells("Reconnecting... 1/5"), 101, kernel.ClassExecution, "agent_died", "exited with 101"},
		"warned, then died":   {begun + warning + words, 1, kernel.ClassExecution, "agent_died", "it printed: the disk is slow"},
		"no end":              {begun + words, 0, kernel.ClassExecution, "agent_died", "exited with 0"},
		"answer of no shape":  {begun + words + `{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":7}}` + "\n" + over, 0, kernel.ClassProtocol, "protocol_error", ""},
		"item of no shape":    {begun + words + `{"type":"item.completed","item":"what"}` + "\n" + over, 0, kernel.ClassProtocol, "protocol_error", ""},
		"usage of no shape":   {begun + words + `{"type":"turn.completed","usage":"much"}` + "\n", 0, kernel.ClassProtocol, "protocol_error", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			_, err := w.Invoke(t, open(t, w, plain(tc.out, tc.code), invoketest.Options{}), w.Request("x"))
			if f := invoketest.Failed(t, err, tc.class, tc.reason); w.Partial(t, f) != "words" || !strings.Contains(f.Text, tc.text) {
				t.Errorf("%s; kept %q", f.Text, w.Partial(t, f))
			}
		})
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		item    string
		want    *kernel.ToolCall
		changed bool
	}{
		{`"type":"command_execution","command":"rm x","status":"declined"`, &kernel.ToolCall{Kind: "execute", Title: "rm x", Status: "failed"}, true},
		{`"type":"file_change","changes":[{"path":"WS/a.go","kind":"update"},{"path":"/etc/b","kind":"add"}],"status":"completed"`, &kernel.ToolCall{Kind: "edit", Title: "a.go, /etc/b", Status: "completed"}, true},
		{`"type":"web_search","query":"words"`, &kernel.ToolCall{Kind: "search", Title: "words", Status: "completed"}, false},
		{`"type":"web_search","query":{"of":"any shape"}`, &kernel.ToolCall{Kind: "search", Status: "completed"}, false},
		{`"type":"collab_tool_call","tool":"spawn_agent","sender_thread_id":"t","status":"in_progress"`, &kernel.ToolCall{Kind: "other", Title: "spawn_agent", Status: "in_progress"}, true},
		{`"type":"reasoning","text":"secret thoughts"`, nil, false},
		{`"type":"todo_list","items":[]`, nil, false},
		{`"type":"some_day","text":"x"`, nil, true}, // who knows
	} {
		w := invoketest.NewWorld(t)
		item := strings.ReplaceAll(tc.item, "WS", filepath.ToSlash(w.Workspace))
		out := begun + words + `{"type":"item.completed","item":{"id":"item_2",` + item + "}}\n" + fails("no")
		_, err := w.Invoke(t, open(t, w, plain(out, 1), invoketest.Options{}), w.Request("x", invoketest.Write))
		f := invoketest.Failed(t, err, kernel.ClassProvider, "provider_error")
		if f.Effects != tc.changed || w.Shown() != "words" {
			t.Errorf("%s: effects %v, shown %q", tc.item, f.Effects, w.Shown())
		}
		tools := f.Partial.(kernel.Reply).Tools
		switch {
		case tc.want == nil && len(tools) > 0:
			t.Errorf("%s: %+v", tc.item, tools)
		case tc.want != nil:
			tc.want.ID = "item_2"
			if len(tools) != 1 || tools[0] != *tc.want {
				t.Errorf("%s: %+v", tc.item, tools)
			}
		}
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
