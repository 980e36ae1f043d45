package plaintext

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"plain\n\ttext", "plain\n\ttext"},
		{"\x1b[31mred\x1b[0m \x1b[38;5;12mx\x1b[38;2;1;2;3my", "red xy"},
		{"\x1b]8;;http://x\x07link\x1b]8;;\x1b\\!", "link!"},
		{"\x1b]52;c;ZXZpbA==\x07ok", "ok"},
		{"\x1b[?1049h\x1b[2J\x1b[10;10Hx", "x"},
		{"10%\r20%\r100%\ndone", "100%\ndone"},
		{"long line\rab", "abng line"},
		{"a\r\nb", "a\nb"},
		{"abc\b\bX", "aXc"},
		{"cut \x1b[3", "cut "},
		{"cut \x1b]52;c;AAAA", "cut "},
		{"cut \x1b", "cut "},
		{"a\x1b]0;no end\nthe rest\n", "a\nthe rest\n"},
		{"a\x1b]52;c;AA\x1b[31mred\x1bP1;2\x18on", "aredon"},
		{"\u009b31mc1\u009d0;title\u009cend", "c1end"},
		{"a\u202egnp.exe", "a⟨U+202E⟩gnp.exe"},
		{"zero\u200bwidth", "zero⟨U+200B⟩width"},
		{"👩\u200d💻 é 漢", "👩\u200d💻 é 漢"},
		{"bad\xffbyte", "bad\uFFFDbyte"},
		{"nul\x00bell\x07", "nulbell"},
	} {
		if got := Clean(tc.in); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestProgressBarCollapses(t *testing.T) {
	var b strings.Builder
	for range 10_000 {
		b.WriteString("\r[#####     ] 50%")
	}
	if got := Clean(b.String()); got != "[#####     ] 50%" {
		t.Fatalf("%d bytes", len(got))
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31m\u202e\x9b\xff\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\u009b\u202e\r\x07\x00\x08") {
			t.Fatalf("%q gives %q", s, got)
		}
		if again := Clean(got); again != got {
			t.Fatalf("not stable: %q, %q", got, again)
		}
	})
}
