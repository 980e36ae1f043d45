package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// DefaultLimit bounds one line, in bytes, without its end.
const DefaultLimit = 16 << 20

// countLimit bounds how long a line over the limit is followed for its size: an
// endless one must fail too.
const countLimit = 1 << 30

// chunk bounds the pieces a long line is gathered in. Growing one slice instead
// would copy and leave behind several times its size.
const chunk = 1 << 20

// LineError says that a line was over the limit. AtLeast says that its end was
// not waited for.
type LineError struct {
	Bytes, Limit int64
	AtLeast      bool
}

func (e *LineError) Error() string {
	more := ""
	if e.AtLeast {
		more = "at least "
	}
	return fmt.Sprintf("a line of %s%d bytes is over the limit of %d", more, e.Bytes, e.Limit)
}

// lines reads a stream line by line.
type lines struct {
	r            *bufio.Reader
	limit, count int64
}

// next reads one line without its end; the line is the caller's. Behind the limit
// it counts and keeps nothing. The last line comes with io.EOF.
func (l *lines) next() ([]byte, error) {
	var parts [][]byte
	total, returned := int64(0), false // returned: the part before ended in \r
	for {
		part, err := l.r.ReadSlice('\n')
		total += int64(len(part))
		if total <= l.limit+int64(len("\r\n")) {
			parts = gather(parts, part)
		} else {
			parts = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			if total >= l.count {
				return nil, &LineError{total, l.limit, true}
			}
			returned = bytes.HasSuffix(part, []byte("\r"))
			continue
		}
		size := total - ending(part, returned)
		if size > l.limit {
			return nil, &LineError{size, l.limit, false}
		}
		return join(parts, total)[:size], err
	}
}

// ending is the length of the line end of b, which came behind a \r or not.
func ending(b []byte, returned bool) int64 {
	switch {
	case bytes.HasSuffix(b, []byte("\r\n")), returned && string(b) == "\n":
		return 2
	case bytes.HasSuffix(b, []byte("\n")):
		return 1
	}
	return 0
}

func gather(parts [][]byte, b []byte) [][]byte {
	for len(b) > 0 {
		last := len(parts) - 1
		if last < 0 || len(parts[last]) == cap(parts[last]) {
			size := len(b)
			if last >= 0 {
				size = chunk
			}
			parts = append(parts, make([]byte, 0, size))
			last++
		}
		n := min(len(b), cap(parts[last])-len(parts[last]))
		parts[last], b = append(parts[last], b[:n]...), b[n:]
	}
	return parts
}

func join(parts [][]byte, total int64) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	out := make([]byte, 0, total)
	for i, p := range parts {
		out = append(out, p...)
		parts[i] = nil
	}
	return out
}

// object returns the length of the JSON object that b starts with, and 0 if it
// does not end. Whether it is a valid one is for the decoder to say.
func object(b []byte) int {
	depth, text := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// repair puts one U+FFFD in the place of every byte that is no UTF-8, and counts
// them. Without one the line stays as it is.
func repair(line []byte) (fixed []byte, bad int) {
	if utf8.Valid(line) {
		return line, 0
	}
	fixed = make([]byte, 0, len(line)+len(line)/8)
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		fixed, line = utf8.AppendRune(fixed, r), line[n:]
	}
	return fixed, bad
}
