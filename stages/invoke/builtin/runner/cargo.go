package runner

import (
	"regexp"
	"strconv"
	"strings"

	"witan/stages/invoke/builtin/work"
)

var (
	cargoHead  = regexp.MustCompile(`^---- (\S+) stdout ----$`)
	cargoPanic = regexp.MustCompile(`panicked at (?:'.*', )?([^\s:]+\.rs):(\d+):\d+`)
	cargoError = regexp.MustCompile(`^error(?:\[E\d+\])?: (.+)$`)
	cargoAt    = regexp.MustCompile(`^\s+--> ([^\s:]+\.rs):(\d+):\d+$`)
	cargoGone  = regexp.MustCompile(`no matching package named|failed to (?:download|load source|fetch)|attempting to make an HTTP request|linker .* not found|network access`)
)

func cargoLacks(_ *work.Folder, out string) bool { return cargoGone.MatchString(out) }

// parseCargo reads compile errors and panics of tests.
func parseCargo(p places, out string) []failure {
	var all []failure
	test, message := "", ""
	for l := range strings.Lines(out) {
		l = strings.TrimRight(l, "\r\n")
		if m := cargoHead.FindStringSubmatch(l); m != nil {
			test = m[1]
		} else if m := cargoError.FindStringSubmatch(l); m != nil {
			message = m[1]
		} else if m := cargoAt.FindStringSubmatch(l); m != nil && message != "" {
			if at := p.find(m[1]); at != "" {
				line, _ := strconv.Atoi(m[2])
				all = append(all, failure{build: true, path: at, line: line, message: message})
			}
			message = ""
		} else if m := cargoPanic.FindStringSubmatch(l); m != nil && test != "" {
			if at := p.find(m[1]); at != "" {
				line, _ := strconv.Atoi(m[2])
				all = append(all, failure{name: test, path: at, line: line})
			}
			test = ""
		}
	}
	return once(all)
}
