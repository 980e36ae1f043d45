package codex

import (
	"strings"

	"witan/kernel"
	"witan/stages/invoke/turn"
)

// signs are the agent's own words of a failure that say more than turn.Classify
// reads from the text and the status in it.
var signs = []struct{ words, class, reason string }{
	{"Incomplete response returned, reason: max_output_tokens", kernel.ClassExecution, "output_limit"},
	{"Incomplete response returned, reason: content_filter", kernel.ClassExecution, "refused"},
}

func failure(text string) *kernel.Failure {
	f := turn.Classify(text, "", 0)
	for _, s := range signs {
		if strings.Contains(text, s.words) {
			f.Class, f.Reason = s.class, s.reason
			break
		}
	}
	return f
}

// lost reports whether the thread could not be resumed: it is not there, or its
// record is damaged.
func lost(stderr string) bool {
	return strings.Contains(stderr, "thread/resume failed") || strings.Contains(stderr, "no rollout found")
}

// usageError is the end of a program that does not take the arguments.
func usageError(e turn.Exit) bool {
	return e.Itself && e.Code == 2 && strings.Contains(e.Stderr, "error: ") && strings.Contains(e.Stderr, "argument")
}
