package turn

import (
	"strings"
	"testing"
)

func TestHideText(t *testing.T) {
	h := Hide{"secret": "[A]", "secret-long": "[B]", "": "never", "retro": "[C]"}
	for in, want := range map[string]string{
		"":                          "",
		"no such thing":             "no such thing",
		"a secret b":                "a [A] b",
		"a secret-long b":           "a [B] b",
		"secret-lon":                "[A]-lon",
		"secretsecret":              "[A][A]",
		"secretro":                  "[A]ro", // what overlaps is taken from the left
		"ends with secre":           "ends with secre",
		"secret-lonsecret-long!":    "[A]-lon[B]!",
		"漢secret字":                  "漢[A]字",
		"sesesecret":                "sese[A]",
		"the end is secret-long":    "the end is [B]",
		"\xff\x00secret\xff":        "\xff\x00[A]\xff",
		strings.Repeat("secre", 50): strings.Repeat("secre", 50),
	} {
		if got := h.Text(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	if got := Hide(nil).Text("secret"); got != "secret" {
		t.Error(got)
	}
}

// FuzzVeil: however a text is cut into pieces, the same comes out as from the
// whole, and nothing to hide is in it.
func FuzzVeil(f *testing.F) {
	f.Add("a key=hunter22 b hunter2 c", uint8(3))
	f.Add("hunhunter22hunter", uint8(1))
	h := Hide{"hunter2": "[1]", "hunter22": "[2]", "r2h": "[3]"}
	f.Fuzz(func(t *testing.T, s string, size uint8) {
		want := h.Text(s)
		v, got := newVeil(h), ""
		for n := int(size%16) + 1; len(s) > 0; {
			n = min(n, len(s))
			got += v.write(s[:n])
			s = s[n:]
		}
		got += v.close()
		if got != want {
			t.Fatalf("pieces give %q, the whole %q", got, want)
		}
		if strings.Contains(got, "hunter2") {
			t.Fatalf("%q shows it", got)
		}
	})
}
