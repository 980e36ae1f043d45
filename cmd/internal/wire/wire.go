// Package wire is the protocol between a host and the commands that talk to it
// over a local socket: newline-separated JSON frames, versions first.
//
// One connection carries one operation. The caller sends a Hello and, after
// the host's Hello, a Request; the host sends lines and at last an End. Closing
// the connection ends the operation, never a run.
package wire

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"witan/kernel"
)

// Protocol is the version of this protocol; only an incompatible change bumps it.
const Protocol = 1

// Hello opens a connection in both directions.
type Hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	PID      int    `json:"pid,omitempty"`
	Serving  bool   `json:"serving,omitempty"` // a long-lived host
}

// Request asks for an operation.
type Request struct {
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Frame is what the host sends after its Hello: a line, or the end.
type Frame struct {
	Line json.RawMessage `json:"line,omitempty"`
	End  *End            `json:"end,omitempty"`
}

// End closes an operation; Error is nil when it was done.
type End struct {
	Error *Error `json:"error,omitempty"`
}

// Error carries a kernel.Error to the other side.
type Error struct {
	Kind kernel.Kind `json:"kind"`
	What string      `json:"what"`
	Code int         `json:"code,omitempty"` // exit code, where the error has one of its own
}

// MaxFrame bounds one frame in bytes: the longest line is a message's text.
const MaxFrame = 96 << 20

// Conn reads and writes frames.
type Conn struct {
	r *bufio.Reader
	w io.Writer
}

// NewConn wraps rw.
func NewConn(rw io.ReadWriter) *Conn { return &Conn{r: bufio.NewReaderSize(rw, 64<<10), w: rw} }

// Write sends v as one frame.
func (c *Conn) Write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.w.Write(append(b, '\n'))
	return err
}

// Read receives one frame into v.
func (c *Conn) Read(v any) error {
	var line []byte
	for {
		part, err := c.r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > MaxFrame {
			return fmt.Errorf("frame is over %d bytes", MaxFrame)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) && len(line) > 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		return json.Unmarshal(line, v)
	}
}

// maxSocketPath is what fits a sockaddr_un on every system, with room.
const maxSocketPath = 100

// SocketPath is where the host of a data directory listens: in the runtime
// directory under a short name, or, where that is missing or too long, under the
// temp directory in a folder of the user's own.
func SocketPath(home string) (string, error) {
	abs, err := filepath.Abs(home)
	if err != nil {
		return "", err
	}
	if r, err := filepath.EvalSymlinks(abs); err == nil {
		abs = r
	}
	sum := sha256.Sum256([]byte(abs))
	name := "witan-" + hex.EncodeToString(sum[:8]) + ".sock"
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		if p := filepath.Join(dir, name); len(p) <= maxSocketPath {
			if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
				return p, nil
			}
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("witan-%d", os.Getuid()))
	if p := filepath.Join(dir, name); len(p) <= maxSocketPath {
		return p, nil
	}
	return filepath.Join("/tmp", fmt.Sprintf("witan-%d", os.Getuid()), name), nil
}
