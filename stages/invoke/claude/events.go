package claude

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"witan/kernel"
	"witan/stages/invoke/turn"
)

// told is an error in the shape of an answer.
type told struct {
	word   string // authentication_failed, rate_limit, …
	status int
	text   string
}

// synthetic is the model of messages that no model wrote.
const synthetic = "<synthetic>"

// event takes what the agent says of the turn, in order.
func (j *job) event(m message) {
	if m.Parent != "" {
		j.folded(m)
		return
	}
	switch m.Type {
	case "system":
		j.system(m)
	case "stream_event":
		j.piece(m.Event)
	case "assistant":
		if m.APIError || m.Message.Model == synthetic && m.Error != "" {
			j.error = &told{word: m.Error, text: m.Message.text()}
			if m.Status != nil {
				j.error.status = *m.Status
			}
			return
		}
		for _, b := range m.Message.Content {
			switch b.Type {
			case "text":
				j.talk.whole(j.r, m.Message.ID, b.Text)
			case "tool_use":
				j.r.Tool(turn.Tool{ID: b.ID, Kind: kindOf(b.Name), Title: title(b.Name, b.Input), Status: "in_progress"})
			default:
				j.r.Moved()
			}
		}
	case "user":
		for _, b := range m.Message.Content {
			if b.Type == "tool_result" {
				j.r.Tool(turn.Tool{ID: b.ToolUse, Status: outcome(b.IsError)})
			}
		}
	}
}

// folded takes what a sub-agent says: that it works, and whether it changed
// anything. Of its tools only those are shown that were asked about.
func (j *job) folded(m message) {
	for _, b := range m.Message.Content {
		switch b.Type {
		case "tool_use":
			if !harmlessKind(kindOf(b.Name)) {
				j.r.Changed()
			}
		case "tool_result":
			j.mu.Lock()
			shown := j.asked[b.ToolUse]
			j.mu.Unlock()
			if shown {
				j.r.Tool(turn.Tool{ID: b.ToolUse, Status: outcome(b.IsError)})
			}
		}
	}
	j.r.Moved()
}

// piece takes a part of a message under way.
func (j *job) piece(e event) {
	switch e.Type {
	case "message_start":
		j.talk.begin(e.Message.ID)
	case "content_block_start":
		j.talk.block()
		if e.Block.Type == "tool_use" {
			j.r.Tool(turn.Tool{ID: e.Block.ID, Kind: kindOf(e.Block.Name), Title: e.Block.Name, Status: "pending"})
			return
		}
		j.r.Moved()
	case "content_block_delta":
		if e.Delta.Type == "text_delta" {
			j.talk.delta(j.r, e.Delta.Text)
			return
		}
		j.r.Moved() // thinking, or the making of a tool's input
	case "message_delta":
		j.talk.cut = e.Delta.StopReason == "max_tokens"
	}
}

func (j *job) system(m message) {
	switch {
	case m.Subtype == "api_retry": // a sign of life, and no progress
		why := m.Error
		if m.ErrorStatus > 0 {
			why = fmt.Sprintf("%s, %d", why, m.ErrorStatus)
		}
		wait := time.Duration(m.RetryDelay * float64(time.Millisecond)).Round(time.Second)
		j.env.Emit(kernel.Event{Type: "notice", Code: "provider_retry", Text: j.r.Line(fmt.Sprintf("the agent's provider failed (%s); try %d of %d follows in %s", why, m.Attempt, m.MaxRetries, wait))})
	case m.Subtype == "permission_denied" && m.Tool != "":
		j.r.Tool(turn.Tool{ID: m.Tool, Status: "failed"})
	case strings.HasPrefix(m.Subtype, "task_"): // of a sub-agent
		j.r.Moved()
	}
}

func outcome(failed bool) string {
	if failed {
		return "failed"
	}
	return "completed"
}

// text is all text of a message.
func (s spoken) text() string {
	var out strings.Builder
	for _, b := range s.Content {
		out.WriteString(b.Text)
	}
	return out.String()
}

// kinds are those of the program's own tools; any other tool is "other".
var kinds = map[string]string{
	"Read": "read", "NotebookRead": "read", "BashOutput": "read", "TaskOutput": "read",
	"Grep": "search", "Glob": "search", "LS": "search", "ToolSearch": "search",
	"WebFetch": "fetch", "WebSearch": "fetch",
	"Edit": "edit", "MultiEdit": "edit", "Write": "edit", "NotebookEdit": "edit",
	"Bash": "execute", "PowerShell": "execute", "Monitor": "execute",
	"Task": "think", "Agent": "think", "TodoWrite": "think", "TaskCreate": "think", "TaskUpdate": "think", "TaskGet": "think", "TaskList": "think",
}

func kindOf(tool string) string {
	if k := kinds[tool]; k != "" {
		return k
	}
	return "other"
}

func harmlessKind(k string) bool {
	return k == "read" || k == "search" || k == "fetch" || k == "think"
}

// input holds what tells best what a tool is about to do.
type input struct {
	Command     string `json:"command"`
	File        string `json:"file_path"`
	Notebook    string `json:"notebook_path"`
	Path        string `json:"path"`
	Pattern     string `json:"pattern"`
	Query       string `json:"query"`
	URL         string `json:"url"`
	Description string `json:"description"`
}

func readInput(raw json.RawMessage) (in input) {
	_ = json.Unmarshal(raw, &in) // what has another shape says nothing
	return in
}

// title says what a tool does, in one line.
func title(tool string, raw json.RawMessage) string {
	in := readInput(raw)
	for _, s := range []string{in.Command, in.File, in.Notebook, in.Pattern, in.Query, in.URL, in.Description, in.Path} {
		if strings.TrimSpace(s) != "" {
			return tool + " " + s
		}
	}
	return tool
}
