package fake

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// mcpCall is a step.
type mcpCall struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// mcpServer is a tool server as ACP offers it.
type mcpServer struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
}

// offer notes what a session may use.
func (a *agent) offer(session string, servers []mcpServer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers[session] = servers
}

// mcp does the step.
func (t *turn) mcp(c mcpCall) {
	client, err := t.a.client(t.session, c.Server)
	if err != nil {
		t.text("mcp: " + err.Error() + "\n")
		return
	}
	args := c.Arguments
	if args == nil {
		args = json.RawMessage("{}")
	}
	args = json.RawMessage(blockOf(t.prompt).fill(string(args)))
	answer := client.call("tools/call", object{"name": c.Tool, "arguments": args})
	select {
	case m, ok := <-answer:
		t.text("mcp " + c.Tool + " " + resultOf(m, ok) + "\n")
	case <-t.ctx.Done():
	}
}

// resultOf says how a call of a tool ended.
func resultOf(m message, ok bool) string {
	if !ok {
		return "failed: the server is gone"
	}
	if m.Error != nil {
		return "failed: " + string(m.Error)
	}
	var r struct {
		Error   bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		return "failed: " + err.Error()
	}
	var text []string
	for _, c := range r.Content {
		text = append(text, c.Text)
	}
	if r.Error {
		return "refused: " + strings.Join(text, "\n")
	}
	return "gave: " + strings.Join(text, "\n")
}

// client is the connection to a server of a session, which is started if need be.
func (a *agent) client(session, name string) (*mcpClient, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	servers := a.servers[session]
	if a.flags != nil {
		servers = configured(flag(a.flags, "--mcp-config"))
	}
	for _, s := range servers {
		if name != "" && s.Name != name {
			continue
		}
		key := session + "\n" + s.Name
		if c := a.clients[key]; c != nil {
			return c, nil
		}
		c, err := startServer(s)
		if err == nil {
			a.clients[key] = c
		}
		return c, err
	}
	return nil, fmt.Errorf("no server %q is offered", name)
}

// configured are the servers of a file as Claude Code reads it.
func configured(file string) (out []mcpServer) {
	var all struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return nil
	}
	for name, s := range all.Servers {
		m := mcpServer{Name: name, Command: s.Command, Args: s.Args}
		for k, v := range s.Env {
			m.Env = append(m.Env, struct {
				Name  string `json:"name"`
				Value string `json:"value"`
			}{k, v})
		}
		out = append(out, m)
	}
	return out
}

// mcpClient speaks with one server. The server ends with this process, as its
// input does.
type mcpClient struct {
	in io.Writer

	mu      sync.Mutex
	next    int
	waiting map[string]chan message // nil: the server is gone
}

func startServer(s mcpServer) (*mcpClient, error) {
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Env = os.Environ()
	for _, e := range s.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	c := &mcpClient{in: in, waiting: map[string]chan message{}}
	go func() {
		c.read(out)
		_ = cmd.Wait()
	}()
	m, ok := <-c.call("initialize", object{"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": object{"name": "fakeagent", "version": "1"}})
	if !ok || m.Error != nil {
		return nil, fmt.Errorf("server %s cannot be used: %s", s.Name, m.Error)
	}
	c.send(object{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return c, nil
}

func (c *mcpClient) read(out io.Reader) {
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes('\n')
		var m message
		c.mu.Lock()
		if json.Unmarshal(line, &m) == nil && m.Method == "" {
			if ch := c.waiting[string(m.ID)]; ch != nil {
				delete(c.waiting, string(m.ID))
				ch <- m
			}
		}
		if err != nil {
			for _, ch := range c.waiting {
				close(ch)
			}
			c.waiting = nil
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// call sends a request; the channel gives the answer, or closes without one.
func (c *mcpClient) call(method string, params any) <-chan message {
	answer := make(chan message, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		close(answer)
		return answer
	}
	c.next++
	c.waiting[fmt.Sprint(c.next)] = answer
	c.write(object{"jsonrpc": "2.0", "id": c.next, "method": method, "params": params})
	return answer
}

func (c *mcpClient) send(v any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write(v)
}

// write is called with mu held. A server that is gone is seen by read.
func (c *mcpClient) write(v any) { _, _ = c.in.Write(encode(v)) }
