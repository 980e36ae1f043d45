package claude

import (
	"slices"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/turn"
)

// result is how the agent ended a turn.
type result struct {
	Session  string `json:"session_id"`
	Subtype  string `json:"subtype"`
	IsError  bool   `json:"is_error"`
	Result   string `json:"result"`
	Stop     string `json:"stop_reason"`
	Terminal string `json:"terminal_reason"`
	Status   *int   `json:"api_error_status"`
	Word     string `json:"api_error"`
	Kind     string `json:"api_error_type"`
	Errors   []any  `json:"errors"`
	Origin   struct {
		Kind string `json:"kind"`
	} `json:"origin"`
	Usage  *counts                `json:"usage"`
	Models map[string]modelCounts `json:"model_usage_since_last_result"`
}

// signs are the agent's own words of a failure, in order: of the result's end, of
// its error, and of the message that told it. What is in no row is read from the
// text and the status.
var signs = []struct {
	words         []string
	class, reason string
}{
	{[]string{"prompt_too_long"}, kernel.ClassContextOverflow, "context_overflow"},
	{[]string{"authentication_failed", "authentication_error", "permission_error", "oauth_org_not_allowed"}, kernel.ClassSignIn, "signed_out"},
	{[]string{"billing_error"}, kernel.ClassSignIn, "billing"},
	{[]string{"rate_limit", "rate_limit_error"}, kernel.ClassRateLimit, "rate_limited"},
	{[]string{"max_output_tokens"}, kernel.ClassExecution, "output_limit"},
	{[]string{"connection_failed"}, kernel.ClassNetwork, "network_error"},
	{[]string{"timeout_error"}, kernel.ClassTimeout, "provider_timeout"},
	{[]string{"server_error", "overloaded", "overloaded_error", "api_error"}, kernel.ClassProvider, "provider_error"},
	{[]string{"model_not_found", "not_found_error"}, kernel.ClassCompatibility, "unknown_model"},
	{[]string{"error_max_turns", "error_max_budget_usd"}, kernel.ClassBudget, "agent_limit"},
	{[]string{"aborted_streaming", "aborted_tools"}, kernel.ClassCancelled, "cancelled_by_agent"},
	{[]string{"refusal"}, kernel.ClassExecution, "refused"},
}

// failure is what went wrong; nil for a good end. before is an error that was
// told in the shape of an answer.
func (r result) failure(before *told) *kernel.Failure {
	if !r.IsError && r.Subtype == "success" && r.Stop != "refusal" {
		return nil
	}
	text, status := r.text(before), 0
	words := []string{r.Stop, r.Subtype, r.Word, r.Kind}
	if r.Terminal != "api_error" { // which says only that there was one
		words = append([]string{r.Terminal}, words...)
	}
	if r.Status != nil {
		status = *r.Status
	}
	if before != nil {
		words = append(words, before.word)
		if status == 0 {
			status = before.status
		}
	}
	f := turn.Classify(text, "", status)
	for _, w := range words {
		for _, s := range signs {
			if slices.Contains(s.words, w) {
				f.Class, f.Reason = s.class, s.reason
				return f
			}
		}
	}
	return f
}

// text is the agent's own sentence of what went wrong.
func (r result) text(before *told) string {
	if strings.TrimSpace(r.Result) != "" {
		return r.Result
	}
	var all []string
	for _, e := range r.Errors {
		// what stands in brackets is for the program's own makers
		if s, ok := e.(string); ok && !strings.HasPrefix(s, "[") {
			all = append(all, s)
		}
	}
	switch {
	case len(all) > 0:
		return strings.Join(all, "; ")
	case before != nil && before.text != "":
		return before.text
	}
	return "the agent ended the turn with " + r.Subtype
}

// stop is the reason in the words of the reply.
func (r result) stop() string {
	if r.Stop == "" || r.Stop == "stop_sequence" {
		return "end_turn"
	}
	return r.Stop
}
