package commit

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"witan/kernel"
	"witan/kernel/secrets"
)

// maxTitle is the length of a title, in characters.
const maxTitle = 72

func trailer(run kernel.RunID) string { return "Witan-Run: " + string(run) }

// message is what a commit says: the task, its first line as the title, and the run.
func message(task string, run kernel.RunID) string {
	task = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, secrets.Redact(strings.ToValidUTF8(task, "\uFFFD")))
	task = strings.TrimSpace(task)
	first, rest, _ := strings.Cut(task, "\n")
	title := strings.Join(strings.Fields(first), " ")
	if utf8.RuneCountInString(title) > maxTitle {
		title = strings.TrimSpace(string([]rune(title)[:maxTitle-1])) + "…"
		rest = task // the title does not say it all
	}
	if title == "" {
		title = "Result of a run"
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		title += "\n\n" + rest
	}
	return title + "\n\n" + trailer(run) + "\n"
}
