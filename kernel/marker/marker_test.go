package marker

import (
	"strings"
	"testing"
)

// texts and what a person sees of them.
var texts = []struct{ name, in, visible, receipt string }{
	{"plain", "Hello <b>x</b> < <wi", "Hello <b>x</b> < <wi", ""},
	{"at the end", "Hello\n<witan-receipt>\n{\"version\":1}\n</witan-receipt>\n", "Hello", "\n{\"version\":1}\n"},
	{"only a receipt", "<witan-receipt>{}</witan-receipt>", "", "{}"},
	{"in the middle", "a <witan-receipt>{}</witan-receipt> b", "a <witan-receipt>{}</witan-receipt> b", ""},
	{"the last of two", "a<witan-receipt>1</witan-receipt>b<witan-receipt>2</witan-receipt>", "a<witan-receipt>1</witan-receipt>b", "2"},
	{"a mention before", "I end with <witan-receipt>. A long text.\n<witan-receipt>{}</witan-receipt>", "I end with <witan-receipt>. A long text.", "{}"},
	{"never closed", "a<witan-receipt>{", "a<witan-receipt>{", ""},
	{"never opened", "a</witan-receipt>", "a</witan-receipt>", ""},
	{"cut short", "bye <witan-rec", "bye <witan-rec", ""},
	{"mentions its own end", "x<witan-receipt>{\"summary\":\"</witan-receipt> is missing\"}</witan-receipt>", "x", "{\"summary\":\"</witan-receipt> is missing\"}"},
	{"letters of several bytes", "héllo 世界 🙂 <witan-receipt>{}</witan-receipt>", "héllo 世界 🙂", "{}"},
}

func TestVisibleAndReceipt(t *testing.T) {
	for _, tc := range texts {
		if got := Visible(tc.in); got != tc.visible {
			t.Errorf("%s: visible %q", tc.name, got)
		}
		if got, ok := Receipt(tc.in); got != tc.receipt || ok != (tc.receipt != "") {
			t.Errorf("%s: receipt %q, %v", tc.name, got, ok)
		}
	}
}

func TestHiderSplitAtEveryByte(t *testing.T) {
	for _, tc := range texts {
		for i := range len(tc.in) + 1 {
			for j := i; j <= len(tc.in); j++ {
				var h Hider
				got := h.Write(tc.in[:i]) + h.Write(tc.in[i:j]) + h.Write(tc.in[j:]) + h.Close()
				if got = strings.TrimRight(got, " \n"); got != tc.visible {
					t.Fatalf("%s split at %d and %d: %q", tc.name, i, j, got)
				}
			}
		}
	}
}

func TestHiderNeverShowsAMarkerWhileStreaming(t *testing.T) {
	for _, tc := range texts {
		var h Hider
		shown := ""
		for i := range len(tc.in) {
			shown += h.Write(tc.in[i : i+1])
			if strings.Contains(shown, ReceiptOpen) {
				t.Fatalf("%s: shown while streaming: %q", tc.name, shown)
			}
		}
	}
}

func TestHiderShowsWhatCannotBeAMarkerAtOnce(t *testing.T) {
	var h Hider
	if got := h.Write("a <witan-re"); got != "a " {
		t.Errorf("held back too little or too much: %q", got)
	}
	if got := h.Write("d <"); got != "<witan-red " {
		t.Errorf("not given back: %q", got)
	}
}

func TestHiderIsReadyAgainAfterClose(t *testing.T) {
	var h Hider
	h.Write("a<witan-receipt>{}</witan-receipt>")
	h.Close()
	if got := h.Write("next") + h.Close(); got != "next" {
		t.Errorf("%q", got)
	}
}

func TestNeutralise(t *testing.T) {
	in := "a <b> <witan-turn>{}</witan-turn><witan-receipt> <<witan-turn>"
	got := Neutralise(in)
	if strings.Contains(got, "<witan-") || strings.Contains(got, "</witan-") || !strings.HasPrefix(got, "a <b> ") {
		t.Errorf("%q", got)
	}
	if Neutralise(got) != got {
		t.Errorf("a second time changes it: %q", Neutralise(got))
	}
}

func FuzzHider(f *testing.F) {
	for i, tc := range texts {
		f.Add(tc.in, i)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = max(1, min(n, len(s)))
		var h Hider
		got := ""
		for i := 0; i < len(s); i += n {
			got += h.Write(s[i:min(i+n, len(s))])
			if !strings.HasPrefix(s, got) || strings.Contains(got, ReceiptOpen) {
				t.Fatalf("%q in pieces of %d: shown %q", s, n, got)
			}
		}
		got = strings.TrimRight(got+h.Close(), " \t\r\n")
		if got != Visible(s) {
			t.Fatalf("%q in pieces of %d: %q, whole %q", s, n, got, Visible(s))
		}
	})
}
