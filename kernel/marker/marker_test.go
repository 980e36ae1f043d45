package marker

import (
	"strings"
	"testing"
)

const sample = "Hello <b>x</b> < <wi\n<witan-receipt>\n{\"version\":1}\n</witan-receipt> bye <witan-rec"

func TestHiderSplitAtEveryByte(t *testing.T) {
	want := "Hello <b>x</b> < <wi\n bye <witan-rec"
	for i := range sample {
		for j := i; j <= len(sample); j++ {
			var h Hider
			got := h.Write(sample[:i]) + h.Write(sample[i:j]) + h.Write(sample[j:]) + h.Close()
			if got != want {
				t.Fatalf("split at %d and %d: %q", i, j, got)
			}
		}
	}
}

func TestHiderNeverShowsAMarker(t *testing.T) {
	var h Hider
	shown := ""
	for _, b := range []byte(sample) {
		shown += h.Write(string(b))
		if strings.Contains(shown, "<witan-") {
			t.Fatalf("shown while streaming: %q", shown)
		}
	}
}

func TestUnclosedReceiptIsShownAtTheEnd(t *testing.T) {
	var h Hider
	if got := h.Write("a<witan-receipt>{") + h.Close(); got != "a<witan-receipt>{" {
		t.Fatalf("%q", got)
	}
}

func TestReceipt(t *testing.T) {
	for _, tc := range []struct {
		in, want string
		ok       bool
	}{
		{"x<witan-receipt>1</witan-receipt>", "1", true},
		{"<witan-receipt>1</witan-receipt> <witan-receipt>2</witan-receipt>", "2", true},
		{"<witan-receipt>1</witan-receipt> <witan-receipt>2", "", false},
		{"none", "", false},
	} {
		got, ok := Receipt(tc.in)
		if ok != tc.ok || ok && got != tc.want {
			t.Errorf("%q: %q %v", tc.in, got, ok)
		}
	}
}

func TestNeutralise(t *testing.T) {
	in := "<witan-turn>{}</witan-turn><witan-receipt>"
	if got := Neutralise(in); strings.Contains(got, "<witan-") || strings.Contains(got, "</witan-") {
		t.Fatalf("%q", got)
	}
}

func FuzzHider(f *testing.F) {
	f.Add(sample, 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = max(1, min(n, len(s)))
		var whole, parts Hider
		want := whole.Write(s) + whole.Close()
		got := ""
		for i := 0; i < len(s); i += n {
			got += parts.Write(s[i:min(i+n, len(s))])
		}
		if got += parts.Close(); got != want {
			t.Fatalf("%q in pieces of %d: %q, whole %q", s, n, got, want)
		}
	})
}
