package client_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/cmd/internal/client"
	"witan/cmd/internal/say"
	"witan/cmd/internal/wire"
	"witan/kernel"
)

// host plays a host on the socket of home: it says hello and then frames.
func host(t *testing.T, hello wire.Hello, frames ...any) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	path, err := wire.SocketPath(home)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w := wire.NewConn(c)
			var in wire.Hello
			var req wire.Request
			if w.Read(&in) == nil && w.Write(hello) == nil && w.Read(&req) == nil {
				for _, f := range frames {
					_ = w.Write(f)
				}
			}
			c.Close()
		}
	}()
	return home
}

func call(t *testing.T, home string) (lines string, err error) {
	t.Helper()
	c, err := client.Dial(context.Background(), home, "1")
	if err != nil {
		return "", err
	}
	err = c.Call(context.Background(), "op", struct{}{}, func(l json.RawMessage) error { lines += string(l); return nil })
	return lines, err
}

func TestNobodyListens(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if _, err := call(t, t.TempDir()); !kernel.IsKind(err, kernel.Unavailable) {
		t.Fatal(err)
	}
}

func TestOtherProtocolSaysWhatToDo(t *testing.T) {
	_, err := call(t, host(t, wire.Hello{Protocol: 99, Version: "9.9"}))
	if !kernel.IsKind(err, kernel.Newer) || !strings.Contains(say.Sentence(err), "stop the host") || say.Code(err) != say.Unusable {
		t.Fatal(err)
	}
}

func TestLinesThenEnd(t *testing.T) {
	ok := wire.Hello{Protocol: wire.Protocol}
	lines, err := call(t, host(t, ok, wire.Frame{Line: json.RawMessage(`{"a":1}`)}, wire.Frame{End: &wire.End{}}))
	if err != nil || lines != `{"a":1}` {
		t.Fatalf("%q %v", lines, err)
	}
	_, err = call(t, host(t, ok, wire.Frame{End: &wire.End{Error: &wire.Error{Kind: kernel.NotFound, What: "no such run (see witan runs)"}}}))
	if !kernel.IsKind(err, kernel.NotFound) || say.Sentence(err) != "no such run (see witan runs)" {
		t.Fatal(err)
	}
	_, err = call(t, host(t, ok, wire.Frame{End: &wire.End{Error: &wire.Error{Code: 3, What: "it failed"}}}))
	if say.Code(err) != 3 {
		t.Fatal(err)
	}
}

func TestHostDiesInTheMiddle(t *testing.T) {
	_, err := call(t, host(t, wire.Hello{Protocol: wire.Protocol}, wire.Frame{Line: json.RawMessage(`{}`)}))
	if !kernel.IsKind(err, kernel.Interrupted) || say.Code(err) != say.Stopped {
		t.Fatal(err)
	}
}

func TestSocketPathIsShort(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/"+strings.Repeat("long/", 40))
	t.Setenv("TMPDIR", "/"+strings.Repeat("very/", 40))
	p, err := wire.SocketPath("/some/home")
	if err != nil || len(p) > 100 {
		t.Fatalf("%q %v", p, err)
	}
	if q, _ := wire.SocketPath("/some/other"); q == p {
		t.Fatal("two homes share a socket")
	}
}
