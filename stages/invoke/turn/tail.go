package turn

import (
	"strings"
	"sync"

	"witan/kernel/plaintext"
	"witan/kernel/secrets"
)

const (
	tailBytes  = 2000
	maxExcerpt = 600 // characters of an agent's words in an error
)

// Tail keeps the end of a stream for an error text.
type Tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	b = b[max(0, n-2*tailBytes):] // one huge line must not be kept
	t.b = append(t.b, b...)
	if over := len(t.b) - tailBytes; over > tailBytes {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return n, nil
}

// String is the end of the stream on one line, without secrets.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.b
	if over := len(b) - tailBytes; over > 0 {
		b = b[over:]
	}
	s := plaintext.Clean(secrets.Redact(strings.ToValidUTF8(string(b), "\uFFFD")))
	return strings.Join(strings.Fields(s), " ")
}

// Clean makes an agent's words fit for an error: without secrets and control
// sequences, at most 600 characters.
func Clean(s string) string {
	s = plaintext.Clean(secrets.Redact(s))
	if rs := []rune(s); len(rs) > maxExcerpt {
		s = string(rs[:maxExcerpt]) + "…"
	}
	return s
}
