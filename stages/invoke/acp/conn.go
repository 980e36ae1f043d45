package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"witan/kernel"
	"witan/stages/invoke/jsonrpc"
	"witan/stages/invoke/turn"
)

// conn is a connected agent with its session.
type conn struct {
	key     poolKey
	t       Transport
	rpc     *jsonrpc.Conn
	name    string        // what the agent calls itself
	load    bool          // the agent can load sessions
	session string        // native
	tools   kernel.Digest // of the tool servers that it was opened with
	count   counter
	evict   *time.Timer
	noise   turn.Tail
	wg      sync.WaitGroup // of the prompt being answered

	mu  sync.Mutex
	job *job // running one; guarded by mu
}

// connect starts the agent and shakes hands. With an error it may return the
// connection, to be ended by the caller.
func (a *Agent) connect(ctx context.Context, j *job, key poolKey) (*conn, error) {
	t, err := a.cfg.Connect(ctx, j.r.Place())
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, j.r.CannotStart(err)
	}
	c := &conn{key: key, t: t}
	c.rpc = jsonrpc.New(t, t, c, jsonrpc.Options{Limit: a.cfg.LineBytes,
		Noise: func(line []byte) { _, _ = c.noise.Write(append(line[:len(line):len(line)], '\n')) },
		Late:  c.late})
	return c, c.initialize(ctx, j.req.Agent, j.req.Turn.Write)
}

// notACP are error codes with which programs refuse the handshake that do not
// know it.
var notACP = []int{-32700, -32600, -32601, -32602}

func (c *conn) initialize(ctx context.Context, agent kernel.AgentID, write bool) error {
	res, err := c.rpc.Call(ctx, "initialize", map[string]any{"protocolVersion": 1,
		"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": true, "writeTextFile": write}, "terminal": false},
		"clientInfo":         map[string]any{"name": "witan", "version": "1"}})
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && slices.Contains(notACP, refused.Code) {
		return &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "protocol_version",
			Text: turn.Clean(fmt.Sprintf("agent %s refuses the protocol: %s", agent, refused.Message)), Err: err}
	}
	if err != nil {
		return err
	}
	var init struct {
		Version int `json:"protocolVersion"`
		Caps    struct {
			Load bool `json:"loadSession"`
		} `json:"agentCapabilities"`
		Info struct {
			Name string `json:"name"`
		} `json:"agentInfo"`
	}
	if err := json.Unmarshal(res, &init); err != nil || init.Version != 1 {
		return &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "protocol_version",
			Text: fmt.Sprintf("agent %s speaks protocol version %d, not 1; update it", agent, init.Version), Err: err}
	}
	c.load, c.name = init.Caps.Load, init.Info.Name
	return nil
}

// dead reports whether the agent is gone, or cannot be understood any more.
func (c *conn) dead() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.t.Done():
		return true
	default:
		return c.rpc.Err() != nil
	}
}

// end ends the agent and waits for the last of it.
func (c *conn) end() {
	c.t.Stop()
	<-c.t.Done()
	c.rpc.Close()
	c.t.Close()
	<-c.rpc.Done()
	c.wg.Wait()
}

// cancel tells the agent to end its turn; it does not wait until that is read.
func (c *conn) cancel() {
	_ = c.rpc.Notify("session/cancel", map[string]any{"sessionId": c.session}) // who is gone needs no cancel
}

// begin makes j the turn that updates belong to; nil for none.
func (c *conn) begin(j *job) {
	c.mu.Lock()
	c.job = j
	c.mu.Unlock()
}

func (c *conn) current() *job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.job
}

func (c *conn) late(string) {
	if j := c.current(); j != nil {
		j.env.Emit(kernel.Event{Type: "notice", Code: "late_response", Text: "the agent answered a request a second time"})
	}
}

// why says how an agent came to close the connection.
func (c *conn) why(grace time.Duration) string {
	wait := time.NewTimer(grace)
	defer wait.Stop()
	select { // most often the process is about to end by itself
	case <-c.t.Done():
	case <-wait.C:
		c.t.Stop()
		<-c.t.Done()
	}
	e := c.t.Exit()
	text := "the agent " + e.Text
	if !e.Itself {
		text = "the agent closed the connection"
		if e.Stderr != "" {
			text += "; it last said: " + e.Stderr
		}
	}
	if noise := c.noise.String(); e.Stderr == "" && noise != "" {
		text += "; it printed: " + noise
	}
	return turn.Clean(text)
}
