package mend

import (
	"bytes"
	"encoding/json"
	"fmt"

	"witan/stages/invoke/builtin/inspector"
)

// commas takes away commas before a closing bracket, if the file parses
// without them and not with them.
func commas(name string, b []byte) ([]byte, []Fix) {
	if inspector.BadJSON(name, b) == nil {
		return nil, nil
	}
	var out []byte
	all := trailing(b)
	if len(all) == 0 {
		return nil, nil
	}
	kept := 0 // everything before is in out
	for _, at := range all {
		out = append(out, b[kept:at]...)
		kept = at + 1
	}
	out = append(out, b[kept:]...)
	if !json.Valid(bytes.TrimPrefix(out, []byte("\xef\xbb\xbf"))) {
		return nil, nil
	}
	what := "took away the comma before a closing bracket"
	if len(all) > 1 {
		what = fmt.Sprintf("took away %d commas before closing brackets", len(all))
	}
	return out, []Fix{{JSON, 1 + bytes.Count(b[:all[0]], []byte{'\n'}), what}}
}

// trailing are the offsets of the commas behind a value with nothing but space
// between them and a closing bracket.
func trailing(b []byte) []int {
	var all []int
	comma, inside, last := -1, false, byte('[') // last sign that is no space
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case inside && c == '\\':
			i++
		case c == '"':
			inside, comma, last = !inside, -1, c
		case inside || c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == ',' && last != '[' && last != '{' && last != ',' && last != ':':
			comma, last = i, c
		default:
			if (c == '}' || c == ']') && comma >= 0 {
				all = append(all, comma)
			}
			comma, last = -1, c
		}
	}
	return all
}
