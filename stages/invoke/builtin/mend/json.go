package mend

import (
	"bytes"
	"encoding/json"

	"witan/stages/invoke/builtin/inspector"
)

// commas takes away commas before a closing bracket, if the file parses
// without them and not with them.
func commas(name string, b []byte) ([]byte, []Fix) {
	if inspector.BadJSON(name, b) == nil {
		return nil, nil
	}
	var out []byte
	var fixes []Fix
	kept := 0 // everything before is in out
	for _, at := range trailing(b) {
		out = append(out, b[kept:at]...)
		kept = at + 1
		fixes = append(fixes, Fix{JSON, 1 + bytes.Count(b[:at], []byte{'\n'}), "took away the comma before a closing bracket"})
	}
	out = append(out, b[kept:]...)
	if !json.Valid(bytes.TrimPrefix(out, []byte("\xef\xbb\xbf"))) {
		return nil, nil
	}
	return out, fixes
}

// trailing are the offsets of the commas with nothing but space between them
// and a closing bracket.
func trailing(b []byte) []int {
	var all []int
	comma, inside := -1, false
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case inside && c == '\\':
			i++
		case c == '"':
			inside, comma = !inside, -1
		case inside || c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == ',':
			comma = i
		default:
			if (c == '}' || c == ']') && comma >= 0 {
				all = append(all, comma)
			}
			comma = -1
		}
	}
	return all
}
