package inspector

import (
	"regexp"
	"strings"
)

var heredoc = regexp.MustCompile(`<<[-~]?\s*["']?([A-Za-z_][A-Za-z0-9_]*)["']?`)

// openHeredoc reports whether a here-document that begins in text is not closed
// in it.
func openHeredoc(text string) bool {
	end := ""
	for l := range strings.Lines(text) {
		if end != "" {
			if strings.TrimSpace(l) == end {
				end = ""
			}
			continue
		}
		if m := heredoc.FindStringSubmatch(l); m != nil {
			end = m[1]
		}
	}
	return end != ""
}
