package opencode

import (
	"encoding/json"

	"witan/kernel"
	"witan/stages/invoke/turn"
)

// failure is an error as the program tells it.
type failure struct {
	Name string `json:"name"`
	Data struct {
		Message string         `json:"message"`
		Status  int            `json:"statusCode"`
		Headers map[string]any `json:"responseHeaders"`
		Body    string         `json:"responseBody"`
	} `json:"data"`
}

// signs are the names of errors that say all. Others are read from the status,
// the words and what the provider answered.
var signs = map[string]struct{ class, reason string }{
	"ProviderAuthError":        {kernel.ClassSignIn, "signed_out"},
	"ContextOverflowError":     {kernel.ClassContextOverflow, "context_overflow"},
	"MessageOutputLengthError": {kernel.ClassExecution, "output_limit"},
	"MessageAbortedError":      {kernel.ClassCancelled, "cancelled_by_agent"},
}

// maxBody bounds what is read of a provider's answer: pages are not for us.
const maxBody = 2000

func (f *failure) failure() *kernel.Failure {
	message := f.Data.Message
	var inner struct { // a provider's error, as it came inside a stream
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(message), &inner) == nil && inner.Message != "" {
		message = inner.Message
	}
	if message == "" {
		message = "the agent reports " + f.name()
	}
	data := f.Data.Message
	if len(f.Data.Body) <= maxBody {
		data += " " + f.Data.Body
	}
	if wait, ok := f.Data.Headers["retry-after"].(string); ok {
		data += " retry-after: " + wait
	}
	out := turn.Classify(message, data, f.Data.Status)
	if s, ok := signs[f.Name]; ok {
		out.Class, out.Reason = s.class, s.reason
	}
	return out
}

func (f *failure) name() string {
	if f.Name == "" {
		return "an error"
	}
	return f.Name
}
