package gemini

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"witan/stages/invoke/turn"
)

// event is a piece of a message under way.
type event struct {
	Type  string `json:"type"`
	Block block  `json:"content_block"`
	Delta struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"delta"`
}

// retryData is what is told of a call that the provider failed.
type retryData struct {
	Attempt    int     `json:"attempt"`
	MaxRetries int     `json:"maxRetries"`
	DelayMS    float64 `json:"delayMs"`
}

// jsonText is a sentence, or a whole message.
type jsonText struct {
	plain   string
	Content []block
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

func (t *jsonText) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &t.plain)
	}
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &m); err != nil || len(m.Content) == 0 || m.Content[0] != '[' {
		return nil // another shape says nothing
	}
	return json.Unmarshal(m.Content, &t.Content)
}

// qwen takes a value of Qwen Code, which has the shape of Claude Code's.
func (r *reader) qwen(v value) {
	switch {
	case v.Parent != "":
		r.folded(v)
	case v.Type == "system":
		r.system(v)
	case v.Type == "stream_event":
		r.piece(v.Event)
	case v.Type == "assistant":
		for _, b := range v.Text.Content {
			switch b.Type {
			case "text":
				r.whole(b.Text)
			case "tool_use":
				r.t.R.Tool(turn.Tool{ID: b.ID, Kind: kindOf(b.Name), Title: title(b.Name, b.Input), Status: "in_progress"})
			default:
				r.t.R.Moved() // a thought; its text stays with the agent
			}
		}
	case v.Type == "user":
		for _, b := range v.Text.Content {
			if b.Type == "tool_result" {
				r.t.R.Tool(turn.Tool{ID: b.ToolUse, Status: outcome(b.IsError)})
			}
		}
	}
}

// folded takes what a sub-agent says: that it works, and whether it changed anything.
func (r *reader) folded(v value) {
	for _, b := range v.Text.Content {
		if b.Type == "tool_use" && !harmless(b.Name) {
			r.t.R.Changed()
		}
	}
	r.t.R.Moved()
}

func (r *reader) system(v value) {
	switch v.Subtype {
	case "init":
		r.t.Taken()
	case "retry":
		why := "the agent's provider failed; it is asked again"
		if v.Data.MaxRetries > 0 {
			wait := time.Duration(v.Data.DelayMS * float64(time.Millisecond)).Round(time.Second)
			why = fmt.Sprintf("the agent's provider failed; try %d of %d follows in %s", v.Data.Attempt, v.Data.MaxRetries, wait)
		}
		r.t.Retry(why)
	}
}

func (r *reader) piece(e event) {
	switch e.Type {
	case "content_block_start":
		r.block.Reset()
		r.apart = true
		if e.Block.Type == "tool_use" {
			r.t.R.Tool(turn.Tool{ID: e.Block.ID, Kind: kindOf(e.Block.Name), Title: title(e.Block.Name, e.Block.Input), Status: "pending"})
			return
		}
		r.t.R.Moved()
	case "content_block_delta":
		if e.Delta.Type == "text_delta" {
			r.block.WriteString(e.Delta.Text)
			r.say(e.Delta.Text)
			return
		}
		r.t.R.Moved()
	}
}

// whole takes a whole text: what of it did not come in pieces.
func (r *reader) whole(s string) {
	rest, ok := strings.CutPrefix(s, r.block.String())
	if r.block.Len() == 0 {
		r.apart = true
	}
	r.block.Reset()
	if ok {
		r.say(rest)
	}
}

// apiErrorMark begins an error that is told in the shape of an answer.
const apiErrorMark = "[API Error: "

// say takes text of the answer. What may be an error in its shape is held until
// the result says whether it is one.
func (r *reader) say(s string) {
	if i := strings.LastIndex(s, apiErrorMark); r.held == "" && i >= 0 {
		s, r.held = s[:i], s[i:]
	} else if r.held != "" {
		s, r.held = "", r.held+s
	}
	r.write(s)
}

// write is what is said for certain.
func (r *reader) write(s string) {
	if s == "" {
		return
	}
	if r.apart {
		r.t.Message(s)
	} else {
		r.t.Piece(s)
	}
	r.apart, r.any = false, true
}

// release says what was no error after all.
func (r *reader) release() {
	s := r.held
	r.held = ""
	r.write(s)
}
