package window

import (
	"fmt"
	"strings"
	"time"

	"witan/ui/model"
	"witan/ui/text"
)

// cutNote says how much of a text is not shown.
func cutNote(n int) string { return fmt.Sprintf(" … +%s", bytesOf(n)) }

// bytesOf writes a size.
func bytesOf(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// short is a hash cut in its middle.
func short(hash string) string {
	_, h, ok := strings.Cut(hash, ":")
	if !ok {
		h = hash
	}
	if len(h) <= 9 {
		return h
	}
	return h[:4] + "…" + h[len(h)-2:]
}

// took writes a duration as a person would.
func took(w *text.Strings, d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf(w.Seconds, int(d.Seconds()))
	}
	return clock(d)
}

// clock writes minutes and seconds.
func clock(d time.Duration) string {
	d = d.Round(time.Second)
	if h := int(d.Hours()); h > 0 {
		return fmt.Sprintf("%d:%02d:%02d", h, int(d.Minutes())%60, int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// tokens writes a number of tokens; "" if it is unknown.
func tokens(w *text.Strings, use model.Usage) string {
	n, known := use.Tokens()
	switch {
	case !known:
		return ""
	case n < 1000:
		return fmt.Sprintf(w.Tokens, n)
	}
	return fmt.Sprintf(w.TokensThousand, float64(n)/1000)
}

// thousands writes a number of tokens without its unit.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f k", float64(n)/1000)
}

// dots joins what is not empty.
func dots(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, " · ")
}

// oneLine keeps text of others on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
