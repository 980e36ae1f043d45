package kernel

import (
	"bytes"
	"strings"
	"testing"
)

func TestCanonicalJSON(t *testing.T) {
	for _, tc := range []struct{ in, want, err string }{
		{`{"b":1,"a":[true,null,"x"]}`, `{"a":[true,null,"x"],"b":1}`, ""},
		{` { "a" : -0 } `, `{"a":0}`, ""},
		{`"\u00e9\u2028</script>\/"`, "\"é\u2028</script>/\"", ""},
		{`"a\u0001\u007f\n\t\r\"\\"`, `"a\u0001\u007f\n\t\r\"\\"`, ""},
		{`18446744073709551615`, `18446744073709551615`, ""},
		{`1.5`, "", "64-bit integer"},
		{`1e3`, "", "64-bit integer"},
		{`18446744073709551616`, "", "64-bit integer"},
		{`{"a":1,"a":2}`, "", `duplicate key "a"`},
		{`{"x":{"a":1,"\u0061":2}}`, "", `duplicate key "a"`},
		{`{} {}`, "", "after the JSON value"},
		{`{"a":}`, "", ""},
		{strings.Repeat("[", 100) + strings.Repeat("]", 100), "", "deeper"},
	} {
		got, err := CanonicalJSON([]byte(tc.in))
		if tc.want == "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || !IsKind(err, Invalid) {
				t.Errorf("%s: got %s, %v; want error %q", tc.in, got, err, tc.err)
			}
			continue
		}
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, %v; want %s", tc.in, got, err, tc.want)
		}
	}
}

func FuzzCanonicalJSON(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":"é"}`, `[1,2,{"x":null}]`, `"\ud800"`, `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := CanonicalJSON(in)
		if err != nil {
			return
		}
		again, err := CanonicalJSON(out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("canonical form of %q is not stable: %q, %q, %v", in, out, again, err)
		}
	})
}

func TestDecodeStrict(t *testing.T) {
	var v struct {
		A int `json:"a"`
	}
	for _, in := range []string{`{"a":1,"b":2}`, `{"a":"x"}`, `{"a":1}x`, `{"a":1,"a":1}`, ``} {
		if err := DecodeStrict([]byte(in), &v); !IsKind(err, Invalid) {
			t.Errorf("%q: got %v", in, err)
		}
	}
	if err := DecodeStrict([]byte(`{"a":3}`), &v); err != nil || v.A != 3 {
		t.Errorf("got %v, %d", err, v.A)
	}
}
