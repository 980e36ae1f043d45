package modelserver

import (
	"encoding/json"
	"fmt"
	"strings"
)

// request is a chat-completions request, reduced to what a script can depend on.
type request struct {
	model  string
	stream bool
	usage  bool // a streamed answer should end with a usage chunk
	tools  []tool
	turns  []turn
	schema map[string]any // of the JSON the reply must be; nil = free text
}

type turn struct {
	role, text string
}

// chatRequest is the wire form; everything else an agent sends is ignored.
type chatRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []struct {
		Role    string      `json:"role"`
		Content chatContent `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name       string         `json:"name"`
			Parameters map[string]any `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema map[string]any `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

// chatContent is the text of a content field: a string, null, or a list of parts.
type chatContent string

func (c *chatContent) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*c = chatContent(s)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	*c = chatContent(strings.Join(texts, "\n"))
	return nil
}

func parseChat(body []byte) (request, error) {
	var in chatRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, err
	}
	if len(in.Messages) == 0 {
		return request{}, fmt.Errorf("no messages")
	}
	r := request{model: in.Model, stream: in.Stream, usage: in.StreamOptions.IncludeUsage}
	for _, t := range in.Tools {
		r.tools = append(r.tools, tool{t.Function.Name, t.Function.Parameters})
	}
	for _, m := range in.Messages {
		r.turns = append(r.turns, turn{m.Role, string(m.Content)})
	}
	switch in.ResponseFormat.Type {
	case "json_schema":
		r.schema = in.ResponseFormat.JSONSchema.Schema
		fallthrough
	case "json_object":
		if r.schema == nil {
			r.schema = map[string]any{}
		}
	}
	return r, nil
}

// reply is a step on its way out.
type reply struct {
	id, model string
	step      Step
	calls     []call
}

func (r reply) finish() string {
	switch {
	case r.step.Length:
		return "length"
	case len(r.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (r reply) tokens() map[string]any {
	in, out := r.step.In, r.step.Out
	if in == 0 {
		in = 100
	}
	if out == 0 {
		out = 10
	}
	return map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

func (r reply) envelope(object string, choices ...any) map[string]any {
	if choices == nil {
		choices = []any{}
	}
	return map[string]any{"id": r.id, "object": object, "created": 1, "model": r.model, "choices": choices}
}

// whole is the answer to a request that does not stream.
func (r reply) whole() map[string]any {
	msg := map[string]any{"role": "assistant", "content": r.step.Say}
	if r.step.Think != "" {
		msg["reasoning_content"] = r.step.Think
	}
	var calls []any
	for _, c := range r.calls {
		calls = append(calls, map[string]any{"id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": c.args}})
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	out := r.envelope("chat.completion", map[string]any{"index": 0, "message": msg, "finish_reason": r.finish()})
	out["usage"] = r.tokens()
	return out
}

// deltas are the content chunks of a streamed answer, in order.
func (r reply) deltas() []any {
	var out []any
	for _, p := range pieces(r.step.Think, r.step.Chunk) {
		out = append(out, map[string]any{"reasoning_content": p})
	}
	for _, p := range pieces(r.step.Say, r.step.Chunk) {
		out = append(out, map[string]any{"content": p})
	}
	for i, c := range r.calls {
		head := map[string]any{"index": i, "id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": ""}}
		out = append(out, map[string]any{"tool_calls": []any{head}})
		for _, p := range pieces(c.args, r.step.Chunk) {
			out = append(out, map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": p}}}})
		}
	}
	return out
}

func (r reply) chunk(delta any, finish any) map[string]any {
	return r.envelope("chat.completion.chunk", map[string]any{"index": 0, "delta": delta, "finish_reason": finish})
}

// pieces cuts text into parts of n characters.
func pieces(text string, n int) []string {
	if n <= 0 {
		n = 20
	}
	var out []string
	for r := []rune(text); len(r) > 0; {
		k := min(n, len(r))
		out, r = append(out, string(r[:k])), r[k:]
	}
	return out
}
