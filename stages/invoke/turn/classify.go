package turn

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"witan/kernel"
	"witan/kernel/marker"
)

// signs are words by which failures are known, in order: an earlier line wins.
var signs = []struct {
	class, reason string
	words         []string
}{
	{kernel.ClassContextOverflow, "context_overflow", []string{"context length", "context window", "context_length", "prompt is too long", "prompt_too_long",
		"contextoverflow", "maximum number of tokens"}},
	{kernel.ClassSignIn, "signed_out", []string{"unauthorized", "unauthenticated", "not logged in", "please run /login", "authentication", "authenticate",
		"invalid api key", "incorrect api key", "api_key_invalid", "invalid_api_key"}},
	{kernel.ClassRateLimit, "rate_limited", []string{"rate limit", "rate_limit", "ratelimit", "too many requests", "quota", "usage limit", "resource_exhausted"}},
	{kernel.ClassSession, "session_gone", []string{"unknown session", "session not found", "invalid session", "no such session", "no conversation found"}},
	{kernel.ClassNetwork, "network_error", []string{"econnrefused", "connection refused", "enotfound", "network error", "could not connect", "fetch failed",
		"econnreset", "connection reset", "stream disconnected", "body from connection", "no such host", "waiting for network"}},
	{kernel.ClassTimeout, "provider_timeout", []string{"timed out", "timeout", "etimedout", "deadline exceeded"}},
}

// httpStatus finds a status where a text speaks of one: "last status: 429",
// "HTTP 401", `"httpStatusCode":429`, or at its beginning.
var httpStatus = regexp.MustCompile(`(?:status|code|http|error)[^0-9a-z]{0,12}([45]\d\d)\b|^(?:error: )?([45]\d\d) `)

// byStatus says what an HTTP status means; 400 means nothing by itself.
func byStatus(code int) (class, reason string) {
	switch {
	case code == 401 || code == 403:
		return kernel.ClassSignIn, "signed_out"
	case code == 429:
		return kernel.ClassRateLimit, "rate_limited"
	case code == 408 || code == 504:
		return kernel.ClassTimeout, "provider_timeout"
	case code >= 500 && code < 600:
		return kernel.ClassProvider, "provider_error"
	}
	return "", ""
}

// Classify reads an agent's own words of a failure: what it said, further data,
// and a code that may be an HTTP status. What is not understood is the
// provider's failure. Words go before numbers: a full context is told as a
// status 400 by one and as a 500 by another.
func Classify(message, data string, code int) *kernel.Failure {
	f := &kernel.Failure{Text: Clean(message), RetryAfter: retryAfter(message + " " + data)}
	all := strings.ToLower(message + " " + data)
	f.Class, f.Reason = byWords(all)
	if f.Class == "" {
		f.Class, f.Reason = byStatus(code)
	}
	if m := httpStatus.FindStringSubmatch(all); f.Class == "" && m != nil {
		n, _ := strconv.Atoi(m[1] + m[2])
		f.Class, f.Reason = byStatus(n)
	}
	if f.Class == "" {
		f.Class, f.Reason = kernel.ClassProvider, "provider_error"
	}
	return f
}

func byWords(all string) (class, reason string) {
	for _, s := range signs {
		for _, w := range s.words {
			if strings.Contains(all, w) {
				return s.class, s.reason
			}
		}
	}
	return "", ""
}

// Known reports whether a text names a failure that is not simply "something failed".
func Known(text string) bool {
	all := strings.ToLower(text)
	class, _ := byWords(all)
	return class != "" || httpStatus.MatchString(all)
}

var (
	after   = regexp.MustCompile(`(?i)retry[-_ ]?after(?:[-_ ]?(ms))?["'\s:=]{1,4}(\d+(?:\.\d+)?)\s*(ms|s|m)?`)
	againIn = regexp.MustCompile(`(?i)(?:try again|retry(?:ing)?) (?:in|after) (\d+(?:\.\d+)?)\s*(ms|s|m)?`)
)

// maxRetryAfter bounds what a provider may ask for; a longer wait is a matter
// for a person.
const maxRetryAfter = 24 * time.Hour

// retryAfter is the wait that a provider asked for, in seconds unless it says otherwise.
func retryAfter(s string) time.Duration {
	number, unit := "", ""
	if m := after.FindStringSubmatch(s); m != nil {
		number, unit = m[2], strings.ToLower(m[1]+m[3])
	} else if m := againIn.FindStringSubmatch(s); m != nil {
		number, unit = m[1], strings.ToLower(m[2])
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	of := time.Second
	switch unit {
	case "ms":
		of = time.Millisecond
	case "m":
		of = time.Minute
	}
	return time.Duration(min(n*float64(of), float64(maxRetryAfter)))
}

// maxError is how long an answer may be that is only an error, in bytes.
const maxError = 2000

// codex says these, and nothing else, in place of an answer.
var codex = []string{"exceeded retry limit", "unexpected status ", "We’re currently experiencing high demand", "We're currently experiencing high demand",
	"stream disconnected before completion", "Codex ran out of room", "Quota exceeded", `{"error":`, "You've hit your usage limit"}

// plain are agents that report failures as the protocol says: their answers are
// answers, also those that begin with "Error: ".
var plain = []string{"claude", "opencode", "kilo", "gemini", "qwen", "openclaw"}

// ReadError reads answers that are errors in the shape of a reply: some agents
// report their provider's failures only there. name is what the agent calls
// itself, last the last piece of the answer. It returns nil for an answer.
func ReadError(name, text, last string) *kernel.Failure {
	name = strings.ToLower(name)
	last = strings.TrimSpace(last)
	switch {
	case strings.Contains(name, "codex"):
		for _, s := range codex {
			if strings.HasPrefix(last, s) && len(last) <= maxError {
				return Classify(last, "", 0)
			}
		}
		return nil
	case matches(name, plain):
		return nil
	}
	text = strings.TrimSpace(text)
	for _, s := range []string{last, text[strings.LastIndexByte(text, '\n')+1:]} {
		if strings.HasPrefix(s, "Error: ") && len(s) <= maxError && !strings.Contains(s, marker.ReceiptOpen) {
			return Classify(s, "", 0)
		}
	}
	return nil
}

func matches(name string, kinds []string) bool {
	for _, k := range kinds {
		if strings.Contains(name, k) {
			return true
		}
	}
	return false
}
