package gemini

import (
	"encoding/json"
	"regexp"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/stream"
	"witan/stages/invoke/turn"
)

// signs are words of a failure that only these programs say, in lower case. What
// is in no row is read as any agent's words are.
var signs = []struct {
	words, class, reason string
}{
	{"missing api key", kernel.ClassSignIn, "signed_out"},
	{"must specify the gemini_api_key", kernel.ClassSignIn, "signed_out"},
	{"please set an auth method", kernel.ClassSignIn, "signed_out"},
	{"invalid session identifier", kernel.ClassSession, "session_gone"},
	{"no saved session found", kernel.ClassSession, "session_gone"},
	{"api error: terminated", kernel.ClassNetwork, "network_error"},
	{"other side closed", kernel.ClassNetwork, "network_error"},
	{"maximum session turns", kernel.ClassBudget, "agent_limit"},
}

// codes are exits that say what happened where no word does. Others are worth
// nothing: a provider's status is cut to eight bits in some.
var codes = map[int]struct{ class, reason string }{
	41: {kernel.ClassSignIn, "signed_out"},
	53: {kernel.ClassBudget, "agent_limit"}, // too many turns
	55: {kernel.ClassBudget, "agent_limit"}, // too long, or too many tools
}

// failure reads the words with which a program ended a turn.
func failure(text string) *kernel.Failure {
	f := turn.Classify(text, "", 0)
	if class, reason := sign(text); class != "" {
		f.Class, f.Reason = class, reason
	}
	f.Text = turn.Clean(plain(text))
	return f
}

func sign(text string) (class, reason string) {
	text = strings.ToLower(text)
	for _, s := range signs {
		if strings.Contains(text, s.words) {
			return s.class, s.reason
		}
	}
	return "", ""
}

// died reads an end without a result.
func died(t *stream.Turn, code int, itself bool, stderr string, f *kernel.Failure) *kernel.Failure {
	class, reason := sign(stderr)
	if c, ok := codes[code]; class == "" && ok && itself && f.Reason == "agent_died" {
		class, reason = c.class, c.reason
	}
	switch {
	case class == kernel.ClassSession && t.Resume != "":
		return stream.Gone()
	case class != "":
		f.Class, f.Reason = class, reason
	}
	return f
}

// apiError is how both programs wrap what their provider said.
var apiError = regexp.MustCompile(`(?s)^\[API Error: (.*?)\](?:\n.*)?$`)

// plain takes the provider's sentence out of what is wrapped around it.
func plain(text string) string {
	m := apiError.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return text
	}
	var inner struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if wrapped := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "[API Error: "), "]"); json.Unmarshal([]byte(wrapped), &inner) == nil && inner.Error.Message != "" {
		return inner.Error.Message
	}
	return m[1]
}
