package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string
		noise    int
		err      error
	}{
		{"values, not lines", "\xef\xbb\xbf{\"a\":1}{\"b\":2}\n\n  {\"c\":3}", []string{`{"a":1}`, `{"b":2}`, `{"c":3}`}, 0, io.EOF},
		{"noise between", "hello\n{\"a\":1}\n[1]\n", []string{`{"a":1}`}, 2, io.EOF},
		{"cut off at the end", `{"a":1}` + "\n" + `{"b":`, []string{`{"a":1}`}, 1, io.ErrUnexpectedEOF},
		{"cut off in between", `{"b":` + "\n" + `{"a":1}`, nil, 1, ErrMalformed},
		{"no JSON", `{"a":1}` + "\n" + `{a}` + "\n", []string{`{"a":1}`}, 1, ErrMalformed},
		{"behind a value", `{"a":1} and so on` + "\n", []string{`{"a":1}`}, 1, ErrMalformed},
	} {
		var got []string
		noise := 0
		err := Values(t.Context(), strings.NewReader(tc.in), Options{Noise: func([]byte) { noise++ }}, func(v json.RawMessage) error {
			got = append(got, string(v))
			return nil
		})
		if strings.Join(got, "\n") != strings.Join(tc.want, "\n") || noise != tc.noise || !errors.Is(err, tc.err) {
			t.Errorf("%s: %q, %d noise, %v", tc.name, got, noise, err)
		}
	}
}

func TestValuesEnd(t *testing.T) {
	enough := errors.New("enough")
	err := Values(t.Context(), strings.NewReader("{}\n{}\n"), Options{}, func(json.RawMessage) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("the error of each: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	n := 0
	err = Values(ctx, strings.NewReader("{}\n{}\n"), Options{}, func(json.RawMessage) error { n++; cancel(enough); return nil })
	if n != 1 || !errors.Is(err, enough) {
		t.Errorf("the end of the context: %d values, %v", n, err)
	}
	var over *LineError
	err = Values(t.Context(), strings.NewReader(strings.Repeat("x", 100)+"\n"), Options{Limit: 10}, func(json.RawMessage) error { return nil })
	if !errors.As(err, &over) || over.Bytes != 100 {
		t.Errorf("a line over the limit: %v", err)
	}
}
