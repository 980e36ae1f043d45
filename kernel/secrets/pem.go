package secrets

import (
	"regexp"
	"strings"
)

var keyMarker = regexp.MustCompile(`-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`)

const maxKey = 16 << 10 // longest block that is taken as one

// privateKeys finds whole blocks, and what is left of one whose beginning or
// end was cut off. It is no pattern: with one, many beginnings without an end
// would each search the rest of the text.
func privateKeys(text string) []Match {
	if !strings.Contains(text, "PRIVATE KEY") {
		return nil
	}
	var out []Match
	add := func(start, end int) { out = append(out, Match{"private key", start, end}) }
	marks := keyMarker.FindAllStringSubmatchIndex(text, -1)
	begins := func(m []int) bool { return text[m[2]:m[3]] == "BEGIN" }
	for i := 0; i < len(marks); i++ {
		start, end := marks[i][0], marks[i][1]
		switch {
		case !begins(marks[i]):
			add(len(strings.TrimRightFunc(text[:start], keyRune)), end)
		case i+1 < len(marks) && !begins(marks[i+1]) && marks[i+1][1]-start <= maxKey:
			i++
			add(start, marks[i][1])
		default:
			add(start, len(text)-len(strings.TrimLeftFunc(text[end:], keyRune)))
		}
	}
	return out
}

// keyRune reports what stands between the markers: base64, its line ends, and
// the two characters \n of a key on one line.
func keyRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+/=\\ \t\r\n", r)
}
