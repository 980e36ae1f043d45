package council_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stages/invoke/council"
	"witan/stages/invoke/invoketest"
)

// TestMain is also the program that an endpoint's server names.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == council.Argument {
		if err := council.Relay(context.Background(), os.Getenv, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := invoketest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func listen(t *testing.T) *council.Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "c") // that of the test may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s, err := council.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	return s
}

// pipes are what an agent starts a server with.
type pipes struct {
	io.Reader
	io.WriteCloser
	done chan error // gives what Relay returned
}

// relay starts a server as an agent does, in this process.
func relay(m kernel.MCPServer) pipes {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := council.Relay(context.Background(), func(k string) string { return m.Env[k] }, inR, outW)
		_ = outW.CloseWithError(io.EOF)
		_ = inR.Close()
		done <- err
	}()
	return pipes{outR, inW, done}
}

// connect is an agent with the SDK's client.
func connect(t *testing.T, m kernel.MCPServer) *mcp.ClientSession {
	t.Helper()
	p := relay(m)
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	ses, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(p.Reader), Writer: p.WriteCloser}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = ses.Close()
		if err := <-p.done; err != nil {
			t.Errorf("the relay: %v", err)
		}
	})
	return ses
}

// call returns the text of a result, with its code in front of it when the call
// was refused.
func call(t *testing.T, ses *mcp.ClientSession, tool string, args any) (text, code string) {
	t.Helper()
	if s, ok := args.(string); ok {
		args = json.RawMessage(s)
	}
	res, err := ses.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text = res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		code = res.StructuredContent.(map[string]any)["code"].(string)
		if !strings.HasPrefix(text, code+": ") {
			t.Errorf("%q does not begin with its code %q", text, code)
		}
	}
	return text, code
}

// person answers questions of a turn.
type person func(ctx context.Context, q kernel.Question) (kernel.Answer, error)

func newTurn(p person, change ...func(*council.TurnConfig)) *council.Turn {
	c := council.TurnConfig{Env: kernel.Env{Run: kerneltest.Run(1), Attempt: "atp_1", Ask: p},
		Turn: kernel.Turn{Run: kerneltest.Run(1), Phase: "work", Round: 2, Agent: "alpha", Extra: json.RawMessage(`{"item":{"id":"W1"}}`)}, Strict: true}
	for _, f := range change {
		f(&c)
	}
	return council.NewTurn(c)
}

var errNobody = errors.New("nobody is there")
