package kernel

import (
	"strings"
	"unicode/utf8"
)

// Bounds of what a person sends.
const (
	MaxTask  = 32_000 // characters of one task
	MaxQueue = 100    // entries that wait in one conversation
)

// CheckQueueText refuses a text that could not be submitted when its turn comes.
func CheckQueueText(op, text string) error {
	n := utf8.RuneCountInString(text)
	switch {
	case strings.TrimSpace(text) == "":
		return E(op, Invalid, nil, "the message is empty").WithNext("say what the agents should do")
	case !utf8.ValidString(text):
		return E(op, Invalid, nil, "the message is not UTF-8 text").WithNext("convert it")
	case n > MaxTask:
		return E(op, Invalid, nil, "the message has %d characters, more than %d", n, MaxTask).
			WithNext("put the long part into a file of the workspace and name it")
	}
	return nil
}
