package kernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds nesting, so that hostile input cannot exhaust the stack.
const maxDepth = 64

// Canonical encodes v as canonical JSON: keys sorted by bytes, no white space,
// no floats, shortest escapes, valid UTF-8. Equal values give equal bytes.
func Canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, E("kernel.Canonical", Invalid, err, "not encodable")
	}
	return CanonicalJSON(b.Bytes())
}

// CanonicalJSON rewrites one JSON value in canonical form. A duplicate key at
// any level, a float, a number beyond 64 bits, trailing data or nesting past 64
// is an Invalid error.
func CanonicalJSON(in []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(in))
	dec.UseNumber()
	out := make([]byte, 0, len(in))
	out, err := canonValue(dec, out, 0)
	if err != nil {
		return nil, E("kernel.CanonicalJSON", Invalid, err, "not canonical JSON")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, E("kernel.CanonicalJSON", Invalid, nil, "data after the JSON value")
	}
	return out, nil
}

func canonValue(dec *json.Decoder, out []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, t), nil
	case json.Number:
		return canonNumber(out, string(t))
	case string:
		return AppendString(out, t), nil
	case json.Delim:
		if t == '{' {
			return canonObject(dec, out, depth)
		}
		return canonArray(dec, out, depth)
	}
	return nil, fmt.Errorf("unexpected token %v", t)
}

func canonNumber(out []byte, s string) ([]byte, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return strconv.AppendInt(out, i, 10), nil
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return strconv.AppendUint(out, u, 10), nil
	}
	return nil, fmt.Errorf("number %s is not a 64-bit integer", clip(s, 40))
}

func canonArray(dec *json.Decoder, out []byte, depth int) ([]byte, error) {
	out = append(out, '[')
	for i := 0; dec.More(); i++ {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = canonValue(dec, out, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return append(out, ']'), err
}

func canonObject(dec *json.Decoder, out []byte, depth int) ([]byte, error) {
	type member struct {
		key string
		val []byte
	}
	var ms []member
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := canonValue(dec, nil, depth+1)
		if err != nil {
			return nil, err
		}
		ms = append(ms, member{k.(string), v})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	slices.SortFunc(ms, func(a, b member) int { return strings.Compare(a.key, b.key) })
	out = append(out, '{')
	for i, m := range ms {
		if i > 0 {
			if ms[i-1].key == m.key {
				return nil, fmt.Errorf("duplicate key %q", clip(m.key, 80))
			}
			out = append(out, ',')
		}
		out = append(AppendString(out, m.key), ':')
		out = append(out, m.val...)
	}
	return append(out, '}'), nil
}

// AppendString appends s as a canonical JSON string: only the quote, the
// backslash and control characters are escaped; bytes that are not UTF-8 become
// U+FFFD.
func AppendString(out []byte, s string) []byte {
	out = append(out, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				out = append(out, '\\', c)
			case c == '\n':
				out = append(out, '\\', 'n')
			case c == '\t':
				out = append(out, '\\', 't')
			case c == '\r':
				out = append(out, '\\', 'r')
			case c < 0x20 || c == 0x7f:
				out = fmt.Appendf(out, `\u%04x`, c)
			default:
				out = append(out, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			out = append(out, "\uFFFD"...)
		} else {
			out = append(out, s[i:i+n]...)
		}
		i += n
	}
	return append(out, '"')
}

// DecodeStrict decodes exactly one JSON value into v: unknown fields, duplicate
// keys and trailing data are Invalid errors that name the key.
func DecodeStrict(b []byte, v any) error {
	if _, err := CanonicalJSON(b); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return E("kernel.DecodeStrict", Invalid, err, "wrong shape")
	}
	return nil
}
