package turn

import (
	"strings"
	"testing"
	"time"

	"witan/kernel"
)

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		message, data string
		code          int
		class, reason string
	}{
		{"Internal error: Incorrect API key provided.", `{"errorName":"APIError"}`, -32603, kernel.ClassSignIn, "signed_out"},
		{`{"error":{"code":401,"status":"UNAUTHENTICATED"}}`, "", 401, kernel.ClassSignIn, "signed_out"},
		{"nope", "", 401, kernel.ClassSignIn, "signed_out"},
		{"Not logged in · Please run /login", "", 0, kernel.ClassSignIn, "signed_out"},
		{"unexpected status 401 here", "", 0, kernel.ClassSignIn, "signed_out"},
		{"Error: Authentication failed with provider (HTTP 401).\n  Check your key.", "", 0, kernel.ClassSignIn, "signed_out"},
		{"Internal error", `{"errorKind":"rate_limit"}`, -32603, kernel.ClassRateLimit, "rate_limited"},
		{"exceeded retry limit, last status: 429 Too Many Requests", "", 0, kernel.ClassRateLimit, "rate_limited"},
		{"failed", `{"httpStatusCode":429}`, 0, kernel.ClassRateLimit, "rate_limited"},
		{"Quota exceeded.", "", 0, kernel.ClassRateLimit, "rate_limited"},
		{"The input token count (9) exceeds the maximum number of tokens allowed (8).", "", 400, kernel.ClassContextOverflow, "context_overflow"},
		{"This model's maximum context length is 8192 tokens.", `{"code":"context_length_exceeded"}`, -32603, kernel.ClassContextOverflow, "context_overflow"},
		{"ran out of room in the model's context window", "", 500, kernel.ClassContextOverflow, "context_overflow"},
		{"Session not found: 05d5", "", -32602, kernel.ClassSession, "session_gone"},
		{"Internal error", `{"details":"Invalid session identifier"}`, -32603, kernel.ClassSession, "session_gone"},
		{"stream disconnected before completion: transport error", "", 0, kernel.ClassNetwork, "network_error"},
		{"connect ECONNREFUSED 127.0.0.1:9", "", 0, kernel.ClassNetwork, "network_error"},
		{"the request timed out", "", 0, kernel.ClassTimeout, "provider_timeout"},
		{"terminated", "", 500, kernel.ClassProvider, "provider_error"},
		{"status 503", "", 0, kernel.ClassProvider, "provider_error"},
		{"We are experiencing high demand", "", 0, kernel.ClassProvider, "provider_error"},
		{"Error: 400 of 429 files could not be read", "", 0, kernel.ClassProvider, "provider_error"},
		{"it cost 401 dollars", "", 0, kernel.ClassProvider, "provider_error"}, // a number is no status by itself
		{"", "", 0, kernel.ClassProvider, "provider_error"},
	} {
		f := Classify(tc.message, tc.data, tc.code)
		if f.Class != tc.class || f.Reason != tc.reason {
			t.Errorf("%q %s %d is %s %s, want %s", tc.message, tc.data, tc.code, f.Class, f.Reason, tc.class)
		}
	}
}

func TestClassifyTextIsShortAndWithoutSecrets(t *testing.T) {
	f := Classify("key AKIAIOSFODNN7EXAMPLE \x1b[31m"+strings.Repeat("x", 5000), "", 0)
	if strings.Contains(f.Text, "AKIA") || strings.Contains(f.Text, "\x1b") || len(f.Text) > 700 {
		t.Errorf("%d bytes: %.80q", len(f.Text), f.Text)
	}
}

func TestRetryAfter(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"nothing here": 0, "Retry-After: 3": 3 * time.Second, `{"retryAfter":"7"}`: 7 * time.Second, `{"retry_after_ms": 250}`: 250 * time.Millisecond,
		"Please try again in 1.5s.": 1500 * time.Millisecond, "retry after 2 m": 2 * time.Minute, "try again in 20 ms": 20 * time.Millisecond,
		"Please try again later.": 0, "retry-after: 999999999999999999999": 24 * time.Hour,
	} {
		if got := Classify("429 rate limit", s, 0).RetryAfter; got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestReadError(t *testing.T) {
	const copilot, codex, claude = "Copilot", "@agentclientprotocol/codex-acp", "@agentclientprotocol/claude-agent-acp"
	for _, tc := range []struct {
		name, text, last, class string
	}{
		{copilot, "Half an ansError: 429 Rate limit reached.", "Error: 429 Rate limit reached.", kernel.ClassRateLimit},
		{copilot, "Info: retrying\nError: Authentication failed (HTTP 401).\n  Check your key.", "Error: Authentication failed (HTTP 401).\n  Check your key.", kernel.ClassSignIn},
		{copilot, "Error: means that something failed, " + strings.Repeat("and so on ", 400), "x", ""},
		{copilot, "All is well.", "well.", ""},
		{codex, "Warning: x\n\nexceeded retry limit, last status: 429 Too Many Requests\n\n", "exceeded retry limit, last status: 429 Too Many Requests\n\n", kernel.ClassRateLimit},
		{codex, `{"error":{"code":"context_length_exceeded"}}`, `{"error":{"code":"context_length_exceeded"}}`, kernel.ClassContextOverflow},
		{codex, "Error: this is what the log says", "Error: this is what the log says", ""},
		{claude, "Error: this is what the log says", "Error: this is what the log says", ""},
		{"", "fine\nError: 401 unauthorized", "401 unauthorized", kernel.ClassSignIn},
		{"", "The log says Error: 401", " 401", ""},
		{"", "Error: x\n<witan-receipt>{}</witan-receipt>", "<witan-receipt>{}</witan-receipt>", ""},
	} {
		f := ReadError(tc.name, tc.text, tc.last)
		switch {
		case f == nil && tc.class != "":
			t.Errorf("%s %q is taken for an answer", tc.name, tc.text)
		case f != nil && f.Class != tc.class:
			t.Errorf("%s %q is %s", tc.name, tc.text, f.Class)
		}
	}
}
