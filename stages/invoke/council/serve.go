package council

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The first line of each side: the client shows its token, the server says
// whether it knows it.
const (
	welcome = "ok\n"
	unknown = "no\n"
)

// serve answers one connection until it ends.
func (s *Server) serve(c net.Conn) {
	e := s.hello(c)
	if e == nil {
		return
	}
	s.know(c)
	// A client that sends no more is gone: what still waits for it ends, and what
	// can be answered at once still is.
	gone, leave := context.WithCancel(s.quit)
	defer leave()
	ss, err := e.protocol(gone).Connect(s.quit, &window{conn: c, gone: leave}, nil)
	if err == nil {
		_ = ss.Wait() // however it ended, it is over
	}
}

// hello reads the token and returns its endpoint; nil when there is none.
func (s *Server) hello(c net.Conn) *Endpoint {
	_ = c.SetDeadline(time.Now().Add(helloTimeout))
	var line [2*tokenBytes + 1]byte
	if _, err := io.ReadFull(c, line[:]); err != nil {
		return nil
	}
	s.mu.Lock()
	e := s.endpoints[hashed(string(line[:2*tokenBytes]))]
	s.mu.Unlock()
	answer := welcome
	if e == nil || line[2*tokenBytes] != '\n' {
		e, answer = nil, unknown
	}
	if _, err := io.WriteString(c, answer); err != nil {
		return nil
	}
	_ = c.SetDeadline(time.Time{})
	return e
}

// protocol is the MCP server of one connection; gone ends with its client.
func (e *Endpoint) protocol(gone context.Context) *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "witan", Title: "Witan", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		Instructions: "Tools of the turn that you work on. Call receipt once, at the end; without it, end your answer with the receipt as text.",
	})
	asking := make(chan struct{}, maxAsking)
	for _, t := range tools {
		srv.AddTool(t.tool(), func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return e.call(ctx, gone, asking, t, req.Params.Arguments), nil
		})
	}
	return srv
}
