package jsonrpc

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Values reads a stream of JSON objects under the rules of this package, for
// protocols that are no JSON-RPC. Of opt it needs Limit, Noise and Repaired.
// each is called with one object after the other, which is its own to keep; its
// error ends the reading. What is returned is never nil: io.EOF at a proper end,
// the cause of ctx when that ended, *LineError, ErrMalformed, or an error of r.
func Values(ctx context.Context, r io.Reader, opt Options, each func(json.RawMessage) error) error {
	return read(ctx, r, opt.withDefaults(), func(v json.RawMessage) error {
		if err := json.Unmarshal(v, &struct{}{}); err != nil {
			return fmt.Errorf("%w: %v", ErrMalformed, err)
		}
		return each(v)
	})
}

// read is Values where each says ErrMalformed of what is no JSON.
func read(ctx context.Context, r io.Reader, opt Options, each func(json.RawMessage) error) error {
	in := lines{r: bufio.NewReaderSize(r, 64<<10), limit: int64(opt.Limit), count: max(countLimit, int64(opt.Limit))}
	for {
		line, err := in.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		fixed, bad := repair(line)
		if bad > 0 {
			opt.Repaired(sha256.Sum256(line), bad)
		}
		if verr := values(bytes.TrimSpace(bytes.TrimPrefix(fixed, mark)), err != nil, opt, each); verr != nil {
			return verr
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// mark may stand in front of a text.
var mark = []byte("\xef\xbb\xbf")

// values handles the values of one line; last says that the input ended with it.
func values(line []byte, last bool, opt Options, each func(json.RawMessage) error) error {
	if len(line) > 0 && line[0] != '{' {
		opt.Noise(line)
		return nil
	}
	for rest := line; len(rest) > 0; {
		n := object(rest)
		err := ErrMalformed
		switch {
		case n > 0:
			err = each(rest[:n:n])
		case last && rest[0] == '{':
			err = fmt.Errorf("%w: %w", ErrMalformed, io.ErrUnexpectedEOF)
		}
		if errors.Is(err, ErrMalformed) {
			opt.Noise(line)
		}
		if err != nil {
			return err
		}
		rest = bytes.TrimSpace(rest[n:])
	}
	return nil
}
