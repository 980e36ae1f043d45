package claude

import (
	"encoding/json"
	"errors"
	"fmt"

	"witan/stages/invoke/jsonrpc"
)

// message holds the fields of the kinds that matter.
type message struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	Session   string          `json:"session_id"`
	Parent    string          `json:"parent_tool_use_id"` // of a sub-agent's
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  struct {
		RequestID string `json:"request_id"`
		Subtype   string `json:"subtype"`
		Error     string `json:"error"`
	} `json:"response"`
	Event    event  `json:"event"`
	Message  spoken `json:"message"`
	Error    string `json:"error"` // of an assistant message that is none
	APIError bool   `json:"is_api_error_message"`
	Status   *int   `json:"api_error_status"`
	Tool     string `json:"tool_use_id"` // of a denied tool

	Attempt     int     `json:"attempt"` // of a call that the provider failed
	MaxRetries  int     `json:"max_retries"`
	RetryDelay  float64 `json:"retry_delay_ms"`
	ErrorStatus int     `json:"error_status"`
}

// event is a piece of a message under way.
type event struct {
	Type    string `json:"type"`
	Message struct {
		ID string `json:"id"`
	} `json:"message"`
	Block block `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
}

// spoken is a whole message.
type spoken struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Content blocks `json:"content"`
}

type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	ToolUse string          `json:"tool_use_id"`
	IsError bool            `json:"is_error"`
}

// blocks is a list of blocks; a plain text, which some messages have instead,
// is none of ours.
type blocks []block

func (b *blocks) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, (*[]block)(b))
	}
	return nil
}

// message takes what the agent sent. Its error ends the connection.
func (c *conn) message(raw json.RawMessage) error {
	var m message
	err := json.Unmarshal(raw, &m)
	var shape *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &shape) {
		return fmt.Errorf("%w: %v", jsonrpc.ErrMalformed, err)
	}
	if err != nil && (m.Type == "result" || m.Type == "control_response" || m.Type == "control_request") {
		return fmt.Errorf("%w: %s of an unknown shape", jsonrpc.ErrMalformed, m.Type)
	}
	switch m.Type {
	case "control_response":
		return c.settle(m.Response.RequestID, answer{m.Response.Subtype, m.Response.Error})
	case "control_request":
		c.request(m.RequestID, m.Request)
	case "control_cancel_request":
		c.withdraw(m.RequestID)
	case "result":
		return c.result(raw)
	case "system", "assistant", "user", "stream_event":
		c.event(m)
	}
	return nil // an unknown kind is ignored
}

// event takes what belongs to a turn. What comes outside of one is work that
// nobody asked for: the end of such a turn could be taken for that of the next,
// so this process gets none.
func (c *conn) event(m message) {
	c.mu.Lock()
	j := c.job
	if j == nil && m.Type != "system" {
		c.stray = true
	}
	if m.Type == "system" && m.Subtype == "init" && m.Session != "" {
		c.name = m.Session
	}
	c.mu.Unlock()
	if j != nil {
		j.event(m)
	}
}

// result ends the running turn: what comes behind it belongs to none.
func (c *conn) result(raw json.RawMessage) error {
	var res result
	if err := json.Unmarshal(raw, &res); err != nil {
		return fmt.Errorf("%w: result of an unknown shape", jsonrpc.ErrMalformed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case res.Origin.Kind == "task-notification": // the end of a turn that the agent began by itself
		c.stray = true
	case c.job != nil:
		if res.Session != "" {
			c.name = res.Session
		}
		c.job.ended <- res // has room: this is the only one
		c.job = nil
	case !c.ready && len(c.early) == 0:
		c.early <- res
	default:
		c.stray = true
	}
	return nil
}
