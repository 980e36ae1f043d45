package receipts

import (
	"encoding/json"

	"witan/kernel"
)

// Codes of what can be wrong with the arguments of a tool; stable.
const (
	BadArguments      = "arguments_invalid"
	ArgumentsTooLarge = "arguments_too_large"
)

// tools are the tools of a turn, besides the one that takes the receipt.
var tools = map[string]map[string]field{
	"context": {"id": {kind: "string", required: true}},
	"ask":     {"question": {kind: "string", required: true}, "options": {kind: "list"}},
	"finding": {"severity": {kind: "enum", required: true, of: severities}, "stance": {kind: "enum", of: verdicts},
		"title": {kind: "string", required: true}, "detail": {kind: "string", required: true},
		"path": {kind: "string"}, "line": {kind: "int"}, "evidence": {kind: "list"}},
}

// Arguments reads what an agent gave to a tool, by the bounds of receipts and
// strictly, and returns it in canonical form. No arguments are an empty object.
func Arguments(tool string, raw []byte) (json.RawMessage, error) {
	keys, ok := tools[tool]
	if !ok {
		return nil, &Error{Code: BadArguments, What: "there is no such tool"}
	}
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	m, bad := read(raw)
	if bad != nil {
		code := BadArguments
		if bad.Code == TooLarge {
			code = ArgumentsTooLarge
		}
		return nil, &Error{Code: code, What: bad.What}
	}
	p := &parser{strict: true}
	if p.object(m, keys, ""); p.err != nil {
		if bad, ok := p.err.(*Error); ok {
			bad.Code = BadArguments
		}
		return nil, p.err
	}
	out, err := kernel.Canonical(m)
	if err != nil {
		return nil, &Error{Code: BadArguments, What: cause(err)}
	}
	return out, nil
}
