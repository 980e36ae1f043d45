package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/stream"
	"witan/stages/invoke/turn"
)

// value holds the fields of the kinds that matter, of both programs.
type value struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	Parent  string `json:"parent_tool_use_id"` // of a sub-agent's

	Role    string `json:"role"`
	Content string `json:"content"`
	Delta   bool   `json:"delta"`

	Tool       string          `json:"tool_name"`
	ToolID     string          `json:"tool_id"`
	Parameters json.RawMessage `json:"parameters"`

	Severity string    `json:"severity"`
	Text     jsonText  `json:"message"` // a sentence; of Qwen Code a whole message
	Event    event     `json:"event"`
	Data     retryData `json:"data"`
}

// reader implements stream.Reader for one turn.
type reader struct {
	t     *stream.Turn
	count *counter

	apart  bool   // the next piece of text begins a new paragraph
	told   string // the last error that was told under way
	result *result

	block strings.Builder // text of the open block, as it came in pieces
	held  string          // text that may be an error in the shape of an answer
	any   bool            // there was text
}

// result is how a program ended the turn.
type result struct {
	Status  string  `json:"status"`
	Subtype string  `json:"subtype"`
	IsError bool    `json:"is_error"`
	Result  string  `json:"result"`
	Error   *failed `json:"error"`
	Stats   *counts `json:"stats"`
	Usage   *counts `json:"usage"`
}

type failed struct {
	Message string `json:"message"`
}

// Value implements stream.Reader.
func (r *reader) Value(raw json.RawMessage) error {
	var v value
	err := json.Unmarshal(raw, &v)
	var shape *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &shape) {
		return err
	}
	if v.Type != "result" && v.Session != "" {
		if err := r.t.Session(v.Session); err != nil {
			return err
		}
	}
	switch v.Type {
	case "init":
		r.t.Taken()
	case "message":
		r.message(v)
	case "tool_use":
		r.apart = true
		r.t.R.Tool(turn.Tool{ID: v.ToolID, Kind: kindOf(v.Tool), Title: title(v.Tool, v.Parameters), Status: "in_progress"})
	case "tool_result":
		return r.toolResult(raw)
	case "error":
		if r.told = v.Text.plain; v.Severity == "warning" {
			r.t.Notice("agent_warning", v.Text.plain)
			r.told = ""
		}
	case "system", "assistant", "user", "stream_event":
		r.qwen(v)
	case "result":
		return r.end(raw)
	}
	return nil
}

func (r *reader) message(v value) {
	if v.Role != "assistant" {
		return
	}
	r.apart = r.apart || !v.Delta
	r.write(v.Content)
}

func (r *reader) toolResult(raw json.RawMessage) error {
	var v struct {
		ToolID string `json:"tool_id"`
		Status string `json:"status"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	r.t.R.Tool(turn.Tool{ID: v.ToolID, Status: outcome(v.Status != "success")})
	return nil
}

// end takes the end of the turn.
func (r *reader) end(raw json.RawMessage) error {
	if r.result != nil {
		return errors.New("a second result")
	}
	r.result = &result{}
	if err := json.Unmarshal(raw, r.result); err != nil {
		return fmt.Errorf("a result of an unknown shape: %w", err)
	}
	if u, ok := r.count.usage(r.t.Resume, r.t.New, *r.result); ok {
		r.t.R.Usage(u)
	}
	r.t.Over()
	return nil
}

// End implements stream.Reader.
func (r *reader) End(e turn.Exit) error {
	res := r.result
	if res == nil {
		return died(r.t, e.Code, e.Itself, e.Stderr, r.t.Died(e))
	}
	if res.good() {
		r.release()
		if !r.any {
			r.write(res.Result) // an answer that came in no other way
		}
		r.t.R.Ended("end_turn")
		return nil
	}
	text := r.told
	switch {
	case res.Error != nil && res.Error.Message != "":
		text = res.Error.Message
	case text == "" && res.Result != "":
		text = res.Result
	case text == "":
		text = "the agent ended the turn with " + res.Status + res.Subtype
	}
	f := failure(text)
	if f.Class == kernel.ClassSession && r.t.Resume != "" {
		return stream.Gone()
	}
	return f
}

// good reports whether a result says that nothing failed. Neither program's exit
// code is needed for that, and neither is enough.
func (r result) good() bool {
	return !r.IsError && r.Error == nil && (r.Status == "success" || r.Status == "" && r.Subtype == "success")
}
